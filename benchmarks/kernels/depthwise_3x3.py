"""A 3x3 filter per channel; the input has a border of one pixel, channels are last and a multiple of 8."""

from compassc.dsl import script as S

LANES = 8


@S.prim_func
def depthwise_3x3(
    x: S.ptr("fp32", "global"),
    w: S.ptr("fp32", "global"),
    y: S.ptr("fp32", "global"),
    height: S.i32,
    width: S.i32,
    channels: S.i32,
):
    line = (width + 2) * channels
    for r in range(S.get_local_id(), height, S.get_local_size()):
        for k in range(0, channels, LANES):
            w0 = S.vload(w + k)
            w1 = S.vload(w + (channels + k))
            w2 = S.vload(w + (2 * channels + k))
            w3 = S.vload(w + (3 * channels + k))
            w4 = S.vload(w + (4 * channels + k))
            w5 = S.vload(w + (5 * channels + k))
            w6 = S.vload(w + (6 * channels + k))
            w7 = S.vload(w + (7 * channels + k))
            w8 = S.vload(w + (8 * channels + k))
            for c in range(width):
                top = x + (r * line + c * channels + k)
                middle = top + line
                low = middle + line
                total = S.fma(S.fp32x8(0), S.vload(top), w0)
                total = S.fma(total, S.vload(top + channels), w1)
                total = S.fma(total, S.vload(top + 2 * channels), w2)
                total = S.fma(total, S.vload(middle), w3)
                total = S.fma(total, S.vload(middle + channels), w4)
                total = S.fma(total, S.vload(middle + 2 * channels), w5)
                total = S.fma(total, S.vload(low), w6)
                total = S.fma(total, S.vload(low + channels), w7)
                total = S.fma(total, S.vload(low + 2 * channels), w8)
                S.vstore(total, y + ((r * width + c) * channels + k))
