"""A function is given a pointer that is too far on."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def copy(src: S.ptr("i32", "global"), dst: S.ptr("i32", "global"), n: S.i32):
    for i in range(n):
        dst[i] = src[i]  # check-bounds: TEC 3 reads 'a[32]'


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    tid = S.get_local_id()
    if tid == 3:
        copy(a + tid * 8 + 4, b + tid * 8, 8)
