"""The lanes that a mask leaves out are stored too."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(8), zeros(8))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    if S.get_local_id() == 0:
        mask = S.tail_mask(5, 8)
        S.vstore(S.vload(a, mask), buf, mask)
        S.vstore(S.vload(buf) * 2, b)  # check-uninit: TEC 0 stores a value that was never set: 'b[5]'
