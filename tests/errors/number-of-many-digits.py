from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    a[0] = 1 << 20000
    f[0] = f[1] + 10**400
