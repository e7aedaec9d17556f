from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    t = S.alloc_const((2,), "uint16", [1, 70000])
    a[0] = S.i32(t[1])
