"""Statistics as files: an .npz of JSON (`about`: names, numbers of rows) and arrays. What is read is checked whole, so that
ranges are computed of statistics that samples may have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from compass_core import files
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.reading import arrays, jsontext, names
from compassc.quantizer.statistics import BINS, FIELDS, Calibration, Moments, Record

FORMAT = "compassc-statistics/1"
CODE = "calibration-data"
_LARGEST = float(np.finfo(np.float32).max)
"""Of values, which are float32."""


def save(calibration: Calibration, path: Path) -> None:
    """Writes an .npz file, as `load` reads it."""
    records, moments = calibration.records, calibration.moments
    about = {
        "format": FORMAT,
        "samples": calibration.samples,
        "records": list(records),
        "moments": {name: found.rows for name, found in moments.items()},
    }
    numbers = [[getattr(record, f) for f in FIELDS] for record in records.values()]
    made: dict[str, Array] = {
        "about": np.frombuffer(json.dumps(about).encode(), np.uint8),
        "numbers": np.array(numbers, np.float64).reshape(-1, len(FIELDS)),
    }
    made |= {f"counts_{i}": record.counts for i, record in enumerate(records.values()) if record.counts.size}
    for i, found in enumerate(moments.values()):
        made[f"mean_{i}"] = found.mean
        if found.products is not None:
            made[f"products_{i}"] = found.products

    def content(partial: Path) -> None:
        with partial.open("wb") as file:
            arrays.write_archive(file, made, packed=True)

    files.write(path, content)


def load(path: Path) -> Calibration:
    """The calibration of a file that `save` wrote. CompassError for another file, and for numbers that no samples have."""
    return parse(files.read(path), str(path))


def parse(data: bytes, where: str) -> Calibration:
    """The calibration in the content of a file; see `load`."""
    given = arrays.all_in(data, where)
    about = _about(given, where)
    numbers = _array(given, "numbers", (len(about["records"]), len(FIELDS)), where)
    records = {}
    for i, (name, row) in enumerate(zip(about["records"], numbers.tolist(), strict=True)):
        counts = _array(given, f"counts_{i}", (BINS,), where) if f"counts_{i}" in given else np.zeros(0)
        record = Record(**dict(zip(FIELDS, row, strict=True)), counts=counts)
        if wrong := next(_faults(record), ""):
            raise _bad(where, f"the record of '{name}': {wrong}")
        record.batches = int(record.batches)
        records[name] = record
    moments = {}
    for i, (name, rows) in enumerate(about["moments"].items()):
        mean = _array(given, f"mean_{i}", (None, None), where)
        products = None
        if f"products_{i}" in given:
            products = _array(given, f"products_{i}", (*mean.shape, mean.shape[1]), where)
        moments[name] = Moments(mean, products, rows)
    return Calibration(records, moments, about["samples"])


def _about(given: dict[str, Array], where: str) -> dict[str, Any]:
    """The part in JSON, of the declared types."""
    if "about" not in given or given["about"].dtype != np.uint8:
        raise _bad(where, "it says nothing about what its arrays are")
    about = jsontext.parse(given["about"].tobytes(), where, CODE, "what it says about its arrays")
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise _bad(where, f'it does not say "format": "{FORMAT}"')
    listed, rows = about.get("records"), about.get("moments")
    if not isinstance(listed, list) or not isinstance(rows, dict) or len(set(map(str, listed))) != len(listed):
        raise _bad(where, "it lists no records or moments, or one of them twice")
    if not all(map(names.is_label, (*listed, *rows))):
        raise _bad(where, "a name is none")
    if not all(type(n) is int and 0 <= n < 1 << 63 for n in (about.get("samples"), *rows.values())):
        raise _bad(where, "a number of samples is none")
    return about


def _array(given: dict[str, Array], name: str, shape: tuple[int | None, ...], where: str) -> Array:
    """An array of finite float64 (infinite ones in `numbers`); None in `shape` is any size."""
    found = given.get(name)
    if found is None or found.dtype != np.float64:
        raise _bad(where, f"it has no array '{name}' of float64")
    if found.ndim != len(shape) or any(n not in (None, d) for n, d in zip(shape, found.shape, strict=True)):
        raise _bad(where, f"'{name}' has the shape {list(found.shape)}")
    with np.errstate(over="ignore"):
        beyond = name != "numbers" and not np.isfinite(found.sum(dtype=np.float64))
    if beyond or (name.startswith("counts") and (found < 0).any()):
        raise _bad(where, f"'{name}' has values that are none of samples")
    return found


def _faults(r: Record) -> Iterator[str]:
    """What no samples have."""
    batches = r.batches
    if not (0 <= batches < 1 << 53 and batches == int(batches)):
        yield f"{batches} batches"
    if not batches and (r.least, r.most) != (np.inf, -np.inf):
        yield "values of no samples"
    for name in FIELDS[: -1 if batches else 0]:
        # running numbers and the ends of histograms may be a little beyond
        if not abs(getattr(r, name)) <= 4 * _LARGEST:
            yield f"'{name}' is {getattr(r, name)}"
    if batches and not (r.least <= r.most and r.running_least <= r.running_most and min(r.std, r.mad, r.bound) >= 0):
        yield "its smallest value is larger than its largest one, or a distance is negative"
    if r.counts.size and not r.bound >= max(abs(r.least), abs(r.most)):
        yield f"values beyond its histogram, which ends at {r.bound}"


def _bad(where: str, why: str) -> CompassError:
    return CompassError(
        f"'{where}' holds no statistics: {why}", code=CODE, help="`compassc quantize --save-statistics` writes them"
    )
