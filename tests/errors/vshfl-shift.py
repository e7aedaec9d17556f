from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), x: S.fp32):
    a[0:8] = S.vshfl(S.vload(a), x)
