from compassc.dsl import script as S


@S.prim_func
def g(v: S.i32x8) -> S.fp32x8:
    return v


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    f[0:8] = g(S.vload(a))
