"""An event is waited for after it was freed."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    tid = S.get_local_id()
    ev = S.alloc_events(1)
    S.async_dma_copy(buf, a + tid * 8, 8, event=ev)
    S.free_events(ev)
    S.wait_events(ev)  # check-dma: TEC 0 uses event 0, which is not allocated
    S.vstore(S.vload(buf), b + tid * 8)
