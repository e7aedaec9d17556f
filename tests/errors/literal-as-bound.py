from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    for i in range(3000000000):
        a[0] = i
