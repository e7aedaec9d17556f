"""The comparisons: the chain with PySim, and with the operations' definitions, on many values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from chain import Batch, Runner, batches
from op_forms import Form, Place
from samples import Array, difference, edges, mask_array, values

from compassc.ir.dtypes import DataType
from compassc.ops import exact
from compassc.ops.numeric import np_dtype
from compassc.pysim import pysim_impl
from compassc.pysim.values import PyVar

AT_ONCE = 1 << 18
SMALL_ROWS = 16
PART_ROWS, PART_VALUES = 1 << 13, 1 << 16
Inputs = dict[str, Array]


# --------------------------------------------------------------------------------------------------------------- values


def every_value(t: DataType) -> Array:
    """All bit patterns of an 8- or 16-bit type."""
    return np.arange(1 << t.bits, dtype=f"u{t.bytes}").view(np_dtype(t))


def enough(whole: bool) -> int:
    """Values per operation, at least, where not all can be tried."""
    return AT_ONCE * 4 if whole else AT_ONCE


def pairs_of(x: Array) -> tuple[Array, Array]:
    return np.repeat(x, len(x)), np.tile(x, len(x))


def chosen_values(place: Place, position: int) -> Array:
    """Values every run begins with: all pairs of 8-bit values, between operands and between neighbouring lanes; all
    16-bit values; all pairs of edge values."""
    t = place.dtype.element_of
    first, second = pairs_of(every_value(t) if t.bits == 8 else edges(t))
    own = (first, second)[position % 2]
    if t.bits == 8:
        return np.concatenate([own, np.stack([first, second], axis=1).reshape(-1)])
    return np.concatenate([every_value(t) if t.bits == 16 else own[:0], own])


def many(places: list[Place], rows: int, rng: np.random.Generator, start: bool) -> Inputs:
    """Inputs of `rows` rows; with `start` the chosen values come first."""
    out = {p.name: values(p, rows, rng) for p in places}
    for p in places:
        if start and not p.dtype.is_bool and p.name[0] == "a":
            flat = out[p.name].reshape(-1)
            chosen = chosen_values(p, int(p.name[1]))[: flat.size]
            flat[: chosen.size] = chosen
    return out


def rounds(batch: Batch, rng: np.random.Generator, total: int) -> Iterator[Inputs]:
    """Inputs whose first operands hold `total` values together."""
    lanes = max(p.dtype.lanes for p in batch.places)
    rows = AT_ONCE // lanes
    for k in range(-(-total // AT_ONCE)):
        yield many(batch.places, rows, rng, start=k == 0)


def parts(inputs: Inputs) -> Iterator[Inputs]:
    """The inputs in parts: what hundreds of forms give for all rows is hundreds of megabytes, slow to come by and to read, as
    are arrays of 64-bit numbers that do not stay in the processor's memory."""
    rows = len(next(iter(inputs.values())))
    step = min(PART_ROWS, PART_VALUES // max(x.shape[1] for x in inputs.values()))
    for start in range(0, rows, step):
        yield {name: x[start : start + step] for name, x in inputs.items()}


# ------------------------------------------------------------------------------------------------------------ references


ROWS = {"fma": 400}
"""Operations defined in exact fractions, and how many rows are enough."""


Known = dict[tuple[object, ...], Array]
"""What a definition gives for some inputs without a mask: the next forms may be the same call with one."""


def by_definition(form: Form, inputs: Inputs, rows: int, known: Known) -> Array | None:
    """The result by the operation's definition; None where the compiled operation may differ from it in the last places."""
    op = form.op
    if op.definition is None or op.ulps:
        return None
    mask = mask_array(form, inputs, rows)
    operands = [inputs[p.name][:rows] for p in form.operands if isinstance(p, Place)]
    if form.result.is_scalar and not form.result.is_bool:  # scalars are brought to one type first
        operands = [x.astype(np_dtype(form.result)) for x in operands]
    r = inputs[form.r.name][:rows] if isinstance(form.r, Place) else None
    options = {name: value for name, value in form.options if name != "out_sign"}
    mask = None if mask is None else mask[:rows]
    if op.mask_aware:
        options.update({"mask": mask, **({"r": r} if op.r == "param" else {})})
        return op.definition(*operands, to=form.result, **options)
    key = form.name, form.operands, form.result, *options.items()
    if key not in known:
        known.clear()
        known[key] = op.definition(*operands, to=form.result, **options)
    return exact.chosen(known[key], mask, r)


def in_pysim(form: Form, inputs: Inputs, rows: int) -> Array | None:
    """PySim's result of the operation on all rows as one long vector; None where lanes of a row depend on others."""
    if form.op.split != "lanes" or form.result.is_scalar:
        return None

    def whole(p: Place) -> PyVar:
        return PyVar(inputs[p.name][:rows].reshape(-1), p.dtype.with_lanes(p.dtype.lanes * rows))

    given: dict[str, Any] = dict(form.options)
    if isinstance(form.mask, Place):
        given["mask"] = whole(form.mask)
    if isinstance(form.r, Place):
        given["r"] = whole(form.r)
    result = pysim_impl(form.op)(*(whole(p) for p in form.operands if isinstance(p, Place)), **given)
    return result.value.reshape(rows, -1)


# ------------------------------------------------------------------------------------------------------------ comparison


def compare(form: Form, inputs: Inputs, got: Array, known: Known) -> Iterator[str]:
    """What differs from the definition and from PySim; `known` is of these inputs."""
    rows = min(len(got), ROWS.get(form.name, len(got)))
    want = by_definition(form, inputs, rows, known)
    if want is not None:
        yield difference(form, inputs, got[:rows], want, "the definition says")
    want = in_pysim(form, inputs, len(got))
    if want is not None:
        yield difference(form, inputs, got, want, "PySim says")


def check_small(runner: Runner, seed: int) -> list[str]:
    """Differences between the chain and PySim running the same kernel, on few rows."""
    rng = np.random.default_rng(seed)
    inputs = {p.name: values(p, SMALL_ROWS, rng) for p in runner.batch.places}
    got, want = runner.compiled(inputs), runner.pysim(inputs)
    found = [difference(f, inputs, g, w, "PySim says") for f, g, w in zip(runner.batch.forms, got, want, strict=True)]
    return [line for line in found if line]


def check_many(runner: Runner, seed: int, total: int) -> list[str]:
    """Differences between the chain and both references, on `total` values."""
    rng, wrong = np.random.default_rng(seed), dict[str, str]()
    for inputs in rounds(runner.batch, rng, total):
        for part in parts(inputs):
            known: Known = {}
            for form, got in zip(runner.batch.forms, runner.compiled(part), strict=True):
                with np.errstate(all="ignore"):
                    wrong.update((form.text, line) for line in compare(form, part, got, known) if line)
    return list(wrong.values())


def together(parts: Iterable[Iterable[Form]]) -> list[Form]:
    """The forms of all parts, for few kernels; none of them has none."""
    found = [list(part) for part in parts]
    assert all(found), "no forms"
    return [form for forms in found for form in forms]


def check_forms(name: str, forms: Sequence[Form], folder: Path, size: int = 330, many: int = 0, **options: Any) -> None:
    """Build the forms and compare; `many`: that many values more than the few of the same kernel in PySim."""
    assert forms, "no forms"
    wrong = []
    for seed, batch in enumerate(batches(name, forms, size, **options)):
        runner = batch.built(folder)
        wrong += check_small(runner, seed)
        wrong += check_many(runner, seed, many) if many else []
    assert not wrong, f"{len(wrong)} of {len(forms)} forms differ:\n" + "\n".join(line[:600] for line in wrong[:10])
