"""Forms of the C text: literals, names, statements, pointers, DMA, the unit, and the line map."""

from __future__ import annotations

import pytest

from compass_core.errors import CompassError
from compassc import pass_manager
from compassc.codegen import generate
from compassc.codegen.c_types import c_type, float_text, int_text, string_text
from compassc.codegen.c_unit import is_parenthesised, print_unit
from compassc.ir import dtype, parse_module
from compassc.ir.exprs import FloatImm, IntImm

HEAD = '@I.module(target="X2_1204", entry="k")\nclass Module:\n'
PARAMS = 'a: T.ptr("int32", "global"), f: T.ptr("float32", "global"), n: T.int32'


def text_of(body: str, params: str = PARAMS, more: str = "", pipeline: tuple[str, ...] = ()) -> str:
    """The C of a kernel `k` with a body in IR text; by default printed as it is."""
    lines = "".join(f"        {line}\n" for line in body.strip("\n").split("\n"))
    module = parse_module(f"{HEAD}    @T.func\n    def k({params}) -> T.void:\n{lines}{more}")
    return "\n".join(line.text for line in print_unit(pass_manager.run_pipeline(pipeline, module)).lines) + "\n"


def lines_of(body: str, **kwargs) -> list[str]:
    lines = text_of(body, **kwargs).split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith("__kernel") and line.endswith("{"))
    return [line.removeprefix("  ") for line in lines[start + 1 : lines.index("}", start) - 1]]


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("int32", 7, "7"),
        ("int32", -3, "-3"),
        ("int32", -(1 << 31), "(int)-2147483648"),
        ("int8", -5, "(char)-5"),
        ("uint16", 65535, "(ushort)65535"),
        ("uint32", 4294967295, "(uint)4294967295"),
        ("bool", 1, "(bool)1"),
    ],
)
def test_integers(kind, value, text):
    assert int_text(IntImm(dtype(kind), value)) == text


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("float32", 1.5, "0x1.8p+0f/*1.500000e+00*/"),
        ("float32", 0.0, "0x0p+0f/*0.000000e+00*/"),
        ("float32", -1.0, "-0x1p+0f/*-1.000000e+00*/"),
        ("float32", 0.1, "0x1.999999999999ap-4f/*1.000000e-01*/"),
        ("float16", 1.5, "(half)0x1.8p+0f/*1.500000e+00*/"),
        ("bfloat16", 2.0, "(bf16)0x1p+1f/*2.000000e+00*/"),
        ("float16", float("inf"), "INFINITY"),
        ("float32", float("-inf"), "-INFINITY"),
        ("float32", float("nan"), "NAN"),
    ],
)
def test_floats(kind, value, text):
    assert float_text(FloatImm(dtype(kind), value)) == text


def test_strings_are_escaped():
    assert string_text('a"b\\\n\t\x01\u00e9') == '"a\\"b\\\\\\n\\t\\001\\303\\251"'


def test_types():
    assert [c_type(dtype(t)) for t in ("int8x32", "uint32x8", "bfloat16x16", "boolx8", "float16")] == [
        "char32",
        "uint8",
        "bf1616",
        "bool8",
        "half",
    ]
    with pytest.raises(CompassError, match="int32x12"):
        c_type(dtype("int32x12"))


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ("(a[n] > 3)", "(3 < a[n])"),
        ("(a[n] >= 3)", "(3 <= a[n])"),
        ("(f[n] * f[0])", "(float)(f[n] * f[0])"),
        ("T.min(a[n], 3)", "min(a[n], 3)"),
        ('T.cast((a[n] + 1), "uint8")', "(uchar)(a[n] + 1)"),
        ("T.reinterpret(f[n], T.int32)", "as_int(f[n])"),
        ("T.select((n < 3), n, (~n))", "((n < 3) ? n : (~n))"),
        ("((n < 3) and (not (n == 1)))", "((n < 3) && !(n == 1))"),
        ("T.isnull(a)", "(a == NULL)"),
        ("(T.truncmod(n, 3) << 2)", "((n % 3) << 2)"),
    ],
)
def test_scalar_expressions(expr, text):
    assert lines_of(expr) == [f"{text};"]


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ("T.addr(a, 0)", "a"),
        ("T.addr(a, n)", "(a + n)"),
        ('T.addr(a, 0, "float16")', "(__global half*)a"),
        ('T.addr(T.addr(a, 3), 0, "float16")', "(__global half*)(a + 3)"),
        ('T.addr(T.addr(a, 0, "int16"), 16)', "((__global short*)a + 16)"),
        ('T.addr(T.address_of(n), 0, "int8")', "(char*)&n"),
        ('T.addr(T.reinterpret(n, T.ptr("int32", "lsram")), 0)', "(__lsram int*)n"),
        ('T.view(a, "float32")[n]', "((__global float*)a)[n]"),
    ],
)
def test_addresses(expr, text):
    assert lines_of(expr) == [f"{text};"]


def test_vector_literals_and_elements():
    body = 'v: T.float32x8 = T.vector("float32x8", 1, 2, 3, 4, 5, 6, 7, n)\n'
    body += "f[0] = T.element(v, 2)\nT.set_element(v, n, f[1])"
    assert lines_of(body) == ["float8 v = (float8)(1,2,3,4,5,6,7,n);", "f[0] = v[2];", "v[n] = f[1];"]


def test_statements():
    body = """
x: T.int32 = n
if (n < 3):
    x = 4
else:
    if T.cast(x, "bool"):
        return
while (x < n):
    x = (x + 1)
    break
5
"""
    assert lines_of(body) == [
        "int x = n;",
        "if (n < 3) {",
        "  x = 4;",
        "} else {",
        "  if ((bool)x) {",
        "    barrier(CLK_LOCAL_MEM_FENCE);return;",
        "  }",
        "}",
        "while ((x < n)){",
        "  x = (x + 1);",
        "  break;",
        "}",
    ]


@pytest.mark.parametrize(
    ("bounds", "head"),
    [
        ("0, n, 1", "for (int i = 0; i < n; i += 1) {"),
        ("3, n, 1", "for (int i = 3; i < 3+(n - 3); i += 1) {"),
        ("2, 10, 4", "for (int i = 2; i < 2+8; i += 4) {"),
        ("n, (n + 4), 1", "for (int i = n; i < n+4; i += 1) {"),
        ("n, 0, -1", "for (int i = n; 0 < i; i += -1) {"),
    ],
)
def test_loops(bounds, head):
    assert lines_of(f"for i in T.serial({bounds}):\n    a[i] = 1")[0] == head


def test_parentheses_that_do_not_match_are_not_a_condition():
    assert is_parenthesised("((a) < (b))")
    assert not is_parenthesised("(bool)f(x)")


def test_reserved_names_and_shadowing():
    assert lines_of("half: T.int32 = n\nmax: T.int32 = half\nuint: T.int32 = max") == [
        "int half_1 = n;",
        "int max_1 = half_1;",
        "int uint_1 = max_1;",
    ]


def test_sibling_scopes_draw_separate_names():
    body = "for i in T.serial(0, n, 1):\n    a[i] = 1\nfor i in T.serial(0, n, 1):\n    a[i] = 2"
    assert lines_of(body)[3] == "for (int i_1 = 0; i_1 < n; i_1 += 1) {"


def test_arrays_by_scope():
    body = 'x = T.alloc((4, 8), "int16", "lsram")\ny = T.alloc((4,), "int8", "shared")\n'
    body += 'z = T.alloc((2,), "int32x8", "private")'
    assert lines_of(body) == ["__lsram short x[32];", "__local char y[4];", "int8 z[2];"]


def test_strided_access_in_bytes():
    load = 'S.vload(T.addr(a, 0), {}, dtype="int32x8")'
    assert lines_of(load.format(3)) == ["__vload_stride((__global int8*)a, 12, ALL_TRUE_w);"]
    assert lines_of(load.format("n")) == ["__vload_stride((__global int8*)a, (n * 4), ALL_TRUE_w);"]


def test_dma_functions_are_generated_once_in_first_use_order():
    params = 'g: T.ptr("int8", "global"), h: T.ptr("int8", "global.1"), n: T.int32'
    copy = 'S.dma_copy(T.addr({}, 0), T.addr({}, 0), n, n, n, n, dtype="void")'
    body = 'l = T.alloc((64,), "int8", "lsram")\ns = T.alloc((64,), "int8", "shared")\n'
    body += "\n".join(copy.format(*pair) for pair in (("l", "g"), ("g", "l"), ("l", "g"), ("s", "h"), ("l", "s")))
    text = text_of(body, params=params)
    assert [line for line in text.split("\n") if line.startswith("GEN_")] == [
        "GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);",
        "GEN_DMA_DIRECT_INT2EXT(kLsram, kGlobal);",
        "GEN_DMA_DIRECT_EXT2INT(kGlobal1, kShared);",
        "GEN_DMA_DIRECT_INT2EXT(kShared, kLsram);",
    ]
    assert "DmaDirect_kGlobal_to_kLsram((int)l, (int)g, n, n, n, n);" in text


def test_other_transfers():
    assert lines_of('S.dma_memset(T.addr(f, 0), 64, 1069547520, dtype="void", itemsize=4)') == [
        "MemsetDDR(f, 64, 1069547520, 2, 0);"
    ]
    assert lines_of('S.dma_transpose2d(T.addr(a, 0), T.addr(a, n), 4, 8, 4, 8, dtype="void", itemsize=4)') == [
        "DMA_Transpose2D(a, (a + n), 4, 8, 4, 8, 2, 4);"
    ]


def test_printf_and_cache():
    assert lines_of('S.printf("%d\\n", n, dtype="int32")\nS.flush_cache(dtype="void", invalidate=False)') == [
        'printf("%d\\n", n);',
        "__flush_cache((bool)0);",
    ]


def test_inline_assembly_has_every_section():
    call = (
        'S.asm(n, dtype="void", clobbers=(), inputs=(("x", "r"),), outputs=(), qualifiers="volatile", template="nop")'
    )
    assert lines_of(call) == ["__asm__ volatile (", '  "nop"', "  : ", '  : [x] "r"(n)', "  : ", ");"]


def test_tables_come_before_everything():
    text = text_of(
        't = T.alloc_const((17,), "uint8", "' + "0a" * 17 + '")\na[0] = T.cast(t[n], "int32")',
        pipeline=("OutlineConstants",),
    )
    row = ", ".join(["0x0a"] * 16)
    assert text.startswith(
        "#include <compass/dsl.h>\n\n\n"
        f"__constant uchar __attribute__((aligned(32))) k_u8_t[17] = {{\n    {row}, \n    0x0a\n}};\n\n__kernel"
    )
    assert "  __constant uchar* t = k_u8_t;\n" in text


SUB = """
    @T.func(is_inline=False)
    def k_f(p: T.ptr("int32", "private"), m: T.boolx8) -> T.int32:
        return p[0]
"""


def test_functions_are_declared_before_they_are_defined():
    text = text_of("return", params="b: T.bool", more=SUB)
    assert text.split("\n")[2:6] == [
        "__kernel void k(bool b);",
        "_CLC_NOINLINE int k_f(int* p, bool8 m);",
        "",
        "__kernel void k(bool b) {",
    ]


def test_the_error_names_the_statement():
    body = "x: T.int32x12 = T.splat(n, 12)  #@ kern.py:7:5-9"
    with pytest.raises(CompassError, match="int32x12") as found:
        text_of(body)
    assert str(found.value.span) == "kern.py:7:5"


def test_generate_gives_text_line_map_and_parameters():
    text = (
        f'{HEAD}    @T.func\n    def k(a: T.ptr("int32", "global"), n: T.int32) -> T.void:  #@ kern.py:3:1-2\n'
        '        buf = T.alloc((8,), "int32", "lsram")  #@ 4:5-9\n'
        "        for i in T.serial(0, n, 1):  #@ 5:5-9\n            a[i] = buf[0]  #@ 6:9-12\n"
    )
    done = generate(parse_module(text))
    lines = done.text.split("\n")[:-1]
    places = done.line_map["lines"]
    assert done.line_map["files"] == ["kern.py"] and len(places) == len(lines)
    assert {line.strip(): place for line, place in zip(lines, places, strict=True)} == {
        "#include <compass/dsl.h>": None,
        "": None,
        "__kernel void k(__global int* a, int n);": [0, 3],
        "__kernel void k(__global int* a, int n) {": [0, 3],
        "__lsram int buf[8];": [0, 4],
        "for (int i = 0; i < n; i += 1) {": [0, 5],
        "a[i] = buf[0];": [0, 6],
        "barrier(CLK_LOCAL_MEM_FENCE);": [0, 3],
        "}": [0, 3],
    }
    assert done.params["kernel"] == "k" and done.params["stack_size"] == 64 * 1024 + 32
    assert [p["name"] for p in done.params["params"]] == ["a", "n"]
