"""The element before the first one."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    tid = S.get_local_id()
    for i in range(8):
        j = tid * 8 + i
        b[j] = a[j - 1]  # check-bounds: TEC 0 reads 'a[-1]'
