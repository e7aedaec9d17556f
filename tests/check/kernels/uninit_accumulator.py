"""A private accumulator that does not start at zero."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(8))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    total = S.alloc_buffer((8,), "int32")
    if S.get_local_id() == 0:
        for i in range(64):
            total[i % 8] = total[i % 8] + a[i]
        for i in range(8):
            b[i] = total[i]  # check-uninit: 'b[0]'
