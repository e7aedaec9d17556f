"""Add one to eight integers: the smallest useful kernel."""

from compassc.dsl import script as S


@S.prim_func
def vadd(a: S.ptr("int32", "global"), b: S.ptr("int32", "global")):
    va = S.vload(a)
    vb = S.vadd(va, 1)
    S.vstore(vb, b)
