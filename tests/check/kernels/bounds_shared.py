"""A shared buffer is indexed with the number of elements."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    sh = S.alloc_buffer((32,), "int32", "shared")
    tid = S.get_local_id()
    for i in range(8):
        sh[tid * 8 + i + 1] = a[tid * 8 + i]  # check-bounds: TEC 3 writes 'sh[32]'
    S.barrier()
    for i in range(8):
        b[tid * 8 + i] = sh[tid * 8 + i]
