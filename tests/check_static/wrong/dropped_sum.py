from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    v = S.vload(x)
    w = S.vmul(v, v)
    S.vadd(w, 1.0)  # expect: unused-result
    S.vstore(v, y)
