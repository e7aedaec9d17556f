"""An asynchronous transfer writes behind the tensor."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(40))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((64,), "int32", "lsram")
    if S.get_local_id() == 0:
        ev = S.alloc_events(1)
        S.dma_copy(buf, a, 64)
        S.async_dma_copy(b, buf, 64, event=ev)  # check-bounds: TEC 0 writes 'b[0:64]'
        S.free_events(ev)
        b[0] = 1
