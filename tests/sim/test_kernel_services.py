"""What kernels use besides arithmetic: loads and stores, DMA, events, printf, scalar functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from builtin_rows import ALL, F32, I16, I32, U8, Vector
from sim_device import Bench, compile_kernel

from compass_sim import KernelFault, memory_map


def kernel(params: str, arguments: str, body: str, head: str = "") -> str:
    return f"{head}\n__kernel void k({params}) {{\n{body}\n}}\n__COMPASS_ENTRY(entry) {{ k({arguments}); }}\n"


def pointers(*types: str) -> str:
    return ", ".join(f"__COMPASS_POINTER({t}, {i})" for i, t in enumerate(types))


def element(v: Vector) -> str:
    return {"bf1616": "bf16", "half16": "half"}.get(v.name, v.name.rstrip("0123456789"))


@pytest.mark.parametrize("march", ["native", "x86-64-v3"])
@pytest.mark.parametrize("v", ALL, ids=lambda v: v.name)
def test_masked_access_touches_active_lanes_only(shared: Bench, v: Vector, march: str) -> None:
    """The first `n` lanes lie at the very end of device memory; the rest of the vector would be beyond it."""
    n, e = 3, element(v)
    letter = {32: "b", 16: "h", 8: "w"}[v.lanes]
    mask = f"__vmov_{letter}({sum(1 << (i * 32 // v.lanes) for i in range(n)):#x}u)"
    body = f"""
  __global {v.name}* end = (__global {v.name}*)(a + n);
  __vstore(__vadd((b[0]), __vload(end, {mask}), b[1], {mask}), (__global {v.name}*)(c + 1), ALL_TRUE_{letter});
  __vstore(b[1], end, {mask});
  __vstore_stride(b[1], (__global {v.name}*)(c + 64), 2 * sizeof({e}), {mask});
  __vstore(__vload_stride(end, sizeof({e}), {mask}), (__global {v.name}*)(c + 128), ALL_TRUE_{letter});
"""
    text = kernel(
        f"__global {e}* a, __global {v.name}* b, __global {e}* c, int n",
        pointers(f"__global {e}", f"__global {v.name}", f"__global {e}") + ", __COMPASS_SCALAR(int, 3)",
        body,
    )
    size = int(np.dtype(v.dtype).itemsize)
    top = memory_map.WINDOW_HIGH  # what follows is not mapped at all
    a = np.arange(1, n + 1).astype(v.dtype)
    b = np.stack([np.full(v.lanes, 50), np.arange(v.lanes)]).astype(v.dtype)
    shared.place(a, top - n * size)
    at_b, at_c = shared.place(b), shared.place(np.full(192, 7).astype(v.dtype))
    spc = shared.load(compile_kernel(text, march=march))["entry"]
    shared.parameters(top - 5 * size, at_b, at_c, 2)
    shared.worker.dispatch(*shared.chain(spc, tasks=1))
    c = shared.read(at_c, np.zeros(192, v.dtype)).astype(np.float32)
    assert c[0] == 7
    assert c[1 : 1 + v.lanes].tolist() == [*(a.astype(np.float32) + np.arange(n)), *[50] * (v.lanes - n)]
    assert c[64:70].tolist() == [0, 7, 1, 7, 2, 7]
    assert c[128 : 128 + v.lanes].tolist() == [*range(n), *[0] * (v.lanes - n)]


@pytest.mark.parametrize(("v", "offsets"), [(U8, "o[0], o[1]"), (I16, "o[0]"), (F32, "o[0]")], ids=["8", "16", "32"])
def test_gather_and_scatter(shared: Bench, v: Vector, offsets: str) -> None:
    rng = np.random.default_rng(5)
    order = rng.permutation(v.lanes)
    o = np.zeros((2, 16), np.uint16)
    o.reshape(-1)[: v.lanes] = order * np.dtype(v.dtype).itemsize
    data = np.arange(v.lanes).astype(v.dtype)
    mask = "0x0fffffff"
    letter = {32: "b", 16: "h", 8: "w"}[v.lanes]
    body = f"""
  c[0] = __vload_gather(a, {offsets});
  c[1] = __vload_gather(a, {offsets}, __vmov_{letter}({mask}));
  __vstore_scatter(a[0], c + 2, {offsets});
"""
    text = kernel(
        f"__global {v.name}* a, __global ushort16* o, __global {v.name}* c",
        pointers(f"__global {v.name}", "__global ushort16", f"__global {v.name}"),
        body,
    )
    out = np.zeros((3, v.lanes), v.dtype)
    at = shared.place(out)
    shared.run(text, shared.place(data), shared.place(o), at, tasks=1)
    got = shared.read(at, out)
    active = np.arange(v.lanes) * (32 // v.lanes) < 28
    assert (got[0] == data[order]).all()
    assert (got[1] == np.where(active, data[order], 0)).all()
    assert (got[2][order] == data).all()


DMA_HEAD = """
GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_INT2EXT(kLsram, kGlobal);
GEN_DMA_UPSAMPLE_EXT2INT(kGlobal, kShared);
GEN_DMA_DIRECT_INT2EXT(kShared, kGlobal);
"""


@pytest.mark.parametrize("bits", [0, 1, 2])
def test_transpositions_of_every_shape(shared: Bench, bits: int) -> None:
    """Of items of 1, 2 and 4 bytes: few rows, few columns, squares and what is left beside them, and in one place."""
    shapes = [(rows, columns) for rows in (1, 2, 3, 4, 5, 8, 17, 35) for columns in (1, 3, 4, 16, 33, 40)]
    kind, dtype = [("char", np.int8), ("short", np.int16), ("int", np.int32)][bits]
    calls = [
        f"  DMA_Transpose2D(a + {i}, c + {i * 2000}, {columns}, {rows}, {columns + 1}, {rows + 2}, {bits}, {1 << bits});"
        for i, (rows, columns) in enumerate(shapes)
    ]
    own = f"  DMA_Transpose2D(a, a + 1, 16, 16, 16, 16, {bits}, {1 << bits});"
    text = kernel(
        f"__global {kind}* a, __global {kind}* c", pointers(*[f"__global {kind}"] * 2), "\n".join([*calls, own])
    )
    a = np.random.default_rng(3).integers(-128, 128, 4000).astype(dtype)
    want = np.full((len(shapes), 2000), -1, dtype)
    given, made = shared.place(a), shared.place(want)
    shared.run(text, given, made, tasks=1)
    for i, (rows, columns) in enumerate(shapes):
        for row in range(rows):
            want[i, row : row + columns * (rows + 2) : rows + 2] = a[i + row * (columns + 1) :][:columns]
    assert (shared.read(made, want) == want).all()
    for column in range(16):
        for row in range(16):
            a[1 + column * 16 + row] = a[row * 16 + column]
    assert (shared.read(given, a) == a).all()


ERF_MIDDLES = "0x1.21d654p-15 0x1.8e0c54p-14 0x1.574c7p-12 0x1.6ab60ap-6 0x1.88cb86p-5 0x1.12e6fap-3 0x1.8ce4eap+1"
TANH_MIDDLES = "0x1.71373ap-12 0x1.14e97ep-9 0x1.5748aap-7 0x1.39bf26p-6 0x1.24f4fap-4 0x1.64ba76p-1 0x1.2ff78ep+0"


@pytest.mark.parametrize(("name", "middles"), [("erf", ERF_MIDDLES), ("tanh", TANH_MIDDLES)])
def test_results_next_to_the_middle_of_two_floats(shared: Bench, name: str, middles: str) -> None:
    """Where more than 44 bits of the result decide the rounding; and the ends."""
    values = [*map(float.fromhex, middles.split()), 0.0, 1e-40, 2.0, 3.9, 4.0, 9.01, 1e30, np.inf, np.nan]
    a = np.array([*values, *(-v for v in values)], np.float32)
    body = f"""
  __global float8 *from = (__global float8 *)a, *to = (__global float8 *)c;
  for (int i = 0; i < {a.size // 8}; i++) __vstore(v{name}(__vload(from + i, ALL_TRUE_w)), to + i, ALL_TRUE_w);
"""
    text = kernel("__global float* a, __global float* c", pointers("__global float", "__global float"), body)
    given, made = shared.place(a), shared.place(np.zeros_like(a))
    shared.run(text, given, made, tasks=1)
    want, got = np.array([getattr(math, name)(v) for v in a], np.float32), shared.read(made, a)
    assert np.array_equal(got, want, equal_nan=True) and np.array_equal(np.signbit(got[:-1]), np.signbit(a[:-1]))


def test_dma(shared: Bench) -> None:
    body = """
  __lsram short l_buf[256];
  __lsram short* l = l_buf;
  __local short up[64];
  *addr_of_event_state() = 0;
  int first = alloc_event(), second = alloc_event();
  DmaDirect_kGlobal_to_kLsram((int)l, (int)a, 8, 16, 32, 8);
  AsyncDmaDirect_kLsram_to_kGlobal((int)c, (int)l, 8, 8, 32, 12, first);
  AsyncDmaDirect_kLsram_to_kGlobal((int)(c + 100), (int)l, 0, 8, 32, 12, second);
  wait_events(((1 << first) | (1 << second)));
  c[50] = first * 10 + second;
  free_events((1 << first));
  c[51] = alloc_event(); c[52] = alloc_event(); c[53] = alloc_event(); c[54] = alloc_event();
  DmaUpsample_kGlobal_to_kShared((int)up, (int)a, 2, 3, 2, 2, 4, 2, 8);
  DmaDirect_kShared_to_kGlobal((int)(c + 60), (int)up, 32, 32, 32, 32);
  DMA_Transpose2D(a, c + 80, 4, 3, 4, 5, 1, 2);
  MemsetDDR(c + 110, 6, 258, 1, 0);
  MemsetDDR(c + 120, 0, 1, 1, 0);
  MemsetDDR(c + 120, -2, 1, 1, 0);
  MemsetSRAM(l, 3, 9, 0, 4);
  c[130] = l[0]; c[131] = l[1];
  barrier(CLK_LOCAL_MEM_FENCE);
"""
    text = kernel("__global short* a, __global short* c", pointers("__global short", "__global short"), body, DMA_HEAD)
    a = np.arange(1, 65, dtype=np.int16)
    out = np.full(140, -1, np.int16)
    at = shared.place(out)
    shared.run(text, shared.place(a), at, tasks=1)
    c = shared.read(at, out)
    packed = a.reshape(-1, 8)[:4, :4]
    rows = np.lib.stride_tricks.sliding_window_view(c[:24], 4)[::6][:4]
    assert (rows == packed).all() and c[4] == -1
    assert c[50:55].tolist() == [1, 0, 2, 3, 4]
    assert (c[60:66] == [1, 1, 1, 3, 3, 3]).all() and (c[68:74] == c[60:66]).all()
    transposed = np.full((4, 5), -1, np.int16)
    transposed[:, :3] = a[:12].reshape(3, 4).T
    assert (c[80:100].reshape(4, 5) == transposed).all()
    assert c[110:114].tolist() == [258, 258, 258, -1] and c[120] == -1
    assert c[130:132].tolist() == [0x0909, (int(a[1]) & 0xFF00) | 9]


def test_rows_of_every_width(shared: Bench) -> None:
    """Rows of each width, far from each other, and rows that overlap with where they go."""
    most, rows, apart = 600, 5, 640
    body = f"""
  for (int w = 1; w <= {most}; w++) {{
    __global char* to = c + (w - 1) * {rows * apart};
    DmaDirect_kGlobal_to_kLsram((int)to, (int)(a + w), w, 613, w * {rows}, {apart});
    DmaDirect_kGlobal_to_kLsram((int)(to + 3), (int)to, w, {apart}, w * {rows}, {apart});
  }}
"""
    text = kernel("__global char* a, __global char* c", pointers("__global char", "__global char"), body, DMA_HEAD)
    a = np.random.default_rng(2).integers(-128, 128, 8000, np.int8)
    want = np.full((most, rows, apart), -1, np.int8)
    at = shared.place(want)
    shared.run(text, shared.place(a), at, tasks=1)
    for w in range(1, most + 1):
        for row in range(rows):
            want[w - 1, row, :w] = a[w + row * 613 :][:w]
            want[w - 1, row, 3 : 3 + w] = want[w - 1, row, :w].copy()
    assert (shared.read(at, want) == want).all()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ('printf("plain %%\\n")', "plain %\n"),
        ('printf("%d %i %u", -5, 7, -1)', "-5 7 4294967295"),
        ('printf("%o %x %X", 8, 255, (uchar)171)', "010 0xff 0xAB"),
        ('printf("%x %X", 1.5f, (half)1)', "0x3fc00000 0x3F800000"),
        ('printf("%f|%f|%f", 1.9999999f, (half)-2.5, 0.1f)', "1.999999|-2.500000|0.100000"),
        ('printf("[%f%f]", INFINITY, NAN)', "[]"),
        ('printf("%c%s", 65, "bc")', "Abc"),
        ('printf("%v8hlx", (int8)(1,2,3,4,5,6,7,-1))', "0x1,0x2,0x3,0x4,0x5,0x6,0x7,0xffffffff"),
        ('printf("%v16hf!", (half16)(half)0.5)', ",".join(["0.500000"] * 16) + "!"),
        ('printf("%v32hhx", (char32)(char)-2)', ",".join(["0xfe"] * 32)),
        ('printf("%d %d", 1)', "1 %d"),
        ('printf("%q %v9z %", 1)', "%q %v9z %"),
    ],
)
def test_printf(shared: Bench, call: str, text: str) -> None:
    assert shared.run(kernel("int unused", "0", f"{call};"), tasks=1).printf == text


def test_printed_text_comes_tec_by_tec(shared: Bench) -> None:
    body = 'for (int i = 0; i < 3; i++) { printf("%d", get_local_id(0)); barrier(CLK_LOCAL_MEM_FENCE); }'
    assert shared.run(kernel("int unused", "0", body)).printf == "000111222333"


def test_endless_printing_is_cut(shared: Bench) -> None:
    body = 'for (int i = 0; i < 300000; i++) printf("0123456789");'
    printed = shared.run(kernel("int unused", "0", body), tasks=1).printf
    assert len(printed) < 1 << 21 and printed.endswith("cut]\n")


SCALARS: list[tuple[str, Any]] = [
    ("__abs((int)-2147483648)", -(2**31)),
    ("__abs((char)-5)", 5),
    ("__abs(-1.5f)", 1.5),
    ("clz((short)1)", 15),
    ("clz((uchar)0)", 8),
    ("ceildiv((char)100, (char)30)", -4),
    ("ceildiv(7, 2)", 4),
    ("max(1, n)", 3),
    ("min((uchar)200, (uchar)3)", 3),
    ("max(NAN, 2.0f)", 2),
    ("min(2.0f, NAN)", 2),
    ("__rint(2.5f)", 2),
    ("__rint((half)3.5)", 4),
    ("__fma(1.0f, 2.0f, 3.0f)", 7),
    ("__class(-INFINITY)", 4),
    ("__class((half)0)", 0x40),
    ("sqrt(2.25f)", 1.5),
    ("(half)pow((half)2, (half)3)", 8),
    ("exp(0.0f)", 1),
    ("floor(-1.5f)", -2),
    ("as_int(1.0f)", 0x3F800000),
    ("as_short((half)1)", 0x3C00),
    ("(bool)n", 1),
    ("__vandr((bool8)(bool)n)", 1),
    ("__vorr(__vmov_h(0x4))", 1),
    ("__vorr(__vmov_h(0x2))", 0),
    ("__vandr(__vbxuh(__vmov_b(0xffff0000u)))", 1),
    ("((float)((bf16)(n * 85.5f)))", 256),
    ("__vrpmaxe_test", 2),
]


def test_scalar_functions(shared: Bench) -> None:
    head = "#define __vrpmaxe_test (__vrpmaxe((int8)0, (int8)(1,n,9,9,2,9,0,0), ALL_TRUE_w)[1])"
    body = "\n".join(f"out[{i}] = (float){text};" for i, (text, _) in enumerate(SCALARS))
    arguments = "__COMPASS_POINTER(__global float, 0), __COMPASS_SCALAR(int, 1)"
    out = np.zeros(len(SCALARS), np.float32)
    at = shared.place(out)
    shared.run(kernel("__global float* out, int n", arguments, body, head), at, 3, tasks=1)
    got = shared.read(at, out)
    wrong = [(t, g, w) for (t, w), g in zip(SCALARS, got, strict=True) if g != np.float32(w)]
    assert not wrong


def test_matrix_product(shared: Bench) -> None:
    text = kernel(
        "__global half16* a, __global float* c",
        pointers("__global half16", "__global float"),
        "__vmml(c, a[0], a[1]); __vmma((__global float8*)c, a[0], a[1]);",
    )
    a = np.random.default_rng(2).normal(size=(2, 4, 4)).astype(np.float16)
    at = shared.place(np.zeros((4, 4), np.float32))
    shared.run(text, shared.place(a), at, tasks=1)
    product = a[0].astype(np.float64) @ a[1].astype(np.float64).T
    assert np.allclose(shared.read(at, np.zeros((4, 4), np.float32)), 2 * product, rtol=1e-6)


@pytest.mark.parametrize("define", ["__AIPUX2__", "__AIPUX3P__", "__AIPUX3S__"])
def test_headers_serve_every_target_family(define: str) -> None:
    assert compile_kernel("__kernel void k(__global int8* a) { a[0] = a[1]; }", define).startswith(b"\x7fELF")


def test_vector_loops_have_no_scalar_leftovers(shared: Bench) -> None:
    """Results of a loop over unaligned addresses, as slices of tensors have them."""
    body = """
  for (int i = 0; i < n; i += 1)
    __vstore((__vload((__global int8*)(a + 1 + i * 8), ALL_TRUE_w) + (int8)i), (__global int8*)(a + 1 + i * 8), ALL_TRUE_w);
"""
    data = np.arange(1 + 8 * 9, dtype=I32.dtype)
    at = shared.place(data)
    shared.run(
        kernel("__global int* a, int n", pointers("__global int") + ", __COMPASS_SCALAR(int, 1)", body), at, 9, tasks=1
    )
    assert (shared.read(at, data)[1:] == data[1:] + np.repeat(np.arange(9), 8)).all()


def test_what_is_too_large_for_a_stack_ends_at_its_own_page(bench: Bench) -> None:
    """Not in the stack of the TEC below it: the array's far end is touched last."""
    text = kernel("__global int* n", pointers("__global int"), "  volatile char big[6 << 20];\n  big[n[0]] = 1;")
    spc = bench.load(compile_kernel(text))["entry"]
    bench.parameters(bench.place(np.zeros(1, np.int32)))
    with pytest.raises(
        KernelFault, match=r"the stack of TEC \d is full; lsram and private arrays need more than 2 MiB"
    ):
        bench.worker.dispatch(*bench.chain(spc, tasks=4))
