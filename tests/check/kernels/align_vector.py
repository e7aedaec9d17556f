"""A vector of 32-bit elements at an odd byte."""

import numpy as np
from check_data import zeros

from compassc.dsl import script as S

ARGUMENTS = (np.arange(64, dtype="int8"), zeros(8))


@S.prim_func
def wrong(a: S.ptr("i8", "global"), b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        p = (a + 3).as_ptr("i32")
        S.vstore(S.vload(p), b)  # check-align: TEC 0 reads elements of 4 bytes at byte 3 of 'a', which is no
