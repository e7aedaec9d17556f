"""An index of a gather is outside of the table."""

import numpy as np
from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (np.array([0, 1, 2, 3, 4, 5, 6, 99], "uint16"), ints(64), zeros(8))


@S.prim_func
def wrong(index: S.ptr("u16", "global"), table: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        S.vstore(S.vload_gather(table, S.vload(index, lanes=8)), b)  # check-bounds: 'table[99]'
