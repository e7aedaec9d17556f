"""TEC 0 prepares a table that all use at once."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    sh = S.alloc_buffer((8,), "int32", "shared")
    tid = S.get_local_id()
    if tid == 0:
        S.dma_copy(sh, a, 8)  # there
    S.vstore(S.vload(sh) * 2, b + tid * 8)  # check-race: TEC 1 reads 'sh[0]', which TEC 0 writes
