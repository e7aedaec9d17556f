"""The parts of the TECs overlap by one vector."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(64))


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    tid = S.get_local_id()
    for i in range(3):
        j = tid * 16 + i * 8
        if j < 64:
            S.vstore(S.vload(a + j) + tid, b + j)  # there # check-race: writes 'b[16:24]', which TEC 0 writes
