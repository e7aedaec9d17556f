"""A tail mask for one lane too many."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(13), zeros(16))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        mask = S.tail_mask(6, 8)
        S.vstore(S.vload(a + 8, mask), b + 8, mask)  # check-bounds: 'a[8:14]'
