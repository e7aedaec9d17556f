from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    v = S.vload(a)
    b[0] = 1 if v > 3 else 0
