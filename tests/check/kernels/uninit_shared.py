"""A shared buffer whose last element nobody writes."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    sh = S.alloc_buffer((33,), "int32", "shared")
    tid = S.get_local_id()
    S.vstore(S.vload(a + tid * 8), sh.addr_of(tid * 8))
    S.barrier()
    for i in range(8):
        b[tid * 8 + i] = sh[tid * 8 + i] + sh[tid * 8 + i + 1]  # check-uninit: TEC 3 stores a value that was never
