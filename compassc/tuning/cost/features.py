"""Features of a program: numbers about its loop nest that a cost model learns from.

`FEATURES` is the table: what each number is, and how it is taken. Counts go in as log2(1 + count), so that a linear model
of the logarithm of costs multiplies powers of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from math import log2
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.dataclass import dataclass
from compass_runtime.profile.costs import op_classes
from compass_runtime.profile.regions import cost
from compassc.tuning.cost.nest import Access, Nest, Piece, Transfer, class_names, loop_nest, units

if TYPE_CHECKING:
    from compassc.ir.stmts import IRModule

    Vector = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

_TURN = 3
"""Cycles that a turn of a loop takes besides what is in it."""


@dataclass(frozen=True)
class Feature:
    """A number about a program. `unit`: of what is counted before the logarithm; "" for shares, which have none."""

    name: str
    unit: str
    meaning: str
    of: Callable[[Nest], float]

    def value(self, nest: Nest) -> float:
        found = self.of(nest)
        return log2(1.0 + max(found, 0.0)) if self.unit else found


def feature_vector(module: IRModule, sizes: Mapping[str, float] | None = None) -> Vector:
    """The features of a lowered module, in the order of `names()`. `sizes`: values of scalar parameters."""
    nest = loop_nest(module, sizes)
    return np.array([f.value(nest) for f in table()])


def names() -> list[str]:
    """The names of the features, in order."""
    return [f.name for f in table()]


# What is summed


def _ran(nest: Nest, of: Callable[[Any], float]) -> float:
    """The sum over statements of what a run does, times the runs."""
    return sum(s.runs * of(s) for s in nest.statements)


def _class(kind: str) -> Callable[[Nest], float]:
    return lambda nest: _ran(nest, lambda s: s.classes[kind])


def _bytes(scope: str, store: bool) -> Callable[[Nest], float]:
    return lambda nest: _ran(nest, lambda s: sum(a.bytes for a in s.accesses if (a.scope, a.store) == (scope, store)))


def _accesses(choose: Callable[[Access], float]) -> Callable[[Nest], float]:
    return lambda nest: _ran(nest, lambda s: sum(choose(a) for a in s.accesses))


def _moved(choose: Callable[[Transfer], float]) -> Callable[[Nest], float]:
    return lambda nest: _ran(nest, lambda s: sum(choose(t) for t in s.transfers))


def _way(inwards: bool, of: Callable[[Transfer], float]) -> Callable[[Nest], float]:
    return _moved(lambda t: of(t) if t.inwards == inwards else 0.0)


def _held(scope: str) -> Callable[[Nest], float]:
    return lambda nest: nest.memory[scope]


def _bound_by(name: str) -> Callable[[Nest], float]:
    return lambda nest: float(getattr(cycles(nest), name))


def _reuse(scope: str) -> Callable[[Nest], float]:
    def found(nest: Nest) -> float:
        used = [(s.runs * a.bytes, a.reuse) for s in nest.statements for a in s.accesses if a.scope == scope]
        total = sum(b for b, _ in used)
        return total / sum(b / r for b, r in used) if total else 0.0

    return found


def _turns(kind: str) -> Callable[[Nest], float]:
    return lambda nest: _weighted(nest, lambda s: s.turns.get(kind, 1.0))


def _weighted(nest: Nest, of: Callable[[Any], float]) -> float:
    """The mean over statements, weighted by the instructions that they execute."""
    weights = [(s.runs * max(sum(s.classes.values()), 1), of(s)) for s in nest.statements]
    total = sum(w for w, _ in weights)
    return sum(w * x for w, x in weights) / total if total else 0.0


# Cycles, as the target's cost model has them


@dataclass(frozen=True)
class Cycles:
    """Cycles of the first TEC by what bounds them."""

    vector: float = 0.0
    memory: float = 0.0
    scalar: float = 0.0
    issue: float = 0.0
    latency: float = 0.0
    """While results are waited for."""
    work: float = 0.0
    """All of them: pieces of straight text as profiles schedule them."""

    def __add__(self, other: Cycles) -> Cycles:
        return Cycles(*(getattr(self, n) + getattr(other, n) for n in self.__dataclass_fields__))


@lru_cache(maxsize=4)
def cycles(nest: Nest) -> Cycles:
    """The sum over the pieces."""
    total = Cycles()
    for piece in nest.pieces:
        total += _of_piece(nest, piece)
    return total


def _of_piece(nest: Nest, piece: Piece) -> Cycles:
    model, kinds = units(nest.target.name), op_classes()
    busy = dict.fromkeys(model.units, 0.0)
    for op in piece.region.ops:
        busy[kinds[op.kind].unit] += model.interval(op.kind, op.external)
    vector, memory, scalar = (busy[u] / model.units[u] for u in ("vector", "memory", "scalar"))
    issue = len(piece.region.ops) / model.issue_width
    work = cost(piece.region, model)
    waits = max(work - max(vector, memory, scalar, issue), 0.0)
    return Cycles(*(piece.runs * x for x in (vector, memory, scalar, issue, waits, work)))


def _duration(nest: Nest, transfer: Transfer) -> float:
    """Cycles of a transfer while the other TECs transfer as much."""
    model = units(nest.target.name)
    share = model.device_memory_bytes_per_cycle / nest.target.tecs
    return model.dma["startup"] + transfer.bytes / min(model.dma["bytes_per_cycle"], share)


def _stands_still(nest: Nest) -> float:
    """Cycles of transfers that the TEC waits for."""
    return _moved(lambda t: 0.0 if t.background else _duration(nest, t))(nest)


def _in_background(nest: Nest) -> float:
    """Cycles of the other transfers."""
    return _moved(lambda t: _duration(nest, t) if t.background else 0.0)(nest)


def _port(nest: Nest) -> float:
    """Cycles of the port of the device memory, of all TECs."""
    moved = sum(s.runs * s.tecs * sum(t.bytes for t in s.transfers) for s in nest.statements)
    return moved / units(nest.target.name).device_memory_bytes_per_cycle


def estimate(nest: Nest) -> float:
    """What bounds the whole program most: work and transfers in turn, or those beside it, or the port."""
    model = units(nest.target.name)
    barriers = _class("barrier")(nest) * model.barrier_cycles
    own = cycles(nest).work + _TURN * nest.branches + _stands_still(nest) + barriers
    return model.launch_cycles + max(own, _in_background(nest), _port(nest))


@cache
def table() -> tuple[Feature, ...]:
    """All features."""
    return (*_instructions(), *_memory(), *_transfers(), *_loops(), *_cycles())


def _instructions() -> Iterable[Feature]:
    for kind in class_names():
        yield Feature(
            f"run.{kind}", "instructions", f"instructions of the class `{kind}` on the first TEC", _class(kind)
        )

    def full(nest: Nest) -> float:
        useful = sum(s.runs * a for s in nest.statements for a, _ in s.lanes)
        return useful / (sum(s.runs * b for s in nest.statements for _, b in s.lanes) or 1.0)

    yield Feature("lane_use", "", "bytes of vector operations that are used, of the bytes of their registers", full)
    yield Feature(
        "vector_bytes",
        "bytes",
        "mean width of vector operations",
        lambda n: _weighted(n, lambda s: max([a for a, _ in s.lanes], default=0)),
    )


def _memory() -> Iterable[Feature]:
    for scope, where in (("global", "device memory"), ("lsram", "LSRAM"), ("shared", "shared memory")):
        yield Feature(f"load.{scope}", "bytes", f"loads from {where}", _bytes(scope, False))
        yield Feature(f"store.{scope}", "bytes", f"stores into {where}", _bytes(scope, True))
        yield Feature(f"reuse.{scope}", "times", f"how often bytes of {where} are used", _reuse(scope))
        if scope != "global":
            yield Feature(f"held.{scope}", "bytes", f"arrays in {where}", _held(scope))
    yield Feature("strided", "accesses", "gathers and scatters", _accesses(lambda a: a.gather))
    yield Feature("doubled", "bytes", "arrays of two halves", lambda n: n.doubled)


def _transfers() -> Iterable[Feature]:
    for inwards, way in ((True, "in"), (False, "out")):
        yield Feature(f"dma.{way}", "bytes", f"transfers {way}", _way(inwards, lambda t: t.bytes))
        yield Feature(f"dma.{way}.count", "transfers", f"transfers {way}", _way(inwards, lambda t: 1.0))
    yield Feature("dma.rows", "rows", "rows of all transfers", _moved(lambda t: t.rows))

    def width(nest: Nest) -> float:
        return _moved(lambda t: t.bytes)(nest) / (_moved(lambda t: t.rows)(nest) or 1.0)

    def beside(nest: Nest) -> float:
        return _moved(lambda t: t.bytes * t.background)(nest) / (_moved(lambda t: t.bytes)(nest) or 1.0)

    yield Feature("dma.width", "bytes", "mean width of a row of a transfer", width)
    yield Feature("dma.background", "", "bytes that are moved beside the work, of all that are moved", beside)


def _loops() -> Iterable[Feature]:
    for kind, what in (("serial", "plain loops"), ("tec", "loops over TECs"), ("unrolled", "loops to be unrolled")):
        yield Feature(f"turns.{kind}", "turns", f"turns of the {what} around an instruction, in the mean", _turns(kind))
    yield Feature("branches", "branches", "turns of loops, and conditions", lambda n: n.branches)
    yield Feature("statements", "statements", "length of the program", lambda n: n.lines)
    yield Feature("unknown_loops", "loops", "loops whose turns are not known", lambda n: n.unknown_loops)
    yield Feature("tec_share", "", "TECs at work of all TECs", lambda n: _weighted(n, lambda s: s.tecs) / n.target.tecs)


def _cycles() -> Iterable[Feature]:
    words = {
        "vector": "if vector units were all that counts",
        "memory": "if the memory unit were all that counts",
        "scalar": "if scalar units were all that counts",
        "issue": "if starting instructions were all that counts",
        "latency": "in which results are waited for",
        "work": "of pieces of straight text, scheduled as profiles do",
    }
    for name, what in words.items():
        yield Feature(f"cycles.{name}", "cycles", f"cycles {what}", _bound_by(name))
    yield Feature("cycles.waits", "cycles", "cycles of transfers that the TEC waits for", _stands_still)
    yield Feature("cycles.background", "cycles", "cycles of transfers beside the work", _in_background)
    yield Feature("cycles.port", "cycles", "cycles of the port of the device memory, of all TECs", _port)
    yield Feature("cycles.bound", "cycles", "cycles by what bounds the program most", estimate)
