"""z = alpha * x + y, in halves; n is a multiple of 64."""

from compassc.dsl import script as S


@S.prim_func
def saxpy_fp16(
    x: S.ptr("fp16", "global"), y: S.ptr("fp16", "global"), z: S.ptr("fp16", "global"), alpha: S.fp32, n: S.i32
):
    scale = S.cast(alpha, "fp16")
    share = n // S.get_local_size()
    first = S.get_local_id() * share
    for i in range(first, first + share, 16):
        S.vstore(S.vload(x + i) * scale + S.vload(y + i), z + i)
