"""The offset of a TEC is multiplied by its size twice."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(32), zeros(32))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    tid = S.get_local_id()
    S.vstore(S.vload(a + tid * 8), b + tid * 8 * 8)  # check-bounds: TEC 1 writes 'b[64:72]'
