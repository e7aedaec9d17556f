from compassc.dsl import script as S


@S.prim_func
def pick(a: S.i32, b: S.i32) -> S.i32:
    if a > b:  # expect: no-return
        return a


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    y[0] = pick(x[0], x[1])
