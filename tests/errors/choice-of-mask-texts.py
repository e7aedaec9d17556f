from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    S.vstore(S.vload(a), b, mask="3T5F" if n < 8 else "8T")
