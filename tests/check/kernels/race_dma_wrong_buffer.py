"""Two buffers take turns, but the wrong event is waited for."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(64))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf0 = S.alloc_buffer((8,), "int32", "lsram")
    buf1 = S.alloc_buffer((8,), "int32", "lsram")
    tid = S.get_local_id()
    ev0, ev1 = S.alloc_events(2)
    S.async_dma_copy(buf0, a + tid * 16, 8, event=ev0)
    S.async_dma_copy(buf1, a + tid * 16 + 8, 8, event=ev1)  # there
    S.wait_events(ev0)
    S.vstore(S.vload(buf0), b + tid * 16)
    S.vstore(S.vload(buf1), b + tid * 16 + 8)  # check-race: TEC 0 reads 'buf1[0:8]'
    S.wait_events(ev1)
    S.free_events(ev0, ev1)
