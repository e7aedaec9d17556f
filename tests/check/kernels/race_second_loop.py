"""The shared buffer is filled again while others still read it."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    sh = S.alloc_buffer((4,), "int32", "shared")
    tid = S.get_local_id()
    for i in range(4):
        sh[tid] = a[i * 4 + tid]  # there
        S.barrier()
        b[i * 4 + tid] = sh[0] + sh[1] + sh[2] + sh[3]  # check-race: TEC 1 reads 'sh[0]', which TEC 0 writes
