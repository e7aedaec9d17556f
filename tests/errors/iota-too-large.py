from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    S.vstore(S.cast(S.iota("i8", 32, 100), "i32"), a)
