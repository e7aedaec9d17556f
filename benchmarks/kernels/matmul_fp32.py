"""c = a @ b for n x n floats, 32 neighbours of a row at a time; n is a multiple of 32."""

from compassc.dsl import script as S

LANES = 8


@S.prim_func
def matmul_fp32(a: S.ptr("fp32", "global"), b: S.ptr("fp32", "global"), c: S.ptr("fp32", "global"), n: S.i32):
    for i in range(S.get_local_id(), n, S.get_local_size()):
        for j in range(0, n, 4 * LANES):
            s0 = S.fp32x8(0)
            s1 = S.fp32x8(0)
            s2 = S.fp32x8(0)
            s3 = S.fp32x8(0)
            for k in range(n):
                factor = S.fp32x8(a[i * n + k])
                row = b + (k * n + j)
                s0 = S.fma(s0, factor, S.vload(row))
                s1 = S.fma(s1, factor, S.vload(row + LANES))
                s2 = S.fma(s2, factor, S.vload(row + 2 * LANES))
                s3 = S.fma(s3, factor, S.vload(row + 3 * LANES))
            out = c + (i * n + j)
            S.vstore(s0, out)
            S.vstore(s1, out + LANES)
            S.vstore(s2, out + 2 * LANES)
            S.vstore(s3, out + 3 * LANES)
