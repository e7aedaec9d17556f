"""The C text of calls, as kernels written for the vendor's compiler are known to give: facts of compatibility.

Each row: an expression that is bound to a variable, and the right-hand sides of the assignments to that variable in
the C text (one per register). The operands are variables of one register, named after their C type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from compassc import passes
from compassc.codegen import generate
from compassc.dsl import load_kernels, parse

VECTORS = {
    "c": "i8",
    "d": "i8",
    "uc": "u8",
    "ud": "u8",
    "s": "i16",
    "t": "i16",
    "us": "u16",
    "ut": "u16",
    "a": "i32",
    "b": "i32",
    "ua": "u32",
    "ub": "u32",
    "h": "fp16",
    "h2": "fp16",
    "w": "bf16",
    "w2": "bf16",
    "x": "fp32",
    "y": "fp32",
    "z": "fp32",
}
WIDE = {"a11": ("i32", 11), "b11": ("i32", 11), "a16": ("i32", 16), "c64": ("i8", 64), "d64": ("i8", 64)}
SCALARS = {"n": "i32", "k": "i16", "g": "fp32", "e": "fp16"}
MASKS = {"m": "a > b", "ms": "s > t", "mc": "c > d"}

ZERO = "0x0p+0f/*0.000000e+00*/"
CASES: dict[str, Sequence[tuple[str, str]]] = {
    "arithmetic": [
        ("S.vadd(a, b)", "a + b"),
        ("S.vadd(3, a)", "a + (int8)3"),
        ("S.vadd(a, n)", "a + (int8)n"),
        ("S.vadd(a, b, mask='3T5F')", "a + b"),
        ("S.vadd(a, b, mask='3T5F', r=a)", "__vadd(a, a, b, __vmov_w(0x00000111))"),
        ("S.vadd(a, b, mask=m, r=9)", "__vadd((int8)9, a, b, m)"),
        ("S.vadd(a, ua, out_sign='u')", "as_uint8(a) + ua"),
        ("S.vadd(ua, -1, out_sign='u')", "ua + as_uint8((int8)-1)"),
        ("S.vadd(a, b, saturate=True)", "__vadds(v, a, b, ALL_TRUE_w)"),
        ("S.vadd(a, ub, saturate=True, out_sign='s')", "__vadds(v, ub, a, ALL_TRUE_w)"),
        ("S.vsub(a, b)", "a - b"),
        ("S.vsub(a, b, saturate=True)", "__vsubs(v, a, b, ALL_TRUE_w)"),
        ("S.vsub(a, b, mask=m, r=b)", "__vsub(b, a, b, m)"),
        ("S.vaddh(a, b)", "__vaddh(a, b)"),
        ("S.vsubh(s, t)", "__vsubh(s, t)"),
        ("S.abs(c)", "as_char32(__vabs(as_uchar32(v), c, ALL_TRUE_b))"),
        ("S.abs(x)", "__vabs(v, x, ALL_TRUE_w)"),
        ("S.abs(c, saturate=True)", "__vabss(v, c, ALL_TRUE_b)"),
        ("S.rint(x)", "__vrint(v, x, ALL_TRUE_w)"),
        ("S.clip(a, -5, 5)", "__vmax(a, __vmin(a, a, (int8)5, ALL_TRUE_w), (int8)-5, ALL_TRUE_w)"),
        ("S.vmul(a, b)", "a * b"),
        ("S.vmul(x, y, mask=m, r=0)", f"__vmul((float8){ZERO}, x, y, m)"),
        ("S.vmul(a, b, mask=m, r=0)", "__vsel((a * b), (int8)0, m)"),
        ("S.vmul(a, 8)", "__vlsl(a, (int8)3)"),
        ("S.vmul(a, 8, mask=m, r=b)", "__vlsl(b, a, (int8)3, m)"),
        ("S.vmull(c, d)", "__vmul(v, c, d, ALL_TRUE_b)"),
        ("S.vmulh(c, d)", "__vmulh(v, c, d, ALL_TRUE_b)"),
        ("S.vmull(c, d, out_sign='u')", "as_ushort16(__vmul(as_short16(v), c, d, ALL_TRUE_b))"),
        ("S.vmull(uc, ud, out_sign='s')", "as_short16(__vmul(as_ushort16(v), uc, ud, ALL_TRUE_b))"),
        ("S.vdiv(a, b)", "__vdiv(v, a, b, ALL_TRUE_w)"),
        ("S.vmod(a, 7)", "__vmod(v, a, (int8)7, ALL_TRUE_w)"),
        ("S.vdot(c, uc)", "__vdot(v, c, uc, ALL_TRUE_b)"),
        ("S.vqdot(c, d)", "__vqdot(v, c, d, ALL_TRUE_b)"),
        ("S.vdpa(a, s, t)", "__vdpa(a, s, t, ALL_TRUE_h)"),
        ("S.vqdpa(a, c, d, mask=mc)", "__vqdpa(a, c, d, mc)"),
        ("S.vrpadd(a)", "__vrpadd(v, a, ALL_TRUE_w)"),
        ("S.fma(x, y, z)", "__vfma(x, y, z, ALL_TRUE_w)"),
        ("S.vfmae(x, h, h2, mask=m)", "__vfmae(x, h, h2, m)"),
        ("S.vfmao(x, w, w2)", "__vfmao(x, w, w2, ALL_TRUE_w)"),
    ],
    "compare": [
        ("S.vceq(a, 3)", "__vceq(a, (int8)3, ALL_TRUE_w)"),
        ("S.vceq(a, b, '3T5F')", "__vceq(a, b, __vmov_w(0x00000111))"),
        ("S.vcneq(x, y)", "__vqne(x, y, ALL_TRUE_w)"),
        ("S.vcge(h, h2)", "__vqge(h, h2, ALL_TRUE_h)"),
        ("S.vcle(w, w2)", "__vqle(w, w2, ALL_TRUE_h)"),
        (
            "S.isnan(x)",
            "__vcneq(__vand((int8)0, __vclass((int8)0, x, ALL_TRUE_w), (int8)3, ALL_TRUE_w), (int8)0, ALL_TRUE_w)",
        ),
        (
            "S.isinf(h)",
            (
                "__vcneq(__vand((short16)(short)0, __vclass((short16)(short)0, h, ALL_TRUE_h), (short16)(short)516, "
                "ALL_TRUE_h), (short16)(short)0, ALL_TRUE_h)"
            ),
        ),
        ("S.max(a, b)", "__vmax(v, a, b, ALL_TRUE_w)"),
        ("S.min(a, b, mask=m, r=a)", "__vmin(a, a, b, m)"),
        ("S.max(a, b, mask=m)", "__vmax(v, a, b, ALL_TRUE_w)"),
        ("S.vmaxh(a, b)", "__vmaxh(a, b)"),
        ("S.vrpmax(a)", "__vrpmax(v, a, ALL_TRUE_w)"),
    ],
    "bitwise": [
        ("S.vand(a, b)", "__vand(v, a, b, ALL_TRUE_w)"),
        ("S.vor(3, a)", "__vor(v, a, (int8)3, ALL_TRUE_w)"),
        ("S.vinv(a)", "__vinv(v, a, ALL_TRUE_w)"),
        ("S.vand(a, S.vinv(b))", "__vbclr(a, b)"),
        ("S.vor(a, S.vinv(b))", "__vbset(a, b)"),
        ("S.vand(m, a > 7)", "__vand(m, __vclt((int8)7, a, ALL_TRUE_w), ALL_TRUE_w)"),
        ("S.vnsr(a, 3)", "__vnsra(a, as_uint8((int8)3), ALL_TRUE_w)"),
        ("S.vnsr(a, 3, saturate=True, with_round=True)", "__vnsrasr_s(a, as_uint8((int8)3), ALL_TRUE_w)"),
        ("S.vnsr(a, ub, saturate=True, out_sign='u', to_h=True)", "__vnsras_h_u(a, ub, ALL_TRUE_w)"),
        ("S.vnsr(a, ub, out_sign='u')", "as_uchar32(__vnsra(a, ub, ALL_TRUE_w))"),
        ("S.vnsrsr(us, ut)", "__vnsrlsr_u(us, ut, ALL_TRUE_h)"),
        ("S.vsr(a, 3)", "__vasr(a, (int8)3)"),
        ("S.vsr(ua, 3, with_round=True)", "__vlsrr(ua, (uint8)(uint)3)"),
        ("S.vsr(a, b, mask=m, r=a)", "__vasr(a, a, b, m)"),
        ("S.vsl(a, b)", "__vlsl(a, b)"),
        ("S.vsl(a, ub, saturate=True)", "__vsasl(a, as_int8(ub))"),
        ("S.vsl(ua, b)", "__vlsl(ua, as_uint8(b))"),
        ("S.vror(a, b)", "__vror(a, b)"),
        ("S.vror(a, b, mask=m)", "__vror(v, a, b, m)"),
        ("S.vcls(a)", "as_int8(__vcls(as_uint8(v), a, ALL_TRUE_w))"),
        ("S.vcls(a, out_sign='u')", "__vcls(v, a, ALL_TRUE_w)"),
        ("S.clz(ua)", "__vclz(v, ua, ALL_TRUE_w)"),
        ("S.vbrevs(c)", "__vbrevs(v, c, ALL_TRUE_b)"),
        ("S.vpcnt(a, out_sign='u')", "__vpcnt(v, a, ALL_TRUE_w)"),
        ("S.vpcnt(a)", "as_int8(__vpcnt(as_uint8(v), a, ALL_TRUE_w))"),
        ("S.vpcnt(ua)", "__vpcnt(v, as_int8(ua), ALL_TRUE_w)"),
        ("S.vpcnt(ua, out_sign='s')", "as_int8(__vpcnt(as_uint8(v), as_int8(ua), ALL_TRUE_w))"),
    ],
    "conversion": [
        ("S.cast(c, 'u8')", "as_uchar32(c)"),
        (
            "S.cast(c, 'u8', saturate=True)",
            "as_uchar32(__vmax(c, __vmin(c, c, (char32)(char)127, ALL_TRUE_b), (char32)(char)0, ALL_TRUE_b))",
        ),
        (
            "S.cast(s, 'u16', saturate=True)",
            "as_ushort16(__vmax(s, __vmin(s, s, (short16)(short)32767, ALL_TRUE_h), (short16)(short)0, ALL_TRUE_h))",
        ),
        ("S.cast(a, 'fp32')", "__vcvt(a)"),
        ("S.cast(x, 'i32')", "convert_int8(x)"),
        ("S.cast(h, 'bf16')", "__vcvt(h)"),
        ("S.cast(c, 'i16', 'low')", "__vsxtl(c)"),
        ("S.cast(c, 'i16', 'high')", "__vsxth(c)"),
        ("S.cast(c, 'i16', 'even')", "__vsxtl(__vexte(c, c))"),
        ("S.cast(uc, 'u32', 'hl')", "__vuxtl(__vuxth(uc))"),
        ("S.cast(c, 'u16', 'odd')", "as_ushort16(__vsxtl(__vexto(c, c)))"),
        ("S.cast(s, 'u32', 'low')", "as_uint8(__vsxtl(s))"),
        ("S.cast(uc, 'fp32', 'lh')", "__vcvt(as_int8(__vuxth(__vuxtl(uc))))"),
        ("S.cast(c, 'fp32', 'hh')", "__vcvt(__vsxth(__vsxth(c)))"),
        ("S.cast(h, 'fp32', 'even')", "__vcvtue_tfp32(h)"),
        ("S.cast(h, 'fp32', 'low')", "__vzipl(__vcvtue_tfp32(h), __vcvtuo_tfp32(h))"),
        ("S.cast(w, 'fp32', 'high')", "__vziph(__vcvtue_tfp32(w), __vcvtuo_tfp32(w))"),
        ("S.cast(h, 'i32', 'low')", "__vzipl(convert_int8(__vcvtue_tfp32(h)), convert_int8(__vcvtuo_tfp32(h)))"),
        ("S.cast(h, 'u32', 'odd')", "as_uint8(convert_int8(__vcvtuo_tfp32(h)))"),
        ("S.cast(a, 'i8x32')", "__vcompt(as_char32(a), __vmov_b(0x11111111))"),
        ("S.cast(s, 'i8x32')", "__vexte(as_char32(s), as_char32(s))"),
        (
            "S.cast((ua, ub), 'i16', saturate=True)",
            (
                "__vexte(__vnsrls_h_s(ua, (uint8)(uint)0, __vmov_w(286331153)), "
                "__vnsrls_h_s(ub, (uint8)(uint)0, __vmov_w(286331153)))"
            ),
        ),
        ("S.cast((x, y), 'u16')", "__vexte(as_ushort16(convert_int8(x)), as_ushort16(convert_int8(y)))"),
        ("S.cast((x, y), 'fp16')", "__vcvtd(x, y)"),
        ("S.cast((a, b), 'bf16')", "__vcvtd_tbf16(a, b)"),
        ("S.cast(x, 'bf16x16')", "__vcvtd_tbf16(x, x)"),
        (
            "S.cast((a, b), 'i8x32')",
            "__vexte(__vexte(as_char32(a), as_char32(b)), __vexte(as_char32(a), as_char32(b)))",
        ),
        (
            "S.cast((a, b, a), 'i8x32')",
            "__vexte(__vexte(as_char32(a), as_char32(b)), __vexte(as_char32(a), as_char32(a)))",
        ),
        (
            "S.cast((a, b, b, a), 'u8')",
            "__vexte(__vexte(as_uchar32(a), as_uchar32(b)), __vexte(as_uchar32(b), as_uchar32(a)))",
        ),
        ("S.cast(S.vsr(a, 3), 'i8x32')", "__vcompt(__vnsra(a, as_uint8((int8)3), ALL_TRUE_w), __vmov_b(0x11111111))"),
        ("S.cast(S.rint(x), 'i32')", "__vcvt(x)"),
        ("S.cast(S.rint(h), 'i32', 'even')", "__vcvtue_tw(h)"),
        ("S.i32x8([1, 2, 3, 4, 5, 6, 7, 8])", "(int8)(1,2,3,4,5,6,7,8)"),
        ("S.i32x8(k)", "(int8)(int)k"),
        ("S.reinterpret(x, 'i32x8')", "as_int8(x)"),
        ("S.vxtl(s)", "__vsxtl(s)"),
        ("S.vxth(uc)", "__vuxth(uc)"),
        ("S.u(a)", "as_uint8(a)"),
    ],
    "permutation": [
        ("S.vconcat((a, b), 'low')", "__vextl(a, b)"),
        ("S.vconcat((a, b), 'odd')", "__vexto(a, b)"),
        ("S.vzip(a, b, 'even')", "__vzipe(a, b)"),
        ("S.vrevs(a)", "__vrevs(a)"),
        ("S.vrevs(m)", "__vprevs(m)"),
        ("S.vsel(a, b, mask=m)", "__vsel(a, b, m)"),
        ("S.vcompt(a, m)", "__vcompt(a, m)"),
        ("S.vcompc(a, b, m)", "__vcompc(a, b, m)"),
        ("S.vshfl(a, 3)", "__vshfl(a, 3)"),
        ("S.vsldl(a, b, 3)", "__vsldl(a, b, 3)"),
        ("S.vbcast(n)", "(int8)n"),
        ("S.vbcast(out.as_ptr('i32')[n])", "(int8)(((__global int*)out)[n])"),
        ("S.vtbl((a, b), ua)", "__vperm(a, b, ua)"),
        ("S.vtbl((a, b, a), ua)", "__vtbl(a, b, a, ua)"),
        ("S.vreplic(a, 2)", "__vreplic(a, 2)"),
    ],
    "functions": [
        ("S.exp(x)", "vexp(x)"),
        ("S.sqrt(h)", "vsqrt(h)"),
        ("S.pow(x, y)", "vpow(x, y)"),
        ("S.exp(g)", "exp(g)"),
        ("S.max(n, k)", "max(n, (int)k)"),
        ("S.abs(n)", "__abs(n)"),
        ("S.rint(g)", "__rint(g)"),
        ("S.clz(n)", "clz(n)"),
        ("S.ceildiv(n, 3)", "ceildiv(n, 3)"),
        ("S.fma(g, g, g)", "__fma(g, g, g)"),
        ("S.fp32(k)", "(float)k"),
        ("S.i32(g)", "(int)g"),
    ],
}
WIDE_CASES: Sequence[tuple[str, tuple[str, ...]]] = [
    ("S.vadd(a11, b11)", ("a11[0] + b11[0]", "__vadd(v[1], a11[1], b11[1], __vmov_w(0x00000111))")),
    ("S.vaddh(c64, d64)", ("__vaddh(c64[0], c64[1])", "__vaddh(d64[0], d64[1])")),
    ("S.vconcat((a, b))", ("a", "b")),
    ("S.vzip(a, b)", ("__vzipl(a, b)", "__vziph(a, b)")),
    (
        "S.cast(h, 'fp32')",
        (
            "__vzipl(__vcvtue_tfp32(h), __vcvtuo_tfp32(h))",
            "__vziph(__vcvtue_tfp32(h), __vcvtuo_tfp32(h))",
        ),
    ),
    ("S.cast(c, 'i16')", ("__vsxtl(c)", "__vsxth(c)")),
    (
        "S.cast(c, 'i32')",
        (
            "__vsxtl(__vsxtl(c))",
            "__vsxth(__vsxtl(c))",
            "__vsxtl(__vsxth(c))",
            "__vsxth(__vsxth(c))",
        ),
    ),
    ("S.vrevs(a16)", ("__vrevs(a16[1])", "__vrevs(a16[0])")),
    ("S.vsldl(a16, a16, 3)", ("__vsldl(a16[0], a16[1], 3)", "__vsldl(a16[1], a16[0], 3)")),
]
X3_CASES = [
    ("S.cast(h, 'fp32', 'low')", "__vcvtul_tfp32(h)"),
    ("S.cast(w, 'i32', 'high')", "convert_int8(__vcvtuh_tfp32(w))"),
    ("S.vrpmax(a, return_idx=True)", "__vrpmaxe(v, a, ALL_TRUE_w)"),
]


def kernel_text(expression: str) -> str:
    """A kernel that loads the operands of an expression, binds it to `v` and uses that twice."""
    words = set(re.findall(r"\w+", expression))
    words |= {w for name, text in MASKS.items() if name in words for w in re.findall(r"\w+", text)}
    lines = [f"{name} = S.vload(p_{name})" for name in VECTORS if name in words]
    lines += [f"{name} = S.vload(p_{name}, lanes={lanes})" for name, (_, lanes) in WIDE.items() if name in words]
    lines += [f"{name} = {text}" for name, text in MASKS.items() if name in words]
    pointers = {**VECTORS, **{name: t for name, (t, _) in WIDE.items()}}
    params = [f'p_{name}: S.ptr("{t}", "global")' for name, t in pointers.items() if name in words]
    params += [f"{name}: S.{t}" for name, t in SCALARS.items() if name in words]
    body = "\n".join(f"    {line}" for line in [*lines, f"v = {expression}", "use(v, out)", "use(v, out + 1024)"])
    signature = ", ".join([*params, 'out: S.ptr("i8", "global")'])
    return (
        "from compassc.dsl import script as S\n\n\n@S.macro\ndef use(v, p):\n"
        '    if isinstance(v.dtype, str) and v.dtype.startswith("bool"):\n        p[0] = S.vany(v)\n'
        '    elif "x" in str(v.dtype):\n        S.vstore(v, p.as_ptr(v.dtype.element_of))\n    else:\n        p[0] = v\n\n\n'
        f"@S.prim_func\ndef k({signature}):\n{body}\n"
    )


def values_of_v(expression: str, target: str, folder: Path) -> list[str]:
    """What is assigned to `v` in the C text, outer parentheses removed."""
    path = folder / "k.py"
    path.write_text(kernel_text(expression), encoding="utf-8")
    text = generate(passes.lower(parse(load_kernels(path).entry("k"), target))).text
    found = re.findall(r"^ +(?:\w+ )?v(?:\[\d+\]|_\d)? = (.*);$", text, re.MULTILINE)
    return [without_parentheses(value) for value in found]


def without_parentheses(text: str) -> str:
    """A text that is one parenthesis, without it."""
    depth = 0
    if not text.startswith("("):
        return text
    for position, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and position < len(text) - 1:
            return text
    return text[1:-1]


@pytest.mark.parametrize(("expression", "c"), [row for rows in CASES.values() for row in rows])
def test_c_of_one_register(expression: str, c: str, tmp_path: Path) -> None:
    assert values_of_v(expression, "X2_1204", tmp_path) == [c]


@pytest.mark.parametrize(("expression", "c"), WIDE_CASES)
def test_c_of_several_registers(expression: str, c: tuple[str, ...], tmp_path: Path) -> None:
    assert values_of_v(expression, "X2_1204", tmp_path) == list(c)


@pytest.mark.parametrize(("expression", "c"), X3_CASES)
def test_c_on_x3p(expression: str, c: str, tmp_path: Path) -> None:
    assert values_of_v(expression, "X3P_1304", tmp_path) == [c]
