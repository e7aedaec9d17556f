from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("u8", "global"), y: S.ptr("u8", "global"), n: S.i32):
    src = x
    dst = y
    left = n
    while left >= 32:
        S.vstore(S.vload(src), dst)
        src = src + 32
        dst = dst + 32
        left = left - 32
    for i in range(left):
        dst[i] = src[i]
