"""Accuracy: fp16 arithmetic rounds after every operation, functions are close to their mathematical values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from chain import Batch, Runner
from law import enough, every_value
from op_forms import Form, Place
from samples import Array, alike, mixture

from compassc.ir.dtypes import FLOAT32, DataType, dtype
from compassc.ops import core, exact
from tests.choosing import some

FUNCTIONS = [op for op in core.load().values() if op.ulps]
"""Operations whose C may differ from their definition in the last places."""
HALVES = tuple(dtype(t) for t in ("float16", "bfloat16"))
OVERFLOWS: dict[str, Callable[[Array], Array]] = {
    "exp": lambda y: y >= 2.0**127.4999,
    "rsqrt": lambda y: y >= 2.0**63.9999,
}
"""Results that the device's algorithms give as infinite: 2^128 as a factor of exp, 1/x in rsqrt."""


def function_forms(t: DataType) -> tuple[Form, ...]:
    places = [Place(f"a{k}", t.with_lanes(t.native_lanes)) for k in range(2)]
    calls = [(op.name, places[: len(op.operands)]) for op in FUNCTIONS]
    return tuple(
        Form(name, f"S.{name}({', '.join(p.name for p in given)})", tuple(given), given[0].dtype)
        for name, given in calls
    )


def rows_of(x: Array, lanes: int) -> Array:
    return x.reshape(-1, lanes)


def far(got: Array, want: Array, ulps: int) -> Array:
    """Where float32 results are more than `ulps` units in the last place from what the definition gives. Results below the
    normal range may be 0."""
    unit = np.spacing(np.where(np.isfinite(want), np.abs(want), np.float32(1))).astype(np.float64)
    wide = want.astype(np.float64)
    special = ~np.isfinite(want)
    off = np.where(special, ~((got == want) | (np.isnan(got) & np.isnan(want))), np.abs(got - wide) > ulps * unit)
    tiny = np.abs(wide) < np.finfo(np.float32).tiny
    top = np.abs(wide) > np.finfo(np.float32).max * (1 - ulps * 2.0**-23)
    return off & ~(tiny & (got == 0)) & ~(top & np.isinf(got))


def test_functions_are_close_to_their_definitions(tmp_path: Path, whole: bool) -> None:
    runner = Batch("functions", function_forms(FLOAT32)).built(tmp_path)
    rng, wrong = np.random.default_rng(3), []
    for spread in (1.0, 20.0, 100.0, 0.0):
        shape = (enough(whole) // 32, 8)
        near = (rng.standard_normal(shape) * spread).astype(np.float32)
        inputs = {
            p: near if spread and k == 0 else mixture(dtype("float32x8"), len(near), rng)
            for k, p in enumerate(("a0", "a1"))
        }
        for form, got in zip(runner.batch.forms, runner.compiled(inputs), strict=True):
            with np.errstate(all="ignore"):
                want = form.op.definition(*(inputs[p.name] for p in form.places), to=form.result)
                bad = far(got, want, form.op.ulps)
                if form.name in OVERFLOWS:
                    bad &= ~(np.isinf(got) & OVERFLOWS[form.name](want))
            if bad.any():
                at = tuple(np.argwhere(bad)[0])
                wrong.append(f"{form.name}({near[at]!r}, {inputs['a1'][at]!r}) is {got[at]!r}, not {want[at]!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("t", HALVES)
def test_functions_of_halves_are_those_of_float32_rounded_once(t: DataType, tmp_path: Path) -> None:
    narrow = Batch("narrow", function_forms(t)).built(tmp_path)
    wide = Batch("wide", function_forms(FLOAT32)).built(tmp_path)
    x, y = every_value(t), np.roll(every_value(t), 12345)
    got = narrow.compiled({"a0": rows_of(x, 16), "a1": rows_of(y, 16)})
    with np.errstate(all="ignore"):
        full = wide.compiled({"a0": rows_of(x.astype(np.float32), 8), "a1": rows_of(y.astype(np.float32), 8)})
        for form, g, w in some(zip(narrow.batch.forms, got, full, strict=True)):
            want = exact.rounded(w.astype(np.float64).reshape(-1), t)
            assert alike(g.reshape(-1), want).all(), form.text


CHAINS = (
    "a0 * a1 + a2",
    "(a0 + a1) + a2",
    "(a0 + a1) - a0",
    "a0 * a1 * a2",
    "(a0 - a1) * (a0 + a1)",
    "a0 * a1 - a2 * a0",
)


@pytest.mark.parametrize(("t", "lanes"), [(HALVES[0], 16), (HALVES[0], 1), (HALVES[1], 16), (FLOAT32, 8), (FLOAT32, 1)])
def test_every_operation_rounds(t: DataType, lanes: int, tmp_path: Path) -> None:
    """No excess precision, no contraction, for vectors and scalars."""
    places = tuple(Place(f"a{k}", t.with_lanes(lanes)) for k in range(3))
    runner = Batch("chains", tuple(Form("", text, places, places[0].dtype) for text in CHAINS)).built(tmp_path)
    rng = np.random.default_rng(5)
    inputs = {p.name: mixture(p.dtype, (1 << 18) // lanes, rng) for p in places}
    for form, got in some(zip(runner.batch.forms, runner.compiled(inputs), strict=True)):
        with np.errstate(all="ignore"):
            want = evaluated(form.text, inputs, t)
        bad = ~alike(got, want)
        assert not bad.any(), (
            f"{form.text}: {[a[bad][0] for a in inputs.values()]} gives {got[bad][0]}, not {want[bad][0]}"
        )


class Rounding:
    """A matrix whose operators round once, from double."""

    def __init__(self, x: Array, t: DataType) -> None:
        self.x, self.t = x, t

    def _apply(self, f: Callable[[Array, Array], Array], other: Rounding) -> Rounding:
        return Rounding(exact.rounded(f(self.x.astype(np.float64), other.x.astype(np.float64)), self.t), self.t)

    def __add__(self, other: Rounding) -> Rounding:
        return self._apply(np.add, other)

    def __sub__(self, other: Rounding) -> Rounding:
        return self._apply(np.subtract, other)

    def __mul__(self, other: Rounding) -> Rounding:
        return self._apply(np.multiply, other)


def evaluated(text: str, inputs: dict[str, Array], t: DataType) -> Array:
    return eval(text, {name: Rounding(x, t) for name, x in inputs.items()}).x


def test_scalar_functions_are_those_of_vectors(tmp_path: Path) -> None:
    for t in (HALVES[0], FLOAT32):
        vector = Batch("vector", function_forms(t)).built(tmp_path)
        places = tuple(Place(f"a{k}", t) for k in range(2))
        forms = tuple(Form(f.name, f.text, places[: len(f.places)], t) for f in vector.batch.forms)
        scalar: Runner = Batch("scalar", forms).built(tmp_path)
        x, y = (mixture(t.with_lanes(t.native_lanes), 4096, np.random.default_rng(k)) for k in range(2))
        want = vector.compiled({"a0": x, "a1": y})
        got = scalar.compiled({"a0": rows_of(x, 1), "a1": rows_of(y, 1)})
        for form, a, b in some(zip(forms, got, want, strict=True)):
            assert alike(a.reshape(-1), b.reshape(-1)).all(), form.text
