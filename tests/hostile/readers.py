"""What users bring besides models: statistics, samples and settings of the quantiser, records of tuning, schedules as
traces. An input whose reading is done is also used: a graph is quantised, a record looked up, a trace taken."""

from __future__ import annotations

import io
import json
import random
import warnings
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from compass_core.errors import CompassError
from tests.hostile.harness import Target, bytes_mutant, refused, scratch, text_mutant


def _file(name: str) -> Path:
    return scratch(Path(name).stem) / name


@cache
def _network() -> Any:
    """Two linear layers with an activation between."""
    from compassc.graph import GraphBuilder

    rng = np.random.default_rng(0)
    g = GraphBuilder("net")
    x = g.input("x", (1, 4), "float32")
    for name, kind in (("a", "RELU"), ("b", "NONE")):
        constants = {"weights": rng.normal(size=(4, 4)).astype("float32"), "biases": np.ones(4, np.float32)}
        (x,) = g.layer("FullyConnected", [x], name=name, outputs=[((1, 4), "float32")],
                       attributes={"num_output": 4, "with_activation": kind}, constants=constants)  # fmt: skip
        (x,) = g.layer("Activation", [x], name=f"{name}_sigmoid", outputs=[((1, 4), "float32")],
                       attributes={"method": "SIGMOID"})  # fmt: skip
    return g.finish([x])


def _settings() -> list[Any]:
    from compassc.quantizer import Settings

    return [
        Settings().changed(correct_biases=True, rounding="adaptive"),
        Settings().changed(activation_strategy="kld"),
        Settings().changed(activation_strategy="99percentile", unify=2),
    ]


SAMPLES = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def _checked(read: Callable[[], str]) -> str:
    """The answer of a reader."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # values too large for float32
            return f"read: {read()}"
    except CompassError as error:
        return refused(error)


# ----------------------------------------------------------------------------------------------------------- quantiser


@cache
def _statistics() -> list[bytes]:
    from compassc.quantizer import calibrate
    from compassc.quantizer.data import load

    found = []
    for number, settings in enumerate(_settings()):
        path = _file(f"{number}.npz")
        calibrate(_network(), load(SAMPLES, _network()), settings).save(path)
        found.append(_unpacked(path.read_bytes()))
    return found


def _unpacked(data: bytes) -> bytes:
    """An archive as it is when nothing in it is packed, or summed: a change goes through to what is read."""
    from compass_core.reading import arrays

    made = io.BytesIO()
    arrays.write_archive(made, arrays.all_in(data, "x"))
    return made.getvalue()


def _as_archive(data: bytes) -> bytes:
    """The archive with the sums that its changed content has, so that a reader gets to that."""
    import struct
    import zlib

    out, at = bytearray(data), 0
    ends = []
    while (at := data.find(b"PK\x01\x02", at)) >= 0 and at + 46 <= len(data):
        size, names = struct.unpack_from("<I", data, at + 20)[0], struct.unpack_from("<HHH", data, at + 28)
        offset = struct.unpack_from("<I", data, at + 42)[0]
        ends.append((at, offset, size))
        at += 46 + sum(names)
    for at, offset, size in ends:
        if offset + 30 <= len(data):
            start = offset + 30 + sum(struct.unpack_from("<HH", data, offset + 26))
            struct.pack_into("<I", out, at + 16, zlib.crc32(data[start : start + size]))
    return bytes(out)


def _archive_mutant(pool: list[bytes], source: random.Random) -> bytes:
    """An archive with one number, word or piece of what is in it changed, or any of its bytes."""
    from compass_core.reading import arrays

    if source.random() < 0.3:
        return _as_archive(bytes_mutant(pool, source))
    try:
        found = arrays.all_in(source.choice(pool), "x")
    except CompassError:
        return bytes_mutant(pool, source)
    if not found:
        return bytes_mutant(pool, source)
    name = source.choice(list(found))
    array = found[name].copy()
    choice = source.randrange(6)
    if name == "about":
        array = np.frombuffer(text_mutant([array.tobytes()], source), np.uint8)
    elif choice == 0:
        del found[name]
    elif choice == 1:
        array = array[: source.randrange(len(array) + 1)] if array.ndim else array.reshape(1)
    elif choice == 2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = array.astype(source.choice(("float32", "int8", "uint64", "bool", "complex128")))
    elif choice == 3:
        array = array.reshape(-1) if source.random() < 0.5 else array[None]
    elif array.size:
        with np.errstate(all="ignore"), suppress(OverflowError, ValueError):  # what integers do not hold
            array.reshape(-1)[source.randrange(array.size)] = source.choice(
                (0, -1, 1, np.nan, np.inf, -np.inf, 1e308, -1e308, 3.4e38, -3.4e38, 1e-45, 2.0**53, 0.5)
            )
    if name in found:
        found[name if source.random() < 0.95 else name + "x"] = array
    made = io.BytesIO()
    arrays.write_archive(made, found)
    return made.getvalue()


def _statistics_answer(data: bytes, known: Container[str], thorough: bool) -> str:
    from compassc.quantizer import statistics_files
    from compassc.quantizer.convert import quantize_with_reasons

    def read() -> str:
        calibration, said = statistics_files.parse(data, "x.npz"), []
        for settings in _settings():
            try:
                said.append(str(len(quantize_with_reasons(_network(), calibration, settings).graph.layers)))
            except CompassError as error:
                said.append(refused(error))
        return f"{bool(calibration.moments)} {'; '.join(said)}"

    return _checked(read)


@cache
def _samples() -> list[bytes]:
    made = []
    for arrays in ({"x": SAMPLES}, {"arr_0": SAMPLES[:1]}, {"x": SAMPLES, "labels": np.zeros(3, "int64")}):
        file = io.BytesIO()
        np.savez(file, **arrays)
        made.append(file.getvalue())
    file = io.BytesIO()
    np.save(file, SAMPLES.astype("float64"))
    return [*made, file.getvalue()]


def _samples_answer(data: bytes, known: Container[str], thorough: bool) -> str:
    from compassc.quantizer import calibrate
    from compassc.quantizer.data import load

    path = _file("samples.npz")
    path.write_bytes(data)

    def read() -> str:
        samples = load(path, _network())
        calibrate(_network(), samples, _settings()[1])
        return str(len(samples) > 1)

    return _checked(read)


SETTINGS = b"""\
base: w8a16
activation_strategy: "99.9percentile"
weight_strategy: "weighted_scale_param[0.5,0.5,0.5]"
activation_mode: asymmetric
momentum: 0.9
unify: 1.5
equalise: true
correct_biases: false
fallback: float16
layers:
  "b*": {bits: 16, multiplier_bits: 8, per_channel: false}
  "type:Activation": {float: bfloat16, table_bits: 9}
  a: {rounding: adaptive, bias_effective_bits: 0, activation_strategy: kld}
"""


def _settings_answer(data: bytes, known: Container[str], thorough: bool) -> str:
    from compassc.quantizer import Settings, quantize_model

    path = _file("settings.yaml")
    path.write_bytes(data)

    def read() -> str:
        settings = Settings.read(path)
        try:
            return (
                f"{len(quantize_model(_network(), SAMPLES, settings).graph.layers)} {settings.common.activation_bits}"
            )
        except CompassError as error:
            return refused(error)

    return _checked(read)


# -------------------------------------------------------------------------------------------------------------- tuning


def _record_lines() -> list[bytes]:
    from compassc.tuning.records import Record
    from compassc.tuning.result import Result
    from compassc.tuning.task import Workload

    workload = Workload("k", "abc", ((4, 8), ()), ("int32", "float16"), "X2_1204", {"n": 3}, "1")
    good = Record.of(workload, {"tile": 8, "order": [0, 1]}, "cycles", Result(1234.5, seconds={"run": 0.25}))
    bad = Record.of(workload, {"tile": 4, "order": [1, 0]}, "seconds", Result(None, "build", "no"))
    return [f"{good.line()}\n{bad.line()}\n".encode(), f"{good.line()}\n".encode()]


def _records_answer(data: bytes, known: Container[str], thorough: bool) -> str:
    from compassc.tuning import records
    from compassc.tuning.history import History

    path = _file("records.jsonl")
    path.write_bytes(data)

    def read() -> str:
        found = records.read(path)
        for record in found.records:
            assert records.Record.parse(record.line()).line() == record.line(), "written and read again it differs"
        kept, history = records.pruned(found.records), History(found.records)
        records.best(records.distinct(found.records))
        said = [history.best(r.workload) or history.usual(r.workload) for r in found.records]
        problems = sorted({refused(problem) for problem in found.problems})
        assert found.records or problems or not data.strip()
        if problems and not found.records:
            raise found.problems[0]
        return f"{len(kept)} {len(said)} {problems[:1]}"

    return _checked(read)


# -------------------------------------------------------------------------------------------------------------- traces


def _te_schedule() -> Any:
    from compassc import te

    n = 32
    a, b = te.placeholder((n, n), name="a"), te.placeholder((n, n), name="b")
    k = te.reduce_axis((0, n), "k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
    d = te.compute((n, n), lambda i, j: c[i, j] + 1, name="d")
    return te.create_schedule(d.op), c, d


@cache
def _te_traces() -> list[bytes]:
    from compassc import te

    s, c, d = _te_schedule()
    i, j = s[d].op.axis
    outer, inner = s[d].split(i, factor=8)
    s[d].reorder(outer, j, inner)
    s[c].compute_at(s[d], outer)
    s[d].vectorize(inner)
    ko, _ = s[c].split(s[c].op.reduce_axis[0], nparts=4)
    s[c].unroll(ko)
    s[c].pragma(ko, "auto_unroll_max_step", 16)
    first = s.trace.to_json().encode()
    s, c, d = _te_schedule()
    s[d].bind(s[d].op.axis[0], te.thread_axis("threadIdx.x"))
    s[c].fuse(*s[c].op.axis)
    return [first, s.trace.to_json().encode()]


def _te_answer(data: bytes, known: Container[str], thorough: bool) -> str:
    from compassc.te.schedule.trace import Trace, replay

    def read() -> str:
        trace = Trace.from_json(data.decode("utf-8", "replace"))
        compile(trace.as_python(), "x", "exec")
        assert Trace.from_json(trace.to_json()) == trace, "written and read again it differs"
        schedule = _te_schedule()[0]
        replay(schedule, trace)
        return " ".join(sorted({step.primitive for step in trace}))

    return _checked(read)


def _tir_schedule() -> Any:
    from compassc import te, tir

    _, c, d = _te_schedule()
    a, b = c.op.input_tensors
    return tir.Schedule(te.create_prim_func([a, b, d]))


@cache
def _tir_traces() -> list[bytes]:
    s = _tir_schedule()
    c, d = s.get_block("c"), s.get_block("d")
    i, j = s.get_loops(d)
    outer, inner = s.split(i, [None, 8])
    s.reorder(outer, j, inner)
    s.compute_at(c, outer)
    s.vectorize(inner)
    s.annotate(outer, "pragma", 3)
    s.cache_read(c, 0, "local")
    s.sample_perfect_tile(s.get_loops(c)[-1], 2)
    return [json.dumps(s.trace.as_json()).encode()]


def _tir_answer(data: bytes, known: Container[str], thorough: bool) -> str:
    from compassc.tir.trace import Trace

    def read() -> str:
        schedule = _tir_schedule()
        Trace.apply_json_to_schedule(data.decode("utf-8", "replace"), schedule)
        again = schedule.trace.as_json()
        compile(str(schedule.trace), "x", "exec")
        other = _tir_schedule()
        Trace.apply_json_to_schedule(json.dumps(again), other)
        assert other.trace.as_json() == again, "written and read again it differs"
        return " ".join(sorted({row[0] for row in again[0]}))

    return _checked(read)


_WORDS = (0, -1, 1, 7, 1 << 31, 1 << 64, 10**400, 0.5, 1e999, True, None, "", "x", "None", '"b', "k", "\n", "*/", [], {},
          [[[]]], {"axis": ["c", "i"]}, {"": 0}, {"const": [1, "int8"]}, {"thread": "vthread"}, {"expr": ["add", 1, 2]},
          {"cast": ["int8", 3]}, {"stage": "c"}, {"tensor": ["c", 0]}, {"var": ["n"]}, "b0", "l3", "d", "c")  # fmt: skip
"""What values in JSON become, besides each other."""


def _json_mutant(pool: list[bytes], source: random.Random) -> bytes:
    """JSON of which a value or two are others, are there twice or no more; or any damage to the text."""
    if source.random() < 0.3:
        return text_mutant(pool, source)
    text = source.choice(pool)
    lines = (text.splitlines() or [b""]) if text.count(b"\n{") else [text]
    at = source.randrange(len(lines))
    try:
        value = [json.loads(lines[at])]
    except ValueError:
        return text_mutant(pool, source)
    for _ in range(source.choice((1, 1, 2))):
        places = list(_places(value))
        where, key = source.choice(places[: source.choice((8, 32, len(places)))])
        choice = source.randrange(4)
        if choice == 0 and where is not value:
            del where[key]
        elif choice == 1 and isinstance(where, list):
            where.insert(key, where[key])
        elif choice == 2:
            other, name = source.choice(places)
            where[key] = deepcopy(other[name])
        else:
            where[key] = deepcopy(source.choice(_WORDS))
    lines[at] = json.dumps(value[0]).encode()
    return b"\n".join(lines)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """The values in a value: what they are in, and their key there."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, (list, dict)):
            yield from _places(item)


READERS = (
    Target("statistics", _statistics, _statistics_answer, _archive_mutant, seconds=5),
    Target("samples", _samples, _samples_answer, _archive_mutant),
    Target("settings", lambda: [SETTINGS, b"bits: 16\n"], _settings_answer, text_mutant, seconds=5),
    Target("records", _record_lines, _records_answer, _json_mutant),
    Target("te-traces", _te_traces, _te_answer, _json_mutant, seconds=5),
    Target("tir-traces", _tir_traces, _tir_answer, _json_mutant, seconds=5),
)
