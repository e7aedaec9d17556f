import numpy as np

from compassc.dsl import script as S

LANES = 8
TABLE = np.arange(16, dtype="int32") ** 2
ACT = "relu"


def activation(v):
    if ACT == "relu":
        return S.max(v, 0)
    return v


@S.macro
def accumulate(acc, v):
    acc = acc + v


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    table = TABLE
    acc = S.i32x8(0)
    for i in range(n // LANES):
        v = activation(S.vload(x + i * LANES))
        accumulate(acc, v)
    rest = n % LANES
    if rest != 0:
        m = S.tail_mask(rest, LANES)
        accumulate(acc, S.vload(x + n - rest, mask=m))
    y[0] = S.vrpadd(acc)[0] + table[3]
    S.printf("%d\n", y[0])
