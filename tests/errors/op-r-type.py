from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    a[0:8] = S.vadd(S.vload(a), 1, mask="4T4F", r=S.vload(f))
