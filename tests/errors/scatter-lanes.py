from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), h: S.ptr("fp16", "global")):
    S.vstore_scatter(S.vload(a), a, S.vload(h))
