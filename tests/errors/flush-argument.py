from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    S.flush_cache(1, 2, 3)
