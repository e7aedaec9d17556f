"""A vector loop over an LSRAM buffer goes one vector too far."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(64))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((56,), "int32", "lsram")
    if S.get_local_id() == 0:
        S.dma_copy(buf, a, 56)
        for i in range(8):
            S.vstore(S.vload(buf.addr_of(i * 8)), b + i * 8)  # check-bounds: TEC 0 reads 'buf[56:64]'
