"""A 16-bit scalar at an odd byte of an LSRAM buffer."""

import numpy as np

from compassc.dsl import script as S

ARGUMENTS = (np.arange(64, dtype="int8"), np.zeros(8, "int16"))


@S.prim_func
def wrong(a: S.ptr("i8", "global"), b: S.ptr("i16", "global")):
    buf = S.alloc_buffer((64,), "int8", "lsram")
    if S.get_local_id() == 0:
        S.dma_copy(buf, a, 64)
        p = buf.addr_of(5).as_ptr("i16")
        b[0] = p[0]  # check-align: 2 bytes at byte 5 of 'buf'
