"""A second transfer on an event that is still busy."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(64))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((16,), "int32", "lsram")
    tid = S.get_local_id()
    ev = S.alloc_events(1)
    S.async_dma_copy(buf, a + tid * 16, 8, event=ev)  # there
    S.async_dma_copy(buf.addr_of(8), a + tid * 16 + 8, 8, event=ev)  # check-dma: event 0, whose last one is still on
    S.wait_events(ev)
    S.free_events(ev)
    S.vstore(S.vload(buf), b + tid * 16)
    S.vstore(S.vload(buf.addr_of(8)), b + tid * 16 + 8)
