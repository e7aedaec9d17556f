"""The buffer of an asynchronous transfer is used before it arrived."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    tid = S.get_local_id()
    ev = S.alloc_events(1)
    S.async_dma_copy(buf, a + tid * 8, 8, event=ev)  # there
    S.vstore(S.vload(buf), b + tid * 8)  # check-race: TEC 0 reads 'buf[0:8]' while a transfer of its own writes it
    S.free_events(ev)
