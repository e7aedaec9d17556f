from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    s = S.alloc(8, "i32", "lsram")
    a[0] = S.atomic_add(s, n)
