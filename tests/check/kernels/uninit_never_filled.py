"""A buffer that nobody fills at all."""

from check_data import zeros

from compassc.dsl import script as S

ARGUMENTS = (zeros(8),)


@S.prim_func
def wrong(b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    if S.get_local_id() == 0:
        S.vstore(S.vload(buf), b)  # check-uninit: TEC 0 stores a value that was never set: 'b[0]'
