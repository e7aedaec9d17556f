"""A run-time size that is larger than the tensor."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(20), zeros(32), 24)


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    if S.get_local_id() == 0:
        for i in range(n):
            b[i] = a[i] + 1  # check-bounds: 'a[20]'
