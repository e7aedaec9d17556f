from compassc.dsl import script as S


@S.prim_func
def k(a: S.ptr("i32", "global")):
    S.printf("{}".format(S.vload(a)))
    a[0] = 1
