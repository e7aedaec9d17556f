"""The source of an asynchronous transfer is written before it is read."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    tid = S.get_local_id()
    ev = S.alloc_events(1)
    S.dma_copy(buf, a + tid * 8, 8)
    S.async_dma_copy(b + tid * 8, buf, 8, event=ev)  # there
    buf[3] = 7  # check-race: TEC 0 writes 'buf[3]' while a transfer of its own reads it
    S.wait_events(ev)
    S.free_events(ev)
