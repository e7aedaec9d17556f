"""Four vectors narrowed to bytes: the host's functions in the text's, and the same numbers on every kind of host."""

import numpy as np
import pytest

from compass_core.hostcc import host, narrowing
from compassc.dsl import BuildManager
from compassc.dsl import script as S

ALL, SOME = "__vmov_w(286331153)", "__vmov_w(17)"
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


@pytest.mark.parametrize(
    "text",
    [
        nest(["__vnsras_s"] * 4, SOME),
        nest(["__vnsras_s"] * 3 + ["__vnsras_u"]),
        nest(["__vnsras_s"] * 3 + ["__vnsra"]),
        nest(["__vnsras_s"] * 4, "__vmov_h(1431655765)"),
        nest(["__vnsras_s"] * 4).replace(", __vexte(", ", __vexto("),
        nest(["__vnsras_s"] * 4)[:-3],
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


@pytest.mark.parametrize("level", ["native", "x86-64-v3", "x86-64"])
def test_bytes_are_those_of_the_dialect(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if level != "native" and host.missing_features(" ".join(host._LEVELS[level])):
        pytest.skip("the host is no such one")
    monkeypatch.setenv("COMPASS_HOST_CPU", level)
    ends = np.array(
        [-(2**31), 2**31 - 1, -32769, -32768, 32767, 32768, 65535, 65536, -129, -128, 127, 128, 255, 256, 0, -1]
    )
    x = np.concatenate([ends, np.arange(-8, 8) * 5]).astype("int32")
    made = BuildManager().build(narrowed)
    for shift in (0, 1, 7, 31):
        got, want = ([np.zeros(64, "int8"), np.zeros(64, "uint8")] for _ in range(2))
        made(x, *got, shift)
        narrowed(x, *want, shift)
        np.testing.assert_array_equal(got, want, err_msg=str(shift))
