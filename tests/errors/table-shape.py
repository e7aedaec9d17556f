from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    t = S.alloc_const((3,), "int32", [1, 2])
    a[0] = t[n]
