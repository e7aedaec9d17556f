"""Kernels whose C is known: what the vendor's compiler prints for them is in `spec_c/NAME.cl`."""

from compassc.dsl import script as S


@S.prim_func
def relu_sum(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global"), n: S.i32, bias: S.fp32):
    total = S.fp32(0)
    for i in range(n):
        v = x[i] + bias
        if v < 0.0:
            y[i] = 0.0
        else:
            y[i] = v
            total += v
    y[n] = total


@S.prim_func
def satadd(x: S.ptr("i16", "global"), y: S.ptr("i16", "global"), n: S.i32):
    full = n // 16
    for b in range(full):
        S.vstore(S.vadd(S.vload(x + b * 16), S.vload(y + b * 16), saturate=True), y + b * 16)
    rest = n % 16
    if rest > 0:
        m = S.tail_mask(rest, 16)
        xv = S.vload(x + full * 16, m)
        yv = S.vload(y + full * 16, m)
        S.vstore(S.vadd(xv, yv, m, saturate=True, r=0), y + full * 16, m)


@S.prim_func
def row_scale(src: S.ptr("fp16", "global"), dst: S.ptr("fp16", "global"), rows: S.i32, cols: S.i32):
    s2 = S.match_buffer(src, (rows, cols))
    d2 = S.match_buffer(dst, (rows, cols))
    for r in range(rows):
        k = S.max(s2[r, 0], S.fp16(1))
        for c in range(cols):
            d2[r, c] = s2[r, c] * k


@S.prim_func
def tile_inc(src: S.ptr("u8", "global"), dst: S.ptr("u8", "global"), total: S.i32):
    buf = S.alloc((2048,), "uint8", scope="lsram")
    tec = S.get_local_id()
    per = S.ceildiv(total, S.get_local_size())
    lo = tec * per
    left = S.min(per, total - lo)
    for off in range(0, left, 2048):
        now = S.min(left - off, 2048)
        S.dma_copy(buf, src + lo + off, now)
        for j in range(0, now, 32):
            S.vstore(S.vadd(S.vload(buf + j), 1, saturate=True), buf + j)
        S.dma_copy(dst + lo + off, buf, now)


@S.prim_func
def soft(v: S.fp32x8, lo: S.fp32) -> S.fp32x8:
    t = S.max(v, lo)
    return t / (S.abs(t) + 1.0)


@S.prim_func
def pick(p: S.ptr("i32", "global"), i: S.i32) -> S.i32:
    if p[i] < 0:
        return 0
    return p[i]


@S.prim_func
def use_sub(a: S.ptr("fp32", "global"), idx: S.ptr("i32", "global"), out: S.ptr("fp32", "global"), n: S.i32):
    for i in range(n):
        j = pick(idx, i)
        S.vstore(soft(S.vload(a + j * 8), -2.5), out + i * 8)


@S.prim_func
def mul8(p: S.ptr("i8", "global"), q: S.ptr("i8", "global"), o: S.ptr("i16", "global"), w: S.ptr("i8", "global")):
    pv = S.vload(p)
    qv = S.vload(q)
    prod = S.cast(pv, "int16") * S.cast(qv, "int16")
    S.vstore(prod, o)
    S.vstore(S.cast(prod >> 7, "int8", saturate=True), w)
