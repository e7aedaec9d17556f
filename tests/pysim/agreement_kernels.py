"""Kernels that use most of what PySim and the compiler must agree on; run by test_agreement.py."""

from compassc.dsl import script as S

TABLE = list(range(50, 58))


@S.prim_func
def memory_and_lanes(a: S.ptr("i32", "global"), h: S.ptr("fp16", "global"), out: S.ptr("i32", "global"), n: S.i32):
    x = S.vload(a)
    y = S.vload(a + 8, mask="5T")
    S.vstore(S.vconcat((x, y), "low"), out)
    S.vstore(S.vconcat((x, y), "odd"), out + 8)
    S.vstore(S.vzip(x, y, "high"), out + 16)
    z = S.vload(a, lanes=16)
    p, q = S.vsplit(z)
    S.vstore(p, out + 24)
    S.vstore(q, out + 32)
    S.vstore(S.vrevs(x), out + 40)
    S.vstore(S.vsel(x, y, mask=S.tail_mask(n, 8)), out + 48)
    S.vstore(S.vshfl(x, 3), out + 56)
    S.vstore(S.vsldl(x, y, 3), out + 64)
    S.vstore(S.vreplic(x, 2), out + 72)
    S.vstore(S.vtbl((x, y), S.i32x8([0, 1, 8, 9, 15, 16, 3, 5])), out + 80)
    S.vstore(S.vcompt(x, "TF2TF"), out + 88)
    S.vstore(S.vcompc(x, y, "TF2TF"), out + 96)
    S.vstore(S.vbcast(n), out + 104)
    hv = S.vload(h)
    S.vstore(S.cast(hv, "fp32", part="low"), (out + 112).as_ptr("fp32"))
    S.vstore(S.cast(hv, "i32"), out + 120)
    S.vstore(S.cast(x, "i8"), (out + 136).as_ptr("i8"))
    S.vstore(S.cast((x, y), "i16", saturate=True), (out + 144).as_ptr("i16"))
    S.vstore(S.reinterpret(x, "u32x8"), (out + 152))
    S.vstore(S.vxtl(S.cast((x, y), "i16")), out + 160)
    lut = S.alloc_const((8,), "int32", TABLE)
    S.vstore(S.vload(lut), out + 168)
    sram = S.alloc((64,), "i32", "lsram")
    S.dma_copy(sram, a, 16)
    ev = S.alloc_events(1)
    S.async_dma_copy(sram + 16, a, 16, event=ev)
    S.wait_events(ev)
    S.free_events(ev)
    S.vstore(S.vload(sram + 20), out + 176)
    S.vstore(S.vload_gather(a, S.cast(S.i32x8([1, 3, 5, 7, 0, 2, 4, 6]), "i16")), out + 184)
    S.vstore_scatter(x, out + 192, S.cast(S.i32x8([1, 3, 5, 7, 0, 2, 4, 6]), "i16"))
    S.dma_memset(sram, 7, 8)
    S.vstore(S.vload(sram), out + 200)
    S.dma_transpose2d(out + 208, sram + 16, 4, 4)
    m = S.const_mask("3T5F")
    S.vstore(x, out + 224, m)
    S.vstore(S.i(S.u(x)), out + 232, "8T", 2)
    S.flush_cache()
    S.perf_tick_begin(1)
    S.perf_tick_end(1)
    S.barrier()


@S.prim_func
def narrow_increment(x: S.i32) -> S.i8:
    return S.i8(x) + 1


@S.prim_func
def language(
    a: S.ptr("i32", "global"), b: S.ptr("i8", "global"), out: S.ptr("i32", "global"), n: S.i32, m: S.i16, f: S.fp32
):
    if S.get_local_id() != 0:
        return
    k = 5
    out[0] = n / k
    out[1] = n // 8
    out[2] = n % 8
    out[3] = n // 3
    out[4] = n % 3
    out[5] = n >> 2
    out[6] = n << 3
    out[7] = m * m
    out[8] = m + 40000
    out[9] = f * 3
    out[10] = S.i32(f) + k
    out[11] = narrow_increment(n)
    v = S.vload(a)
    w = S.vload(b)
    S.vstore(v / 3, out + 16)
    S.vstore(v // 4, out + 24)
    S.vstore(v % 4, out + 32)
    S.vstore(v >> 2, out + 40)
    S.vstore(v * k - n, out + 48)
    for i in range(3):
        out[56 + i] = (i - 2) / 2
        out[60 + i] = (i - 5) // 3
        out[64 + i] = w[i] + i
    u = v
    u[1] = 77
    S.vstore(u, out + 72)
    S.vstore(v, out + 80)
    S.vstore(v, out + 88)
    for i, j in S.grid(3, 3):
        if j > i:
            break
        out[96] = out[96] + 1
    t = 7
    t += n
    out[97] = t
    out[98] = 1 if n > 3 else 2
    out[99] = (n > 3) & (m > 3)
    x = 0.1
    out[100] = x * 1e8
    c = w > 3
    out[101] = S.vany(c)
    S.vstore(S.vsel(v, 0, mask=v > n), out + 104)
    b[0:8] = v
    S.vstore(v & 255 | 3 ^ v, out + 112)
    S.vstore(~v, out + 120)
    S.vstore(1 << (v & 7), out + 128)
