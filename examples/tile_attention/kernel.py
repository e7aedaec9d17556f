"""out = softmax(q @ k.T / sqrt(D)) @ v of halves without the n x m matrix: keys and values come tile by tile."""

from compassc.dsl import script as S

QUERIES, KEYS, D = 24, 16, 64


@S.prim_func
def tile_attention(
    q: S.ptr("fp16", "global"), k: S.ptr("fp16", "global"), v: S.ptr("fp16", "global"), out: S.ptr("fp16", "global"),
    n: S.i32, m: S.i32,
):  # fmt: skip
    qs, ks = S.match_buffer(q, (n, D)), S.match_buffer(k, (m, D))
    vs, outs = S.match_buffer(v, (m, D)), S.match_buffer(out, (n, D))
    for t in S.parallel_tiles(S.ceildiv(n, QUERIES)):
        queries = S.cast(S.tile_load(qs, (t * QUERIES, 0), (QUERIES, D)), "fp32") * D**-0.5
        top = S.tile_full((QUERIES, 1), -1e30, "fp32")
        total = S.tile_full((QUERIES, 1), 0.0, "fp32")
        sums = S.tile_full((QUERIES, D), 0.0, "fp32")
        for at in S.pipelined(0, m, KEYS):
            keys, values = S.tile_load(ks, (at, 0), (KEYS, D)), S.tile_load(vs, (at, 0), (KEYS, D))
            scores = S.tile_dot(queries, keys, transpose_b=True)
            scores = S.tile_where(S.tile_index((1, KEYS)) < m - at, scores, -1e30)
            higher = S.max(top, S.tile_max(scores))
            weights, less = S.exp(scores - higher), S.exp(top - higher)
            total = total * less + S.tile_sum(weights)
            sums = S.tile_dot(weights, values, sums * less)
            top = higher
        S.tile_store(outs, (t * QUERIES, 0), S.cast(sums / total, "fp16"))
