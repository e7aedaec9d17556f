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
            for c in range(width):
                total = S.fp32x8(0)
                corner = x + (r * line + c * channels + k)
                for i in S.unroll(3):
                    for j in S.unroll(3):
                        total = S.fma(
                            total,
                            S.vload(corner + (i * line + j * channels)),
                            S.vload(w + ((3 * i + j) * channels + k)),
                        )
                S.vstore(total, y + ((r * width + c) * channels + k))
