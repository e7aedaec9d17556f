"""Every TEC adds to the same element."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(1))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    tid = S.get_local_id()
    b[0] = b[0] + a[tid]  # there # check-race: TEC 1 reads 'b[0]', which TEC 0 writes
