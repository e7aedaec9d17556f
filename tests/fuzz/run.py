"""Runs programs both ways and compares what they leave in memory.

Many programs are compiled together: each is an entry of one object, with its own parameter block.
"""

from __future__ import annotations

import linecache
import logging
import struct
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from unittest import mock

import ml_dtypes
import numpy as np

from compass_core import targets
from compass_core.elf.hostcode import make_text_blob, parse_text_blob
from compass_core.errors import CompassError, render
from compass_core.extents import evaluate
from compass_core.hostcc import command
from compass_sim import Worker
from compassc import codegen, pass_manager, passes
from compassc.analysis.interface import interface_of
from compassc.language.parser import parse
from compassc.toolchain import cc, unit

from .generate import SCALARS
from .scope import IN_SIZE, OUT_SIZE, SHORT, TECS
from .tree import Program

TEXT, TCBS, PARAMS, ARENA = 0x0100_0000, 0x0020_0000, 0x0021_0000, 0x0400_0000
TRIPLE = "x86_64-unknown-linux-gnu"
TIMEOUT = 20.0
GUARD = 4096
HEADER = "from compassc.dsl import script as S\n\n\n"
SPECIALS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-8, 70000.0)
NUMPY = {short: np.dtype(ml_dtypes.bfloat16 if t == "bfloat16" else t) for t, short in SHORT.items()}


@dataclass
class Outcome:
    """How a program went: `kind` is empty when both ways agree; `detail` says more for people."""

    kind: str = ""
    detail: str = ""


@dataclass
class Compiled:
    """A program with its kernel object, its C text and parameters."""

    program: Program
    kernel: Any
    text: str = ""
    extents: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome = field(default_factory=Outcome)

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """What all runs get, which change copies only."""
        return arguments(self.program)


# -------------------------------------------------------------------------------------------------------------- inputs


def sample(dtype: np.dtype, size: int, rng: np.random.Generator) -> np.ndarray:
    """Random values, small ones and edges among them."""
    pick = rng.integers(0, 4, size)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        wide = rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
        edges = rng.choice(np.array([info.min, info.max, 0, 1, 2], dtype), size)
        small = rng.integers(max(info.min, -20), 20, size).astype(dtype)
        return np.where(pick == 0, edges, np.where(pick == 1, wide, small))
    raw = np.frombuffer(rng.bytes(size * dtype.itemsize), dtype)
    near = (rng.standard_normal(size) * 8).astype(dtype)
    special = rng.choice(np.array(SPECIALS, np.float32), size).astype(dtype)
    return np.where(pick == 0, special, np.where(pick == 1, raw, near))


def values_for(names: Iterable[str], seed: int) -> dict[str, Any]:
    """Random values for entry parameters, whose names tell their types."""
    rng = np.random.default_rng(seed)
    found: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        for name in names:
            if name in SCALARS:
                found[name] = sample(np.dtype(SCALARS[name]), 8, rng)[0]
            else:
                size = IN_SIZE if name.startswith("in_") else OUT_SIZE * TECS
                found[name] = sample(NUMPY[name.split("_")[1]], size, rng)
    return found


def arguments(program: Program) -> dict[str, Any]:
    """A value for each parameter of the entry that the program uses, by name."""
    found = values_for(program.entry.params, program.data_seed)
    return {name: found[name] for name in program.used_params()}


def alike(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Element by element: the same bits, or both NaN."""
    if a.dtype.kind in "iu":
        return a == b
    raw = f"u{a.dtype.itemsize}"
    return (a.view(raw) == b.view(raw)) | (np.isnan(a.astype(np.float32)) & np.isnan(b.astype(np.float32)))


# ------------------------------------------------------------------------------------------------------------ compiling

_count = 0


def load_kernel(program: Program) -> Any:
    """The entry of a program's text, whose source the parser finds as a file's."""
    global _count
    _count += 1
    file, text = f"<fuzz {_count}>", HEADER + program.text()
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    names: dict[str, Any] = {"__name__": "fuzz"}
    exec(compile(text, file, "exec", dont_inherit=True), names)  # noqa: S102  the generator's own text
    return names[program.entry.name]


def compile_program(program: Program) -> Compiled:
    """A program down to its C text; the outcome tells what refused it."""
    kernel: Any = None
    done = Compiled(program, kernel)
    stage = "load"
    try:
        done.kernel = load_kernel(program)
        stage = "parse"
        module = parse(done.kernel, program.target)
        stage = "lower"
        lowered = passes.lower(module, pass_manager.PassOptions())
        stage = "legalize"
        legalised, interface = passes.legalize(lowered), interface_of(lowered)
        stage = "codegen"
        result = codegen.emit(legalised, interface)
        done.text, done.extents = result.text, result.params["extents"]
    except CompassError as error:
        done.outcome = Outcome(f"{stage}: {error.code}", render(error))
    except Exception as error:  # noqa: BLE001  whatever a stage raises is a finding
        import traceback

        done.outcome = Outcome(f"{stage}: {type(error).__name__}", "".join(traceback.format_exception(error)[-4:]))
    return done


def joined(texts: Sequence[str]) -> str:
    """Kernel texts as one; helpers that several of them declare occur once."""
    seen: dict[str, None] = {}
    bodies = []
    for text in texts:
        lines = text.splitlines()
        seen.update((line, None) for line in lines if line.startswith(("#include", "GEN_")))
        bodies += [line for line in lines if not line.startswith(("#include", "GEN_"))]
    return "\n".join([*seen, *bodies]) + "\n"


_limited = partial(command.run, seconds=60.0)
"""The compiler as a process of its own, which can be ended: it does not come to an end on every text."""


def build_object(items: Sequence[Compiled], target: str, folder: Path) -> bytes:
    """One object of all texts; CompassError from the C compiler."""
    source = folder / "batch.cl"
    source.write_text(joined([item.text for item in items]), encoding="utf-8")
    options = cc.CcOptions(targets.load(target), use_cache=False)
    with mock.patch.object(command, "run", _limited):
        return cc.compile_file(source, folder / "batch.o", options).object.read_bytes()


# -------------------------------------------------------------------------------------------------------------- running


class Device:
    """A simulator worker with fixed places for code, task blocks, parameters and tensors."""

    def __init__(self) -> None:
        self.worker = Worker()

    def close(self) -> None:
        self.worker.close()

    def restart(self) -> None:
        self.worker.close()
        self.worker = Worker()

    def write(self, address: int, data: bytes) -> None:
        self.worker.memory[address : address + len(data)] = data

    def load(self, elf: bytes, symbols: Sequence[str]) -> dict[str, int]:
        blob = make_text_blob(elf, list(symbols), "native", TRIPLE)
        self.write(TEXT, blob)
        return {name: TEXT + offset for name, offset in parse_text_blob(blob).entries}

    def _chain(self, spc: int, kind: str) -> int:
        """Write the task blocks of one group; how many there are."""
        blocks = [_block(0, 0, 0, 1)]
        if kind == "x3":
            blocks.append(_block(1, 0, 0, 1))
        flag = 2 if kind == "x3" else 1
        blocks += [_block(flag | (0x40 if i == TECS - 1 else 0), spc, i, TECS) for i in range(TECS)]
        for i, tcb in enumerate(blocks):
            following = TCBS + 128 * (i + 1) if kind == "x2" and i + 1 < len(blocks) else 0
            self.write(TCBS + 128 * i, tcb[:4] + struct.pack("<I", following) + tcb[8:])
        return len(blocks)

    def run(self, spc: int, values: dict[str, Any], kind: str) -> dict[str, np.ndarray]:
        """Run an entry; the arrays as it leaves them."""
        words, places, at = [], {}, ARENA
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                self.write(at, value.tobytes())
                places[name] = at
                words.append(at)
                at += -(-value.nbytes // 64) * 64 + GUARD
            else:
                raw = np.asarray(value)
                bits = int.from_bytes(raw.tobytes(), "little", signed=raw.dtype.kind == "i")
                words.append(bits & 0xFFFFFFFF)
        self.write(PARAMS, struct.pack(f"<{len(words) + 1}I", *words, 0))
        count = self._chain(spc, kind)
        self.worker.dispatch(TCBS, count, kind, TIMEOUT)
        return {
            name: np.frombuffer(self.worker.memory[p : p + values[name].nbytes], values[name].dtype).copy()
            for name, p in places.items()
        }


def _block(flag: int, spc: int, task: int, tasks: int) -> bytes:
    """One task control block without its link."""
    tcb = bytearray(128)
    struct.pack_into("<I8xI", tcb, 0, flag, spc)
    struct.pack_into("<3H3H3H3H", tcb, 28, 1, 1, 1, tasks, 1, 1, 1, 0, 0, task, 0, 0)
    struct.pack_into("<I", tcb, 56, PARAMS)
    return bytes(tcb)


def run_pysim(item: Compiled) -> dict[str, np.ndarray]:
    values = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in item.arguments.items()}
    item.kernel.target = item.program.target
    item.kernel(*values.values())
    return {k: v for k, v in values.items() if isinstance(v, np.ndarray)}


def beyond_extents(item: Compiled, compiled: dict[str, np.ndarray]) -> str:
    """What is wrong with the sizes that a build without shapes finds: too small for the writes, or refusing the arrays."""
    before = item.arguments
    scalars = {name: value for name, value in before.items() if name not in compiled}
    for name, extent in evaluate(item.extents, scalars, TECS).items():
        if name in compiled:
            changed = np.flatnonzero(~alike(before[name], compiled[name]))
            written = int(changed[-1]) + 1 if changed.size else 0
            if extent.certain > before[name].size or (extent.elements is not None and extent.elements < written):
                return f"{name!r} has {before[name].size} elements, {written} written: {extent}"
    return ""


def compare(item: Compiled, device: Device, spc: int) -> Outcome:
    """Both results of a program."""
    kind = "x3" if item.program.target.startswith("X3") else "x2"
    try:
        compiled = device.run(spc, item.arguments, kind)
    except CompassError as error:
        device.restart()
        return Outcome("simulator", render(error))
    try:
        python = run_pysim(item)
    except Exception as error:  # noqa: BLE001  whatever PySim raises is a finding
        text = render(error) if isinstance(error, CompassError) else repr(error)
        return Outcome(f"PySim: {getattr(error, 'code', type(error).__name__)}", text)
    sizes = beyond_extents(item, compiled)
    if sizes:
        return Outcome("extents", sizes)
    lines = []
    for name, expected in python.items():
        wrong = np.flatnonzero(~alike(expected, compiled[name]))
        for i in wrong[:4]:
            lines.append(f"{name}[{i}]: PySim {expected[i]!r}, compiled {compiled[name][i]!r}")
    return Outcome("mismatch", "\n".join(lines)) if lines else Outcome()


def run_batch(programs: Sequence[Program], device: Device) -> list[Outcome]:
    """The outcome of each program."""
    logging.disable(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tags without effect
        items = [compile_program(p) for p in programs]
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for target in sorted({p.target for p in programs}):
            ready = [i for i in items if i.program.target == target and not i.outcome.kind]
            if ready:
                _run_ready(ready, target, Path(folder), device)
    logging.disable(logging.NOTSET)
    return [item.outcome for item in items]


def _run_ready(ready: list[Compiled], target: str, folder: Path, device: Device) -> None:
    try:
        elf = build_object(ready, target, folder)
    except CompassError as error:
        if len(ready) == 1:
            ready[0].outcome = Outcome(f"C compiler: {error.code}", render(error) + "\n" + ready[0].text)
            return
        half = len(ready) // 2
        _run_ready(ready[:half], target, folder, device)
        _run_ready(ready[half:], target, folder, device)
        return
    symbols = {item.program.entry.name: unit.find_kernels(item.text)[0].entry for item in ready}
    entries = device.load(elf, list(symbols.values()))
    for item in ready:
        worker = device.worker
        item.outcome = compare(item, device, entries[symbols[item.program.entry.name]])
        if device.worker is not worker:
            entries = device.load(elf, list(symbols.values()))
