"""3x3 convolution of bytes by hand: weights packed once, two pixels and all outputs in registers."""

from compassc.dsl import script as S

CI = CO = 32
W = 32


@S.macro
def pack(source, to):
    e0 = S.vzip(S.vload(source), S.vload(source + 64), "low")
    e1 = S.vzip(S.vload(source + 32), S.vload(source + 96), "low")
    h0 = S.vzip(S.vload(source), S.vload(source + 64), "high")
    h1 = S.vzip(S.vload(source + 32), S.vload(source + 96), "high")
    S.vstore(S.vzip(e0, e1, "low"), to)
    S.vstore(S.vzip(e0, e1, "high"), to + 32)
    S.vstore(S.vzip(h0, h1, "low"), to + 64)
    S.vstore(S.vzip(h0, h1, "high"), to + 96)


@S.prim_func
def conv3x3(
    x: S.ptr("i8", "global"), weights: S.ptr("i8", "global"), y: S.ptr("i8", "global"), h: S.i32, w: S.i32, shift: S.i32
):
    wl = S.alloc(9 * CI * CO, "i8", "lsram")
    packed = S.alloc(9 * CI * CO, "i8", "lsram")
    rows = S.alloc(3 * (W + 2) * CI, "i8", "lsram")
    res = S.alloc(W * CO, "i8", "lsram")
    S.dma_copy(wl, weights, 9 * CI * CO)
    for g in range(0, 9 * CI, 4):
        pack(wl + g * CO, packed + g * CO)
    tiles = S.ceildiv(w, W)
    for turn in range(S.get_local_id(), h * tiles, S.get_local_size()):
        r = turn // tiles
        c = turn % tiles * W
        first = S.max(c - 1, 0)
        last = S.min(c + W + 1, w)
        for dy in range(3):
            at = r + dy - 1
            inside = at >= 0 and at < h
            if not inside or first != c - 1 or last != c + W + 1:
                S.dma_memset(rows + dy * (W + 2) * CI, 0, (W + 2) * CI)
            if inside:
                S.dma_copy(rows + (dy * (W + 2) + first - c + 1) * CI, x + (at * w + first) * CI, (last - first) * CI)
        words = rows.as_ptr("i32")
        for px in range(0, W, 2):
            a0 = S.i32x8(0)
            a1 = S.i32x8(0)
            a2 = S.i32x8(0)
            a3 = S.i32x8(0)
            b0 = S.i32x8(0)
            b1 = S.i32x8(0)
            b2 = S.i32x8(0)
            b3 = S.i32x8(0)
            for dy in range(3):
                for kk in range(24):
                    p = packed + (dy * 24 + kk) * 128
                    w0 = S.vload(p)
                    w1 = S.vload(p + 32)
                    w2 = S.vload(p + 64)
                    w3 = S.vload(p + 96)
                    v = S.reinterpret(S.vbcast(words[dy * (W + 2) * 8 + px * 8 + kk]), "int8x32")
                    u = S.reinterpret(S.vbcast(words[dy * (W + 2) * 8 + px * 8 + kk + 8]), "int8x32")
                    a0 = S.vqdpa(a0, v, w0)
                    a1 = S.vqdpa(a1, v, w1)
                    a2 = S.vqdpa(a2, v, w2)
                    a3 = S.vqdpa(a3, v, w3)
                    b0 = S.vqdpa(b0, u, w0)
                    b1 = S.vqdpa(b1, u, w1)
                    b2 = S.vqdpa(b2, u, w2)
                    b3 = S.vqdpa(b3, u, w3)
            va = S.vsr(S.vconcat((a0, a1, a2, a3)), shift, with_round=True)
            vb = S.vsr(S.vconcat((b0, b1, b2, b3)), shift, with_round=True)
            S.vstore(S.cast(va, "int8", saturate=True), res + px * CO)
            S.vstore(S.cast(vb, "int8", saturate=True), res + px * CO + CO)
        S.dma_copy(y + (r * w + c) * CO, res, S.min(W, w - c) * CO)
