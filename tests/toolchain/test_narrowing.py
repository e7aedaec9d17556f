"""Four vectors narrowed to bytes: the host's functions in the text's, and the same numbers on every kind of host."""

import numpy as np
import pytest

from compass_core.hostcc import host, narrowing
from compassc.dsl import BuildManager
from compassc.dsl import script as S

ALL, SOME, HALVES = "__vmov_w(286331153)", "__vmov_w(17)", "__vmov_h(1431655765)"
FORMS = ["__vnsras_s", "__vnsras_u", "__vnsrasr_s", "__vnsrasr_u"]


def nest(forms: list[str], mask: str = ALL) -> str:
    a, b, c, d = (f"{form}((x[{i}] + f(y, z)), (uint8)(uint)0, {mask})" for i, form in enumerate(forms))
    return f"__vexte(__vexte({a}, {b}), __vexte({c}, {d}))"


@pytest.mark.parametrize("form", FORMS)
def test_a_nest_is_computed_by_the_functions_of_hosts_and_nothing_moves(form: str) -> None:
    text = nest([form] * 4)
    inner = text.replace("f(y, z)", text)
    assert (
        narrowing.joined(f"v = {text}; w = __vexte(a, b);")
        == f"v = {text.replace('__vexte', '__wexte').replace('__vn', '__wn')}; w = __vexte(a, b);"
    )
    assert narrowing.joined(inner) == inner.replace("__vexte", "__wexte").replace("__vn", "__wn")


@pytest.mark.parametrize("form", ["__vnsras_h_s", "__vnsrasr_h_u", "__vnsras_s", "__vnsrasr_u"])
def test_a_pair_is_too(form: str) -> None:
    a, b = (f"{form}(x[{i}], (uint8)(uint)0, {ALL if '_h_' in form else HALVES})" for i in range(2))
    text = f"v = __vexte({a}, {b}) + __vexte({a}, c);"
    assert narrowing.joined(text) == text.replace("__vexte", "__pexte", 1).replace("__vn", "__wn", 2)


@pytest.mark.parametrize(
    "text",
    [
        nest(["__vnsras_s"] * 4, SOME),
        nest(["__vnsras_s"] * 3 + ["__vnsras_u"]),
        nest(["__vnsras_s"] * 3 + ["__vnsra"]),
        f"__vexte(__vnsras_s(a, s, {HALVES}), __vnsras_s(b, s, {SOME}))",
        nest(["__vnsras_s"] * 4).replace(", __vexte(", ", __vexto("),
        nest(["__vnsras_s"] * 4)[:-3],
        f"__vexte(__vnsras_h_s(a, s, {ALL}), __vnsras_h_u(b, s, {ALL}))",
        f"__vexte(__vnsras_s(a, s, {ALL}), __vnsras_s(b, s, {ALL}))",
    ],
)
def test_what_is_not_such_a_nest_stays(text: str) -> None:
    assert narrowing.joined(text) == text


@S.prim_func
def narrowed(x: S.ptr("i32", "global"), signed: S.ptr("i8", "global"), unsigned: S.ptr("u8", "global"), shift: S.i32):
    """Cut, and rounded behind that."""
    if S.get_local_id() == 0:
        value = S.vload(x, lanes=32)
        cut, near = S.vsr(value, shift), S.vsr(value, shift, with_round=True)
        S.vstore(S.cast(cut, "int8", saturate=True), signed)
        S.vstore(S.cast(cut, "uint8", saturate=True), unsigned)
        S.vstore(S.cast(near, "int8", saturate=True), signed + 32)
        S.vstore(S.cast(near, "uint8", saturate=True), unsigned + 32)


@S.prim_func
def halved(
    words: S.ptr("i32", "global"),
    halves: S.ptr("i16", "global"),
    signed: S.ptr("i16", "global"),
    unsigned: S.ptr("u16", "global"),
    bytes_: S.ptr("i8", "global"),
    unsigned_bytes: S.ptr("u8", "global"),
    shift: S.i32,
):
    """Words to halves, and halves to bytes."""
    if S.get_local_id() == 0:
        word, half = S.vload(words, lanes=16), S.vload(halves, lanes=32)
        S.vstore(S.cast(S.vsr(word, shift), "int16", saturate=True), signed)
        S.vstore(S.cast(S.vsr(word, shift, with_round=True), "uint16", saturate=True), unsigned)
        S.vstore(S.cast(S.vsr(half, S.i16(shift), with_round=True), "int8", saturate=True), bytes_)
        S.vstore(S.cast(S.vsr(half, S.i16(shift)), "uint8", saturate=True), unsigned_bytes)


@pytest.mark.parametrize("level", ["native", "x86-64-v3", "x86-64"])
def test_bytes_are_those_of_the_dialect(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if level != "native" and host.missing_features(" ".join(host._LEVELS[level])):
        pytest.skip("the host is no such one")
    monkeypatch.setenv("COMPASS_HOST_CPU", level)
    ends = np.array(
        [-(2**31), 2**31 - 1, -32769, -32768, 32767, 32768, 65535, 65536, -129, -128, 127, 128, 255, 256, 0, -1]
    )
    x = np.concatenate([ends, np.arange(-8, 8) * 5]).astype("int32")
    for kernel, given, kinds in (
        (narrowed, (x,), ["int8", "uint8"]),
        (halved, (x[:16], x.astype("int16")), ["int16", "uint16", "int8", "uint8"]),
    ):
        made = BuildManager().build(kernel)
        for shift in (0, 1, 7, 15):
            got, want = ([np.zeros(64, kind) for kind in kinds] for _ in range(2))
            made(*given, *got, shift)
            kernel(*given, *want, shift)
            np.testing.assert_array_equal(got, want, err_msg=str(shift))
