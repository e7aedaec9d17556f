"""The last vector of a tensor whose size is no multiple of 8."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(13), zeros(16))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        for i in range(2):
            S.vstore(S.vload(a + i * 8), b + i * 8)  # check-bounds: TEC 0 reads 'a[8:16]', which is out of bounds
