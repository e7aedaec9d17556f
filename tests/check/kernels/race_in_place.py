"""Neighbours are read while their TEC writes them."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(33), zeros(33))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    tid = S.get_local_id()
    for i in range(8):
        b[tid * 8 + i] = a[tid * 8 + i]
    S.barrier()
    for i in range(8):
        b[tid * 8 + i] = b[tid * 8 + i] + b[tid * 8 + i + 1]  # there # check-race: TEC 1 writes 'b[8]', which TEC 0
