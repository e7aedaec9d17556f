from compassc.dsl import script as S


def make():
    @S.prim_func
    def g(x: S.i32) -> S.i32:
        return x + 2

    return g


other = make()


@S.prim_func
def g(x: S.i32) -> S.i32:
    return x + 1


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = g(n)
    a[1] = other(n)
