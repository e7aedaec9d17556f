from compassc.dsl import script as S


@S.prim_func
def g(v: S.i32x8):
    S.printf("%d", v[0])


@S.prim_func
def k(f: S.ptr("fp32", "global")):
    g(S.vload(f))
