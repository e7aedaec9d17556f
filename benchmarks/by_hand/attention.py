"""Attention by hand: a query at a time, keys and values in tiles."""

from compassc.dsl import script as S

D = 64
KEYS = 32


@S.prim_func
def attention(
    q: S.ptr("fp16", "global"),
    k: S.ptr("fp16", "global"),
    v: S.ptr("fp16", "global"),
    out: S.ptr("fp16", "global"),
    n: S.i32,
    m: S.i32,
):
    ql = S.alloc(D, "fp16", "lsram")
    kl = S.alloc(KEYS * D, "fp16", "lsram")
    vl = S.alloc(KEYS * D, "fp16", "lsram")
    w = S.alloc(KEYS, "fp32", "lsram")
    res = S.alloc(D, "fp16", "lsram")
    for t in range(S.get_local_id(), n, S.get_local_size()):
        S.dma_copy(ql, q + t * D, D)
        q0 = S.cast(S.vload(ql, lanes=32), "fp32") * 0.125
        q1 = S.cast(S.vload(ql + 32, lanes=32), "fp32") * 0.125
        top = S.fp32(-1e30)
        total = S.fp32(0.0)
        o0 = S.fp32x32(0)
        o1 = S.fp32x32(0)
        for at in range(0, m, KEYS):
            now = S.min(KEYS, m - at)
            S.dma_copy(kl, k + at * D, now * D)
            S.dma_copy(vl, v + at * D, now * D)
            higher = top
            for j in range(now):
                a = q0 * S.cast(S.vload(kl + j * D, lanes=32), "fp32") + q1 * S.cast(
                    S.vload(kl + j * D + 32, lanes=32), "fp32"
                )
                s = S.vrpadd(a)[0]
                w[j] = s
                higher = S.max(higher, s)
            less = S.exp(top - higher)
            total = total * less
            o0 = o0 * less
            o1 = o1 * less
            for j in range(0, now, 8):
                S.vstore(S.exp(S.vload(w + j) - higher), w + j)
            for j in range(now):
                p = w[j]
                total = total + p
                o0 = S.fma(o0, p, S.cast(S.vload(vl + j * D, lanes=32), "fp32"))
                o1 = S.fma(o1, p, S.cast(S.vload(vl + j * D + 32, lanes=32), "fp32"))
            top = higher
        one = 1.0 / total
        S.vstore(S.cast(o0 * one, "fp16"), res)
        S.vstore(S.cast(o1 * one, "fp16"), res + 32)
        S.dma_copy(out + t * D, res, D)
