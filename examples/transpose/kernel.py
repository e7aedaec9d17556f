"""dst[c, r] = src[r, c] for a matrix of h x w floats."""

from compassc.dsl import script as S

LANES = 8


@S.prim_func
def transpose(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global"), h: S.i32, w: S.i32):
    src = S.match_buffer(x, (h, w))
    dst = S.match_buffer(y, (w, h))

    whole = w // LANES * LANES
    for r in range(S.get_local_id(), h, S.get_local_size()):
        # Eight neighbours of a row become a column: consecutive elements are h apart in dst.
        for c in range(0, whole, LANES):
            S.vstore(src[r, c : c + LANES], dst.addr_of((c, r)), stride=h)
        for c in range(whole, w):
            dst[c, r] = src[r, c]
