from compassc.dsl import script as S


@S.prim_func
def g(n: S.i32) -> S.ptr("i32", "lsram"):
    t = S.alloc(8, "i32", "lsram")
    return t


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    p = g(n)
    a[0] = p[0]
