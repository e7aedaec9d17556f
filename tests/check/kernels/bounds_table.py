"""A look-up table is shorter than its indices."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8), zeros(8))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    lut = S.alloc_const((4,), "int32", [2, 3, 5, 7])
    if S.get_local_id() == 0:
        for i in range(8):
            b[i] = lut[a[i]]  # check-bounds: reads 'lut[4]', which is out of bounds
