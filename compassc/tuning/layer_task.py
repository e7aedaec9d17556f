"""Tasks of layers: the choices of their kernels (`compassc.layers.choices`)."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.bounded import Bounded
from compass_core.dataclass import dataclass
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import INTEGER_TYPES, numpy_dtype
from compassc.layers.choices import deciding
from compassc.layers.declare import BOUNDS, evaluate, type_of
from compassc.layers.kernel import Kernel
from compassc.layers.kernel_cache import KernelCache
from compassc.layers.kernels import kernel_of
from compassc.layers.machine import planned_for
from compassc.tuning.history import history
from compassc.tuning.records import Record
from compassc.tuning.space import Candidate, ParameterSpace
from compassc.tuning.task import Infeasible, Program, Tolerance, Workload

_MOST = 100
_MOST_FLOAT = 4
_PROGRAMS = 64
"""Kernels of a task that are kept."""


def workload_of(layers: Sequence[Layer], target: str) -> Workload:
    """What records of the kernel of these layers are about: types, attributes, dtypes and sizes; not what they are called,
    nor the numbers in them."""
    parts = [
        [
            layer.type,
            {a.name: str(layer.attributes[a.name]) for a in type_of(layer.type).attributes if layer.has(a.name)},
            [t.dtype for t in (*layer.inputs, *layer.outputs)],
            {name: [array.dtype.name, list(array.shape)] for name, array in sorted(layer.constants.items())},
        ]
        for layer in layers
    ]
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
    tensors = [t for layer in layers for t in (*layer.inputs, *layer.outputs)]
    return Workload(
        _name(layers),
        f"layer:{digest[:24]}",
        tuple(t.shape for t in tensors),
        tuple(t.dtype for t in tensors),
        target,
    )


def _name(layers: Sequence[Layer]) -> str:
    return "+".join(layer.type for layer in layers)


def best_choices(layers: Sequence[Layer], target: str) -> Mapping[str, str] | None:
    """The choices that are best on record; None where there are none, or there is no such choice any more."""
    known = history()
    if not known.has_any_of(_name(layers)):
        return None

    def choices(record: Record) -> Mapping[str, str] | None:
        candidate = record.candidate
        return candidate if isinstance(candidate, dict) and _can_be_made(layers, candidate) else None

    return known.taken(workload_of(layers, target), choices)


def _can_be_made(layers: Sequence[Layer], choices: Mapping[str, str]) -> bool:
    try:
        with deciding(choices):
            kernel_of(layers)
    except LayerError:
        return False
    return True


@dataclass(frozen=True)
class LayerTask:
    """The kernel of a layer, with the element-wise layers behind it. LayerError where there is none."""

    layers: tuple[Layer, ...]
    target: str
    folder: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))
    """Where kernels' texts go when there is no cache."""
    space: ParameterSpace = field(init=False)
    _kernel: Kernel = field(init=False)
    _programs: Bounded[str, Program] = field(default_factory=lambda: Bounded(_PROGRAMS), init=False, compare=False)
    """By their text, which choices of sizes have in common."""

    def __post_init__(self) -> None:
        with planned_for(self.target), deciding() as decisions:
            object.__setattr__(self, "_kernel", kernel_of(self.layers))
        object.__setattr__(self, "space", ParameterSpace(decisions.offered))

    def __reduce__(self) -> tuple[Any, ...]:
        """Made anew in another process, whose folder is its own."""
        return LayerTask, (self.layers, self.target)

    @property
    def name(self) -> str:
        sizes = "x".join(map(str, self.layers[0].output.shape))
        return f"{'+'.join(layer.type for layer in self.layers)} {sizes}"

    @property
    def workload(self) -> Workload:
        return workload_of(self.layers, self.target)

    @property
    def default(self) -> Candidate:
        return {name: options[0] for name, options in self.space.parameters.items()}

    @property
    def tolerance(self) -> Tolerance:
        bound = max((BOUNDS.get(t.dtype, 0.0) for layer in self.layers for t in layer.outputs), default=0.0)
        return Tolerance(bound, bound)

    def program(self, candidate: Candidate) -> Program:
        try:
            with planned_for(self.target), deciding(candidate):
                kernel = kernel_of(self.layers)
        except LayerError as error:
            raise Infeasible(str(error)) from None
        if _places(kernel) != _places(self._kernel):
            raise Infeasible("its tensors are other parameters")
        known = self._programs.get(kernel.text)
        if known is None:
            known = Program(KernelCache(self.folder, self.target).function_of(kernel))
            self._programs[kernel.text] = known
        return replace(known, arguments=self._arguments(kernel))

    def arguments(self) -> Sequence[Any]:
        return self._arguments(self._kernel)

    def _arguments(self, kernel: Kernel) -> list[Any]:
        tensors = [a for a in kernel.arguments if isinstance(a, Tensor)]
        return kernel.call({t.name: np.zeros(t.shape, numpy_dtype(t.dtype)) for t in tensors} | self._inputs())

    def expected(self) -> Mapping[int, Array]:
        known = self._inputs()
        for layer in self.layers:
            made = evaluate(layer, [known[t.name] for t in layer.inputs])
            known.update(zip((t.name for t in layer.outputs), made, strict=True))
        last = {t.name for t in self.layers[-1].outputs}
        return {i: known[name] for i, name in _places(self._kernel).items() if name in last}

    def _inputs(self) -> dict[str, Array]:
        """The tensors that no layer of the task makes, at random; the same at each call."""
        rng = np.random.default_rng(0)
        made = {t.name for layer in self.layers for t in layer.outputs}
        wanted = {t.name: t for layer in self.layers for t in layer.inputs if t.name not in made}
        return {name: _random(t, rng) for name, t in wanted.items()}


def _places(kernel: Kernel) -> dict[int, str]:
    return {i: a.name for i, a in enumerate(kernel.arguments) if isinstance(a, Tensor)}


def _random(t: Tensor, rng: np.random.Generator) -> Array:
    kind = numpy_dtype(t.dtype)
    if t.dtype in INTEGER_TYPES:
        low, high = max(-_MOST, t.low), min(_MOST, t.high)
        return rng.integers(low, high, t.shape, endpoint=True).astype(kind)
    return rng.integers(-_MOST_FLOAT, _MOST_FLOAT, t.shape, endpoint=True).astype(kind)
