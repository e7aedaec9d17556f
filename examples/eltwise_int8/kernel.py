"""Quantised add: out = sat8(((a - za) * sa + (b - zb) * sb) / 2**shift + zo), rounded, on n int8 elements."""

from compassc.dsl import script as S

LANES = 32


@S.prim_func(is_inline=True)
def add_quantised(
    a: S.i8x32, b: S.i8x32, za: S.i32, sa: S.i32, zb: S.i32, sb: S.i32, shift: S.i32, zo: S.i32
) -> S.i8x32:
    # int8x32 widens to int32x32, four registers; the compiler splits all of this into them.
    wide = (S.cast(a, "int32") - za) * sa + (S.cast(b, "int32") - zb) * sb
    return S.cast(S.vsr(wide, shift, with_round=True) + zo, "int8", saturate=True)


@S.prim_func
def eltwise_int8(
    a: S.ptr("i8", "global"),
    b: S.ptr("i8", "global"),
    out: S.ptr("i8", "global"),
    n: S.i32,
    za: S.i32,
    sa: S.i32,
    zb: S.i32,
    sb: S.i32,
    shift: S.i32,
    zo: S.i32,
):
    # Shares are whole vectors; the TEC whose share ends in the middle of one has the tail.
    share = S.ceildiv(S.ceildiv(n, LANES), S.get_local_size()) * LANES
    first = S.get_local_id() * share
    last = S.min(first + share, n)
    whole = last // LANES * LANES
    for i in range(first, whole, LANES):
        S.vstore(add_quantised(S.vload(a + i), S.vload(b + i), za, sa, zb, sb, shift, zo), out + i)
    if first < last and whole < last:
        mask = S.tail_mask(last - whole, LANES)
        va = S.vload(a + whole, mask)
        vb = S.vload(b + whole, mask)
        S.vstore(add_quantised(va, vb, za, sa, zb, sb, shift, zo), out + whole, mask)
