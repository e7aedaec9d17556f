"""A part of an LSRAM buffer that no transfer filled."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(24), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((32,), "int32", "lsram")
    if S.get_local_id() == 0:
        S.dma_copy(buf, a, 24)
        for i in range(4):
            S.vstore(S.vload(buf.addr_of(i * 8)) + 1, b + i * 8)  # check-uninit: TEC 0 stores a value that was never
