from compassc.dsl import script as S


@S.macro
def swap(p, q):
    t = p[0]
    t = q[0]
    q[0] = t


@S.prim_func
def k(a: S.ptr("i32", "global"), f: S.ptr("fp32", "global")):
    swap(a, f)
