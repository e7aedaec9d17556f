"""y = table[x], a table of 256 bytes; n is a multiple of 128."""

from compassc.dsl import script as S


@S.prim_func
def lut_u8(x: S.ptr("u8", "global"), table: S.ptr("u8", "global"), y: S.ptr("u8", "global"), n: S.i32):
    share = n // S.get_local_size()
    first = S.get_local_id() * share
    for i in range(first, first + share, 32):
        S.vstore(S.vload_gather(table, S.cast(S.vload(x + i), "u16")), y + i)
