"""A store whose pointer was moved by bytes."""

import numpy as np
from check_data import ints

from compassc.dsl import script as S

ARGUMENTS = (ints(8), np.zeros(64, "int8"))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i8", "global")):
    if S.get_local_id() == 0:
        S.vstore(S.vload(a), (b + 2).as_ptr("i32"), stride=2)  # check-align: TEC 0 writes elements of 4 bytes at
