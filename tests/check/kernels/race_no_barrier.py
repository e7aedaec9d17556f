"""A shared buffer is read without a barrier after it was written."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    sh = S.alloc_buffer((32,), "int32", "shared")
    tid = S.get_local_id()
    S.vstore(S.vload(a + tid * 8), sh.addr_of(tid * 8))  # there
    S.vstore(S.vload(sh.addr_of((tid + 3) % 4 * 8)), b + tid * 8)  # check-race: TEC 1 reads 'sh[0]', which TEC 0
