from compassc.dsl import script as S


@S.prim_func
def k(a):
    a[0] = 1
