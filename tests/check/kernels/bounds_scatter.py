"""An index of a scatter is outside of the tensor."""

import numpy as np
from check_data import zeros

from compassc.dsl import script as S

ARGUMENTS = (np.arange(8, dtype="uint16") * 3, zeros(20))


@S.prim_func
def wrong(index: S.ptr("u16", "global"), b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        S.vstore_scatter(S.int32x8(1), b, S.vload(index, lanes=8))  # check-bounds: 'b[21]'
