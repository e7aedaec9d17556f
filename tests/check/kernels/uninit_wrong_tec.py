"""LSRAM is filled by one TEC and read by all: each has its own."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    tid = S.get_local_id()
    if tid == 0:
        S.dma_copy(buf, a, 8)
    S.barrier()
    S.vstore(S.vload(buf), b + tid * 8)  # check-uninit: TEC 1 stores a value that was never set: 'b[8]'
