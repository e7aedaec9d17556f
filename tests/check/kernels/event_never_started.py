"""The wait is for another event than the transfer."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    tid = S.get_local_id()
    ev0, ev1 = S.alloc_events(2)
    S.async_dma_copy(buf, a + tid * 8, 8, event=ev0)
    S.wait_events(ev1)  # check-dma: TEC 0 waits for event 1, which no transfer was started with
    S.wait_events(ev0)
    S.vstore(S.vload(buf), b + tid * 8)
    S.free_events(ev0, ev1)
