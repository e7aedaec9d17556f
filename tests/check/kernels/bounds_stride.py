"""A strided load whose last lanes are behind the end."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(16), zeros(8))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        S.vstore(S.vload(a, stride=3), b)  # check-bounds: 'a[18]'
