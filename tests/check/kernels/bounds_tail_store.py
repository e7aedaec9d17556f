"""A whole vector is stored where only a part of it fits."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(16), zeros(13))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        S.vstore(S.vload(a), b)
        S.vstore(S.vload(a + 8), b + 8)  # check-bounds: TEC 0 writes 'b[8:16]'
