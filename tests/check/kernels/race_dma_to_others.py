"""A transfer brings what another TEC reads in the same phase."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    sh = S.alloc_buffer((32,), "int32", "shared")
    tid = S.get_local_id()
    ev = S.alloc_events(1)
    S.async_dma_copy(sh.addr_of(tid * 8), a + tid * 8, 8, event=ev)  # there
    S.wait_events(ev)
    S.free_events(ev)
    if tid > 0:
        S.vstore(S.vload(sh.addr_of((tid - 1) * 8)), b + tid * 8)  # check-race: TEC 1 reads 'sh[0]', which TEC 0
