from compassc.dsl import script as S


@S.prim_func
def k(a, b: int, *c: S.i32) -> str:
    pass
