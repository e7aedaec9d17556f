"""The last transfer is not waited for."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    tid = S.get_local_id()
    ev = S.alloc_events(1)
    S.dma_copy(buf, a + tid * 8, 8)
    S.async_dma_copy(b + tid * 8, buf, 8, event=ev)  # check-dma: TEC 0 starts a transfer with event 0 that nobody
