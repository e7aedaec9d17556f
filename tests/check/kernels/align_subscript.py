"""A vector pointer that was made of a pointer to bytes."""

import numpy as np
from check_data import zeros

from compassc.dsl import script as S

ARGUMENTS = (np.arange(72, dtype="int8"), zeros(16))


@S.prim_func
def wrong(a: S.ptr("i8", "global"), b: S.ptr("i32x8", "global")):
    if S.get_local_id() == 0:
        p = (a + 6).as_ptr("i32x8")
        b[0] = p[1]  # check-align: TEC 0 reads elements of 4 bytes at byte 38 of 'a', which is no multiple of 4
