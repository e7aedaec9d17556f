from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    t = S.alloc_const((8,), "int32", [1, 2, 3, 4, 5, 6, 7, 8])
    t[0] = a[0]
    S.vstore(S.vload(a), t)
