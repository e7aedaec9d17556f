"""Every vector conversion with every part, at every width, alone and merged, agrees with PySim and the definition."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chain import Runner, batches
from law import AT_ONCE, Inputs, check_forms, check_small, enough, rounds, together
from op_forms import Form, Place, beside_others, expression
from samples import Array, difference

from compass_core.errors import CompassError
from compassc.ir.dtypes import STORAGE, DataType
from compassc.ops import exact
from compassc.ops.convert import PARTS

LANES = {8: (0, 55, 20, 64), 16: (0, 25, 4, 48), 32: (0, 55, 9, 40)}
SATURATE = (None, False, True)
SELECTED = {
    "all": (slice(None),) * 2,
    "low": (0, 2),
    "high": (1, 2),
    "ll": (0, 4),
    "lh": (1, 4),
    "hl": (2, 4),
    "hh": (3, 4),
}


def accepted(text: str, *places: Place, live: int = 0) -> Form | None:
    try:
        return expression(text, *places, live=live)
    except CompassError:
        return None


def cast_text(x: str, to: DataType, part: str, saturate: Any) -> str:
    given = [x, f"'{to}'", *([f"'{part}'"] if part != "all" else [])]
    return f"S.cast({', '.join(given + ([f'saturate={saturate}'] if saturate is not None else []))})"


def single_casts(t: DataType, lanes: int) -> Iterator[Form]:
    """Conversions of one vector; also of one register to a full register of narrower elements."""
    x = Place("a0", t.with_lanes(lanes or t.native_lanes))
    for to in STORAGE:
        for part in PARTS:
            for saturate in SATURATE:
                found = accepted(cast_text("a0", to, part, saturate), x)
                if found is not None:
                    yield found
        if to.bits < t.bits and not lanes:
            full = accepted(cast_text("a0", to.with_lanes(to.native_lanes), "all", None), x, live=t.native_lanes)
            yield from [full] if full else []


def merges(t: DataType) -> Iterator[Form]:
    """Several registers into one."""
    places = [Place(f"a{k}", t.with_lanes(t.native_lanes)) for k in range(4)]
    for to in STORAGE:
        for count in (2, 3, 4):
            full = to.with_lanes(to.native_lanes)
            if count == 3 and to.bits * 4 != t.bits:
                continue
            for saturate in SATURATE:
                text = cast_text(f"({', '.join(p.name for p in places[:count])})", full, "all", saturate)
                found = accepted(text, *places[:count], live=count * t.native_lanes)
                if found is not None:
                    yield found


def definition(form: Form, inputs: Inputs) -> Array:
    """The conversion by its definition; lanes without meaning are 0."""
    arguments = eval(
        form.text.replace("S.cast", "dict_of"), {"dict_of": options_of, **{p.name: p for p in form.places}}
    )
    x = np.concatenate([inputs[p.name] for p in form.places], axis=1)
    part, n = arguments["part"], x.shape[1]
    if part in ("even", "odd"):
        x = x[:, part == "odd" :: 2]
    elif part != "all":
        at, of = SELECTED[part]
        x = x[:, at * n // of : (at + 1) * n // of]
    out = exact.converted(x, form.result, bool(arguments["saturate"]))
    return np.concatenate([out, np.zeros((len(out), form.result.lanes - out.shape[1]), out.dtype)], axis=1)


def options_of(x: Any, to: str, part: str = "all", saturate: Any = None) -> dict[str, Any]:
    return {"part": part, "saturate": saturate}


def check_values(runner: Runner, whole: bool) -> list[str]:
    """Differences from the definition: all values of 8- and 16-bit types, many of others."""
    wrong = dict[str, str]()
    bits = max(p.dtype.bits for p in runner.batch.places)
    for inputs in rounds(runner.batch, np.random.default_rng(1), enough(whole) if bits == 32 else AT_ONCE):
        for form, got in zip(runner.batch.forms, runner.compiled(inputs), strict=True):
            with np.errstate(all="ignore"):
                want = definition(form, inputs)
            line = difference(form, inputs, got, want, "the definition says")
            wrong.update({form.text: line} if line else {})
    return list(wrong.values())


@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
@pytest.mark.parametrize("t", STORAGE)
def test_one_register(t: DataType, target: str, tmp_path: Path, whole: bool) -> None:
    forms = [*single_casts(t, 0), *merges(t)]
    wrong = []
    for batch in batches("casts", forms, 200, target=target):
        runner = batch.built(tmp_path)
        wrong += check_small(runner, 0) + check_values(runner, whole)
    assert not wrong, f"{len(wrong)} of {len(forms)} conversions differ:\n" + "\n".join(wrong[:10])


@pytest.mark.parametrize("t", STORAGE)
def test_other_widths(t: DataType, tmp_path: Path) -> None:
    forms = together(single_casts(t, lanes) for lanes in LANES[t.bits][1:])
    check_forms("casts", list(map(beside_others, forms)), tmp_path, cc_options="-O1")


@pytest.mark.parametrize("t", STORAGE)
def test_scalars_and_bits(t: DataType, tmp_path: Path) -> None:
    """Scalar conversions, also to a broadcast vector, and reinterpretations of scalars and registers."""
    x, v = Place("a0", t), Place("a1", t.with_lanes(t.native_lanes))
    forms = [expression(f"S.cast(a0, '{to}')", x) for to in STORAGE]
    forms += [expression(f"S.cast(a0, '{to.with_lanes(to.native_lanes)}')", x) for to in STORAGE]
    forms += [expression(f"S.reinterpret(a0, '{to}')", x) for to in STORAGE if to.bits == t.bits]
    forms += [expression(f"S.reinterpret(a1, '{to.with_lanes(to.native_lanes)}')", v) for to in STORAGE]
    forms += [expression(f"S.{name}(a{k})", p) for name in "iu" for k, p in enumerate((x, v)) if t.is_integer]
    check_forms("scalars", forms, tmp_path)
