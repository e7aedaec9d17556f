"""Small kernels that once went wrong, by what went wrong. Parameter names tell types, as in generated programs."""

from compassc.dsl import script as S


@S.prim_func
def scalar_float_to_integers(
    in_fp32: S.ptr("fp32", "global"),
    in_fp16: S.ptr("fp16", "global"),
    out_i32: S.ptr("i32", "global"),
    out_u32: S.ptr("u32", "global"),
    out_i8: S.ptr("i8", "global"),
    out_u16: S.ptr("u16", "global"),
):
    """Out of range and NaN, as much as in range."""
    if S.get_local_id() == 0:
        for i in range(128):
            out_i32[i] = S.i32(in_fp32[i])
            out_u32[i] = S.u32(in_fp32[i])
            out_i8[i] = S.i8(in_fp16[i])
            out_u16[i] = S.u16(in_fp32[i])
            out_i8[i + 128] = S.i8(in_fp32[i])


@S.prim_func
def narrow_integers(
    in_u8: S.ptr("u8", "global"),
    in_i16: S.ptr("i16", "global"),
    out_u8: S.ptr("u8", "global"),
    out_i16: S.ptr("i16", "global"),
):
    """C shifts and inverts in int; overloads go by the type."""
    if S.get_local_id() == 0:
        for i in range(64):
            x = in_u8[i]
            y = in_i16[i]
            out_u8[i] = (x << 3) >> 2
            out_u8[i + 64] = S.max(x & 15, in_u8[i + 64] >> 1)
            out_u8[i + 128] = S.clz(x << 1)
            out_u8[i + 192] = 1 if (~x) > 100 else 2
            out_i16[i] = S.min((y if x > 5 else in_i16[0]), y % 7)
            out_i16[i + 64] = S.reinterpret(in_i16[i] | 3, "u16")
            out_i16[i + 128] = S.i32(y << 5)


@S.prim_func
def overlapping_wide_store(out_u8: S.ptr("u8", "global"), out_i32: S.ptr("i32", "global"), n: S.i32):
    """A store of several registers reads all before it writes."""
    if S.get_local_id() == 0:
        S.vstore(out_u8[9:73], out_u8 + ((n & 15) + 20))
        S.vstore(S.i32x16(1), out_i32 + ((out_i32[40] & 63) + 32))
        moved = out_i32 + 128
        S.vstore(S.vload(out_i32 + 128, lanes=24) + 1, moved + 4, mask=moved[4:28] > 0)
        S.vstore_scatter(out_i32[200:232], out_i32 + 190, S.u16x32(3) + S.cast(out_u8[0:32] & 7, "u16"))


@S.prim_func
def overlapping_strided_store(out_fp16: S.ptr("fp16", "global")):
    if S.get_local_id() == 0:
        S.vstore(out_fp16[0:80:2], out_fp16 + S.i16(1), stride=3)


@S.prim_func
def unused_wide_value(in_i16: S.ptr("i16", "global"), out_i16: S.ptr("i16", "global")):
    v = ~in_i16[31:63]  # noqa: F841
    w = S.vload(in_i16, lanes=20) + S.i16(1)  # noqa: F841
    out_i16[0] = 1


@S.prim_func
def constant_mask_test(out_i32: S.ptr("i32", "global")):
    if S.vall(S.const_mask("8T")):
        out_i32[0] = 1
    if S.vany(S.vinv(S.const_mask("16T"))):
        out_i32[1] = 1


@S.prim_func
def division_by_a_bool(in_fp32: S.ptr("fp32", "global"), out_i32: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        S.vstore(S.i32x8(9) // (in_fp32[0] > 1e30), out_i32)


@S.prim_func
def store_of_what_is_there(out_u8: S.ptr("u8", "global"), out_i32: S.ptr("i32", "global")):
    """The dropped store is one use less of its pointer, not two."""
    tid = S.get_local_id()
    p = out_u8 + tid * 128
    p[3] -= S.u8(S.u16(1) << 11)
    out_i32[tid] = p[5]


@S.prim_func
def power_operator(
    in_fp32: S.ptr("fp32", "global"),
    in_i32: S.ptr("i32", "global"),
    in_fp16: S.ptr("fp16", "global"),
    in_u16: S.ptr("u16", "global"),
    out_fp32: S.ptr("fp32", "global"),
):
    """`**` rounds as S.pow does."""
    if S.get_local_id() == 0:
        for i in range(8):
            S.vstore(in_i32[0:8] ** in_fp32[i], out_fp32 + i * 16)
            out_fp32[i * 16 + 8] = (in_fp32[i + 8] * in_fp32[i + 8]) ** in_fp32[i]
            out_fp32[i * 16 + 9] = in_fp32[i + 16] ** 0.5
        S.vstore(in_fp32[32:64] ** 0.5, out_fp32 + 160)
        S.vstore(S.pow(in_fp32[64:80], -1.0), out_fp32 + 192)
        signalling = S.reinterpret((in_u16[0:16] & 1) | 0x7C01, "fp16x16")
        S.vstore(S.cast(S.pow(signalling, in_fp16[0:16] * S.fp16(0)), "fp32"), out_fp32 + 224)


@S.prim_func
def lane_of_an_inverted_mask(h: S.fp16, n: S.i32, out_i32: S.ptr("i32", "global")):
    """A mask made of a bool is 1 or all ones per lane, inverted it is even or zero."""
    m = ~S.vbcast(S.isfinite(h), lanes=8)
    out_i32[0] = S.i32(1) if m[7] else S.i32(0)
    k = ~S.vbcast(n > 0, lanes=32)
    out_i32[1] = S.i32(1) if k[7] and m[3] else S.i32(0)


@S.prim_func
def rounded_literals(out_fp32: S.ptr("fp32", "global"), out_i32: S.ptr("i32", "global")):
    """A typed literal is rounded to its type before it is converted on."""
    if S.get_local_id() == 0:
        out_fp32[0] = S.fp32(1) / S.fp16(0.001)
        out_fp32[1] = S.fp32(S.bf16(0.1))
        out_i32[0] = S.i32(16777217.0)
        out_i32[1] = S.i32(S.fp16(2049))
        S.vstore(S.fp32x8(1) - S.fp16(0.1), out_fp32 + 8)


@S.prim_func
def constant_masks_zipped(in_u8: S.ptr("u8", "global"), out_u8: S.ptr("u8", "global")):
    if S.get_local_id() == 0:
        v = S.vload(in_u8, lanes=64)
        m = S.vzip(S.tail_mask(34, 64), S.const_mask("61T3F"), part="even") & (v > 9)
        S.vstore(S.vsel(v, S.u8x64(3), mask=m), out_u8)
        k = S.vconcat((S.const_mask("32T"), S.const_mask("32T")), "low")
        S.vstore(S.vsel(v, S.u8x64(5), mask=S.vconcat((k, ~k))), out_u8 + 64)


@S.prim_func
def sub_three_lanes(a: S.i8x3, b: S.i8x3) -> S.boolx3:
    return a < b


@S.prim_func
def returned_flexible_mask(in_i8: S.ptr("i8", "global"), out_i8: S.ptr("i8", "global")):
    """A mask is returned in registers that the caller knows, whatever it was made from."""
    if S.get_local_id() == 0:
        a, b = S.vload(in_i8, lanes=3), S.vload(in_i8 + 8, lanes=3)
        S.vstore(S.vsel(a, b, mask=sub_three_lanes(a, b)), out_i8)


@S.prim_func
def sub_narrow_mask(m: S.boolx32, v: S.u32x8) -> S.boolx32:
    return m & ~S.const_mask("16TF")


@S.prim_func
def unused_mask(out_u8: S.ptr("u8", "global")):
    """What a function returned and nobody uses has any width."""
    if S.get_local_id() == 0:
        m = sub_narrow_mask(S.const_mask("32T"), S.u32x8(out_u8[0]))  # noqa: F841
        out_u8[1] = 3


@S.prim_func
def lane_of_a_constant_mask(out_i32: S.ptr("i32", "global")):
    m = S.const_mask("8T")
    k = S.const_mask("3T13F")
    if not m[5]:
        out_i32[0] = 3
    if k[2] and not k[3]:
        out_i32[1] = 4


@S.prim_func
def narrow_offsets(in_u8: S.ptr("u8", "global"), b: S.i8, u: S.u8, out_u8: S.ptr("u8", "global")):
    """Offsets are sums of 32 bits, also of narrow operands."""
    if S.get_local_id() == 0:
        i = (b & 1) + 105
        v = S.vload(in_u8 + i, lanes=64)
        S.vstore(v, out_u8 + ((b & 3) + 120))
        n = S.i32(i)
        S.vstore(in_u8[n : n + 64], out_u8 + 192, stride=3)
        p = in_u8 + i
        out_u8[0] = (p + (b & 100))[3]
        table = S.alloc_buffer((30, 8), "u8", "lsram")
        for j in range(240):
            table[j // 8, j % 8] = in_u8[j]
        k = (u & 7) + 20
        out_u8[1] = table[(b & 3) + 25, b & 7]
        out_u8[2] = table[k, 5]
        out_u8[8:16] = table[k, 0:8]
        q = table.addr_of((k, b & 3))
        out_u8[3] = q[1]
        w = q.as_ptr("i8")
        out_u8[4] = w[(b & 31) + 2]


@S.prim_func
def shifted_selection(in_i8: S.ptr("i8", "global"), out_i8: S.ptr("i8", "global")):
    if S.get_local_id() == 0:
        v = in_i8[6:38]
        inner = S.vsel(S.vinv(S.i8x32(1), mask=S.const_mask("31T1F")), v, mask=S.const_mask("31T1F"))
        S.vstore(S.vsel(inner, S.i8x32(-1), mask="FTTFFTFTFFFTTTFTFFTTTTFTFTTTTTFT") >> 3, out_i8)


@S.prim_func
def sub_increment(p: S.ptr("i32", "private"), by: S.i32 = 5):
    p[0] = p[0] + by


@S.prim_func
def address_of_a_variable(in_i32: S.ptr("i32", "global"), out_i32: S.ptr("i32", "global"), n: S.i32):
    """Whoever writes, the variable or a pointer to it, the other one sees it."""
    if S.get_local_id() == 0:
        x = in_i32[0]
        q = x.addr
        x = x + 1
        out_i32[0] = q[0]
        q[0] = 9
        x ^= n
        out_i32[1] = q[0]
        x, n = n, x
        out_i32[2] = q[0]
        x, before = n + 1, q[0]
        out_i32[5] = before
        sub_increment(x.addr)
        sub_increment(by=n, p=q)
        out_i32[3] = x
        v = in_i32[0:8]
        w = v.addr
        v = v + n
        S.vstore(w[0], out_i32 + 8)
        w[0] = w[0] - 1
        v[n & 7] = 77
        S.vstore(v, w)
        S.vstore(w[0] + v, out_i32 + 16)
        z = n
        other = n.addr
        n = z if n > z else n + 1
        out_i32[4] = z + other[0]
        for i in range(3):
            y = x + i
            r = y.addr
            y *= 2
            out_i32[24 + i] = r[0]


@S.macro
def double(x, i, out):
    copy = x
    at = copy.addr
    copy += 1
    at[0] = at[0] * 2
    x = copy
    out[i] = at[0]


@S.prim_func
def addresses_in_a_macro(out_i32: S.ptr("i32", "global"), n: S.i32):
    if S.get_local_id() == 0:
        at = n.addr
        double(n, 0, out_i32)
        double(n, 1, out_i32)
        out_i32[2] = at[0]


@S.prim_func
def sub_nearest(p: S.ptr("i32", "global"), q: S.ptr("i32", "global"), n: S.i32) -> S.ptr("i32", "global"):
    if n > 3:
        return p + (n & 3)
    return q + 2


@S.prim_func
def compared_pointers(in_i32: S.ptr("i32", "global"), out_i32: S.ptr("i32", "global"), n: S.i32):
    """Pointers into different memory are not equal."""
    if S.get_local_id() == 0:
        own = S.alloc((8,), "i32", "lsram")
        q = sub_nearest(in_i32, in_i32 + 8, n)
        if in_i32 == out_i32:
            out_i32[0] = 1
        if q != out_i32 + 2:
            out_i32[1] = 2
        other = own + (n & 1)
        out_i32[2] = S.i32(3) if other != own else S.i32(4)
        out_i32[3] = S.i32(5) if q < in_i32 + 8 else S.i32(6)
        out_i32[4] = S.vload(sub_nearest(in_i32, out_i32, 2))[1] if q == in_i32 else q[0]


@S.prim_func
def division_of_constants(out_i32: S.ptr("i32", "global"), n: S.i32):
    """Only a literal power of two rounds down, whatever is known of a variable."""
    if S.get_local_id() == 0:
        x, two = -5, 2
        out_i32[0] = S.i32(-5) // 3
        out_i32[1] = x // 3
        out_i32[2] = x % 3
        out_i32[3] = x // two
        out_i32[4] = n // two + n % (two * 2)
        out_i32[5] = n // 2 + n % 4
        for i in range(-5, -4):
            out_i32[6] = i // 3
            out_i32[7] = i % 3
            out_i32[8] = i // 2
        for i in range(1):
            out_i32[9] = (i - 7) // 3 + (i - 7) // two


@S.prim_func
def long_compilation(
    in_i8: S.ptr("i8", "global"),
    in_bf16: S.ptr("bf16", "global"),
    out_i8: S.ptr("i8", "global"),
    out_i32: S.ptr("i32", "global"),
    out_bf16: S.ptr("bf16", "global"),
):
    """The vectorizer of clang 23 did not come to an end here."""
    if S.get_local_id() == 0:
        wide = S.cast(out_i32[12:76], "u16", saturate=True) & 127
        least = S.vminh(S.vload_gather(out_i8, wide), in_i8[96:160] // out_i8[8])
        m = S.vsel(in_i8[7:71], out_i8[49:113], mask=S.tail_mask(3, 64)) >= -128
        S.vstore(least, out_i8 + 1, mask=m, stride=2)
        S.vstore_scatter(S.floor(S.exp2(in_bf16[89:105])), out_bf16, S.i16x16(16) & 127)


@S.prim_func
def sub_further(p: S.ptr("u16", "global")) -> S.ptr("u16", "global"):
    return p + 18


@S.prim_func
def overlapping_store_behind_a_returned_pointer(out_u16: S.ptr("u16", "global")):
    """The second register of the load is what the first of the store overwrites."""
    if S.get_local_id() == 0:
        S.vstore(S.vload(sub_further(out_u16 + 32), lanes=32), out_u16 + 72)


@S.prim_func
def least_of_one_lane(in_u8: S.ptr("u8", "global"), out_u8: S.ptr("u8", "global")):
    """What is left of a vector when most of its lanes are not stored becomes calls of the C library."""
    if S.get_local_id() == 0:
        S.vstore(S.vzip(S.i8x6(1) / in_u8[53:59], S.i8(1) / out_u8[80:86]), out_u8 + 1, mask="2T10F")


@S.prim_func
def compared_constants(in_i8: S.ptr("i8", "global"), out_i8: S.ptr("i8", "global"), n: S.i32):
    """clang 23 joins the constants of two `or` though a lane between them is replaced."""
    if S.get_local_id() == 0:
        inner = S.vsel(in_i8[205:208], S.i8(1))
        last = S.vsel(S.vbrevs(S.i8x3(-1), mask=S.const_mask("FFT")), inner, mask=S.const_mask("FFT"))
        S.vstore(S.vsel(S.i8x3(1), S.i8x3(0), mask=last == ((S.u32(7) == 1) * S.i8(1))), out_i8 + 38)


@S.prim_func
def splat_of_an_element(in_u8: S.ptr("u8", "global"), out_u8: S.ptr("u8", "global"), n: S.i32):
    """OpenCL reads `(uchar32)(x)[3]` as an element of the vector `(uchar32)(x)`."""
    if S.get_local_id() == 0:
        S.vstore(S.vror(S.u8x32(1), S.u8x32(S.u8x32(1)[3])), out_u8)
        S.vstore(S.vbcast((in_u8[0:32] + in_u8[32:64])[n & 31], lanes=32), out_u8 + 32)
        S.vstore(in_u8[0:32] ^ (in_u8[0:32] - out_u8[0:32])[7], out_u8 + 64)
        out_u8[96] = S.reinterpret(S.reinterpret(S.u8x32(13), "i32x8"), "u8x32")[2]


@S.prim_func
def sub_both(x: S.i32, q: S.bool) -> S.bool:
    both = q + q
    return both * q + (x > 3)


@S.macro
def put_bools(out, n):
    e = n == 3
    out[20] = e + 1
    out[21] = n + e + e


@S.prim_func
def arithmetic_of_bools(out_i32: S.ptr("i32", "global"), n: S.i32, f: S.fp32, b: S.i8):
    """What is calculated of bools is a bool, unless a wider type takes part."""
    if S.get_local_id() == 0:
        t, less = sub_both(n, n > 4), n < b
        m = S.i32x8(n) > S.i32x8(4)
        z = m[2]
        out_i32[0] = t + t
        out_i32[1] = (t + 1) + S.i8(3)
        out_i32[2] = S.i8(3) + (t + 2)
        out_i32[3] = z - 1
        out_i32[4] = z / 1 + t % 1
        out_i32[5] = (t << z) + (t >> less)
        out_i32[6] = -t
        out_i32[7] = (~t) + t
        out_i32[8] = (t | 1) + (t & 1)
        out_i32[9] = t / 2
        out_i32[10] = t * 7 % 3
        chosen = t if n > 3 else z
        out_i32[11] = chosen + chosen
        out_i32[12] = S.i32((t * 1.5) * 2.0)
        t |= z
        t += less
        out_i32[13] = t - less
        out_i32[14] = S.vall(m) + 1
        special = S.isnan(f) + S.isinf(f)
        out_i32[15] = special + special
        put_bools(out_i32, n)


@S.prim_func
def least_of_a_variable_with_an_address(out_i32: S.ptr("i32", "global"), n: S.i32, f: S.fp32, b: S.i8):
    """The result is a value of its own: what is stored to the variable later does not change it."""
    q = n.addr
    least, most = S.min(n, S.i32(100)), S.max(n, S.i32(-100))
    n += 1
    q[0] += 1
    if S.get_local_id() == 0:
        out_i32[0] = least
        out_i32[1] = most
        out_i32[2] = n


@S.prim_func
def lanes_of_constant_masks(out_i32: S.ptr("i32", "global"), n: S.i32, f: S.fp32, b: S.i8):
    """A mask of constants alone has lanes and a type in C, too."""
    every = S.vbcast(S.i32(1) > 0, lanes=16)
    none = S.vbcast(S.i32(1) < 0, lanes=8)
    if S.get_local_id() == 0:
        out_i32[0] = 1 if (~every)[4] else 2
        out_i32[1] = 1 if (every & ~every)[5] else 2
        out_i32[2] = 1 if (~none)[0] else 2
        out_i32[3] = 1 if S.vall(~none) else 2
        out_i32[4] = 1 if S.vany(~(~none)) else 2
        kept = S.vadd(S.i32x8(n), 1, mask=~(~none), r=S.i32x8(7))
        out_i32[5] = kept[3]
        out_i32[6] = 1 if (S.vbcast(S.i32(1) > 0, lanes=8) if n > 3 else S.tail_mask(3, 8))[4] else 2


@S.prim_func
def lanes_beyond_a_short_array(in_i16: S.ptr("i16", "global"), out_i32: S.ptr("i32", "global")):
    """Clang knows how many elements the array has, inactive lanes lie behind them."""
    if S.get_local_id() == 0:
        places = S.alloc((6,), "i16", "lsram")
        for i in range(6):
            least = S.vbcast(S.i16(32767), lanes=16)
            for j in range(4):
                least = S.min(least, in_i16[i * 8 + j * 16 : i * 8 + j * 16 + 16])
            places[i] = S.vrpmin(least)[0]
            for j in range(4):
                least = S.max(least, in_i16[i * 4 + j * 16 : i * 4 + j * 16 + 16])
            places[i] = S.min(places[i], S.vrpmax(least)[0])
        part = S.vload(places, mask=S.tail_mask(6, 16))
        S.vstore(S.cast(part, "i32", part="low"), out_i32, mask=S.tail_mask(6, 8))
