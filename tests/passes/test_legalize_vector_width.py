"""Vectors of any width as registers: the C shows which lanes each register holds."""

from __future__ import annotations

import pytest
from vector_text import c_of, module

from compass_core.errors import CompassError
from compassc import pass_manager
from compassc.ir import walk_exprs, walk_stmts
from tests.choosing import some


def load(name: str, kind: str, mask: str = "") -> str:
    mask = f", mask={mask}" if mask else ""
    return f'{name}: T.{kind} = S.vload(T.addr(a, 0), 1, dtype="{kind}"{mask})\n'


def store(value: str, mask: str = "") -> str:
    mask = f", mask={mask}" if mask else ""
    return f'S.vstore({value}, T.addr(b, 0), 1, dtype="void"{mask})\n'


def op(name: str, args: str, kind: str, extra: str = "") -> str:
    return f'S.{name}({args}, dtype="{kind}"{extra})'


def test_a_wide_variable_is_an_array_and_its_last_register_is_masked():
    assert c_of(load("x", "int32x11") + "c: T.int32x11 = (x + x)\n" + store("c")) == [
        "int8 x[2];",
        "x[0] = __vload((__global int8*)a, ALL_TRUE_w);",
        "x[1] = __vload((__global int8*)(a + 8), __vmov_w(0x00000111));",
        "int8 c[2];",
        "c[0] = (x[0] + x[0]);",
        "c[1] = __vadd(c[1], x[1], x[1], __vmov_w(0x00000111));",
        "__vstore(c[0], (__global int8*)b, ALL_TRUE_w);",
        "__vstore(c[1], (__global int8*)(b + 8), __vmov_w(0x00000111));",
    ]


def test_after_it_every_vector_is_a_register():
    body = load("x", "int8x70") + 'y: T.int32x70 = S.cast(x, dtype="int32x70", part="all", saturate=None)\n'
    done = pass_manager.run_pipeline(
        ("LowerVectorOperators", "LegalizeVectorWidth"), module(body + store("y"), "int8", "int32")
    )
    for root in some(root for f in done.functions for s in walk_stmts(f.body) for root in s.exprs()):
        assert all(e.dtype.is_native or not e.dtype.is_vector for e in some(walk_exprs(root)))


def test_a_tail_mask_is_clipped_per_register():
    lines = c_of(store("T.splat(n, 16)", "T.tail(n, 16)"))
    assert [line.partition("__vmov_w(((((")[2].partition(" << 2)")[0] for line in lines] == [
        "(max(min(n, 8), 0)",
        "(max(min((n - 8), 8), 0)",
    ]


def test_a_tail_mask_of_a_constant_is_constant():
    assert "__vmov_w(0x00000011)" in c_of(store("T.splat(n, 16)", "T.tail(10, 16)"))[1]


@pytest.mark.parametrize(
    ("kind", "start", "expected"),
    [("int8x32", "int8", "__vload((__global char32*)a, m)"), ("int16x32", "int16", "__vbxuh(m)")],
)
def test_a_mask_variable_takes_the_width_of_its_first_use(kind, start, expected):
    body = "m: T.boolx32 = T.tail(n, 32)\n"
    first = 'p: T.int8x32 = S.vload(T.addr(a, 0, "int8"), 1, dtype="int8x32", mask=m)\n'
    lines = c_of(body + first + load("x", kind, "m") + store("p") + store("x"), elem=start)
    assert any(expected in line for line in lines)


def test_masks_of_narrow_registers_are_joined_for_wide_ones():
    body = load("x", "int32x16") + "m: T.boolx16 = (x > T.splat(0, 16))\n"
    lines = c_of(body + 'S.vstore(T.splat(T.int16(1), 16), T.addr(b, 0), 1, dtype="void", mask=m)', other="int16")
    assert lines[-3:-1] == [
        "bool8 m_0 = __vclt((int8)0, x[0], ALL_TRUE_w);",
        "bool8 m_1 = __vclt((int8)0, x[1], ALL_TRUE_w);",
    ]
    assert lines[-1] == "__vstore((short16)(short)1, (__global short16*)b, (bool16)(m_0,m_1));"


def test_a_mask_assigned_from_itself():
    body = "m: T.boolx8 = T.tail(n, 8)\nm = (m & T.tail(3, 8))\n" + load("x", "int32x16") + store("x")
    assert c_of(body)[1] == "m = __vand(m, __vmov_w(0x00000111), ALL_TRUE_w);"


def test_padding_decides_neither_all_nor_any():
    body = load("x", "int32x5") + "m: T.boolx5 = (x > T.splat(0, 5))\n"
    lines = c_of(body + 'if (S.vall(m, dtype="bool") or S.vany((~m), dtype="bool")):\n    b[0] = 1')
    assert "__vandr(__vor(m, __vmov_w(0x11100000), ALL_TRUE_w))" in lines[2]
    assert "__vorr(__vand((~m), __vmov_w(0x00011111), ALL_TRUE_w))" in lines[2]


@pytest.mark.parametrize(
    ("source", "target", "count", "texts"),
    [
        (
            "int8",
            "int32",
            32,
            ["__vsxtl(__vsxtl(x))", "__vsxth(__vsxtl(x))", "__vsxtl(__vsxth(x))", "__vsxth(__vsxth(x))"],
        ),
        ("uint16", "int32", 16, ["as_int8(__vuxtl(x))", "as_int8(__vuxth(x))"]),
        ("int8", "int16", 20, ["__vsxtl(x)", "__vsxth(x)"]),
    ],
)
def test_widening_takes_parts_in_order(source, target, count, texts):
    body = load("x", f"{source}x{count}")
    body += f'y: T.{target}x{count} = S.cast(x, dtype="{target}x{count}", part="all", saturate=None)\n'
    lines = c_of(body + store("y"), elem=source, other=target)
    assert [line.split(" = ")[1].rstrip(";") for line in lines if line.startswith("y[")] == texts


def test_narrowing_merges_registers():
    body = load("x", "int32x24") + 'y: T.int8x24 = S.cast(x, dtype="int8x24", part="all", saturate=None)\n'
    assert (
        "char32 y = __vexte(__vexte(as_char32(x[0]), as_char32(x[1])), __vexte(as_char32(x[2]), as_char32(x[2])));"
        in c_of(body + store("y"), other="int8")
    )


def test_elements_of_a_wide_variable():
    lines = c_of(
        load("x", "int32x24") + "T.set_element(x, 9, 4)\nT.set_element(x, n, 5)\nb[T.element(x, n)] = T.element(x, 23)"
    )
    assert lines[-3:] == ["x[1][1] = 4;", "((int*)x)[n] = 5;", "b[((int*)x)[n]] = x[2][7];"]


def test_an_assignment_that_moves_registers_saves_them_first():
    lines = c_of(load("x", "int32x16") + "x = " + op("vrevs", "x", "int32x16") + "\n" + store("x"))
    assert lines[3:7] == [
        "int8 x_new = __vrevs(x[1]);",
        "int8 x_new_1 = __vrevs(x[0]);",
        "x[0] = x_new;",
        "x[1] = x_new_1;",
    ]


def test_an_assignment_lane_by_lane_saves_nothing():
    lines = c_of(load("x", "int32x16") + "x = (x + x)\n" + store("x"))
    assert lines[3:5] == ["x[0] = (x[0] + x[0]);", "x[1] = (x[1] + x[1]);"]


@pytest.mark.parametrize(
    ("value", "kind", "texts"),
    [
        (
            op("vzip", "x, x", "int32x32", ', part="all"'),
            "int32x32",
            ["l(x[0], x[0])", "h(x[0], x[0])", "l(x[1], x[1])", "h(x[1], x[1])"],
        ),
        (op("vzip", "x, x", "int32x16", ', part="high"'), "int32x16", ["l(x[1], x[1])", "h(x[1], x[1])"]),
        (op("vsldl", "x, x, 11", "int32x16"), "int32x16", ["l(x[1], x[0], 3)", "l(x[0], x[1], 3)"]),
        (op("vsldl", "x, x, 8", "int32x16"), "int32x16", ["x[1]", "x[0]"]),
        (op("vconcat", "x, x", "int32x16", ', part="even"'), "int32x16", ["e(x[0], x[1])", "e(x[0], x[1])"]),
        (op("vconcat", "x, x", "int32x16", ', part="low"'), "int32x16", ["x[0]", "x[0]"]),
        (op("vreplic", "x, 9", "int32x16"), "int32x16", ["replic(x[1], 1)", "replic(x[1], 1)"]),
        (op("vaddh", "x, x", "int32x16"), "int32x16", ["h(x[0], x[1])", "h(x[0], x[1])"]),
    ],
)
def test_lane_moving_operations_by_register(value, kind, texts):
    lines = c_of(load("x", "int32x16") + f"y: T.{kind} = {value}\n" + store("y"))
    parts = [line.split(" = ")[1].rstrip(";") for line in lines if line.startswith("y[")]
    assert len(parts) == len(texts)
    assert all(part.endswith(text) for part, text in zip(parts, texts, strict=True))


def test_odd_halves_of_three_registers():
    body = load("x", "int32x24") + "y: T.int32x24 = " + op("vconcat", "x, x", "int32x24", ', part="low"') + "\n"
    lines = c_of(body + store("y"))
    assert [line.split(" = ")[1] for line in lines if line.startswith("y[")] == [
        "x[0];",
        "__vextl(x[1], x[0]);",
        "__vsldl(x[0], x[1], 4);",
    ]


def test_sum_over_registers():
    lines = c_of(load("x", "int32x16") + f"b[0] = T.element({op('vrpadd', 'x', 'int32x16')}, 0)")
    assert lines[-1].startswith("b[0] = (__vrpadd(") and " + __vrpadd(" in lines[-1]


@pytest.mark.parametrize(
    ("kind", "count", "offsets"),
    [("int8x32", 32, ["i[0], i[1]"]), ("int16x32", 32, ["i[0]", "i[1]"]), ("int32x16", 16, ["i", "__vshfl(i, 8)"])],
)
def test_gather_offsets_by_element_width(kind, count, offsets):
    body = f'i: T.uint16x{count} = S.vload(T.addr(b, 0), 1, dtype="uint16x{count}")\n'
    body += f"x: T.{kind} = " + op("vload_gather", "T.addr(a, 0), i", kind) + "\n"
    lines = c_of(body, elem=kind.partition("x")[0], other="uint16")
    found = [line for line in lines if "gather" in line]
    assert len(found) == len(offsets)
    for line, text in zip(found, offsets, strict=True):
        for part in text.split(", "):
            assert part.rstrip(")").split("(")[-1].split(",")[0] in line


def test_parameters_of_sub_functions_become_registers():
    more = """
    @T.func
    def f(x: T.int32x12, m: T.boolx12, p: T.ptr("int32", "global")) -> T.void:
        S.vstore(x, T.addr(p, 0), 1, dtype="void", mask=m)
"""
    body = load("x", "int32x12") + "m: T.boolx12 = T.tail(n, 12)\nModule.f(x, m, b)"
    assert c_of(body, more=more)[-1] == "k_f(x[0], x[1], m_0, m_1, b);"


def test_an_operation_of_single_registers_is_refused_with_its_name():
    body = load("x", "int32x16") + "y: T.int32x16 = " + op("vrpmax", "x", "int32x16") + "\n" + store("y")
    with pytest.raises(CompassError, match="S.vrpmax works on single registers"):
        c_of(body)


def test_run_time_lane_of_a_wide_mask_is_refused():
    body = load("x", "int32x16") + "m: T.boolx16 = (x > T.splat(0, 16))\nif T.element(m, n):\n    b[0] = 1"
    with pytest.raises(CompassError, match="constant index"):
        c_of(body)


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize(
    "call", ["clip({}, T.splat(0, {n}), T.splat(5, {n})", 'cast({}, part="all", saturate=True'], ids=["clip", "cast"]
)
def test_an_operand_that_c_repeats_calls_its_sub_function_once(call, width):
    more = """
    @T.func
    def f(x: T.int32x8) -> T.int32x8:
        return x
"""
    kind = f"int32x{width}" if call.startswith("clip") else f"int8x{width}"
    value = "Module.f(x)" if width == 8 else 'S.vconcat(Module.f(x), x, dtype="int32x16", part="all")'
    body = load("x", "int32x8") + f"y: T.{kind} = S." + call.format(value, n=width) + f', dtype="{kind}")\n'
    text = "\n".join(c_of(body + 'S.vstore(y, T.addr(b, 0), 1, dtype="void")\n', more=more))
    assert text.count("k_f(") == 1
