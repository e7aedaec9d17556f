"""Two asynchronous transfers to one buffer."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(64))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((16,), "int32", "lsram")
    tid = S.get_local_id()
    ev0, ev1 = S.alloc_events(2)
    S.async_dma_copy(buf, a + tid * 16, 12, event=ev0)  # there
    S.async_dma_copy(buf.addr_of(8), a + tid * 16 + 8, 8, event=ev1)  # check-race: TEC 0 writes 'buf[8:16]' while a
    S.wait_events(ev0, ev1)
    S.free_events(ev0, ev1)
    S.vstore(S.vload(buf), b + tid * 16)
