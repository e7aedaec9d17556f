from compassc.dsl import script as S


@S.prim_func
def k(c: S.ptr("i8", "global"), n: S.i32):
    c[0:32] = S.vadd(S.vload(c), n)
