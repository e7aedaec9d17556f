from compassc.dsl import script as S


@S.macro
def swap(p, q):
    p[0] = q[0]


@S.prim_func
def k(a: S.ptr("i32", "global")):
    swap(a)
