import numpy as np

from compassc.dsl import script as S

LIMIT = np.complex64(7)


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    a[0] = n + LIMIT
