from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = 1 if S.vload(a) > 0 else 2
