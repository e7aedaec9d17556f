"""The note `graphjson` of a graph of this toolchain: its tensors by name, where they lie, and which layers each launch
computes. Files of other builders have other texts there, or none."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from compass_core.aipubin.dtypes import BY_NAME
from compass_core.dataclass import dataclass
from compass_core.reading.names import is_label

FORMAT = "compassc-graph/1"
BEFORE_ALL = -1
"""`made` of a tensor that is there before the first launch."""
_MOST = 1 << 40
"""Whole numbers are nearer to 0."""


@dataclass(frozen=True)
class NotedTensor:
    """A tensor of the graph.

    A quantised value q stands for (q + zero_point) / scale; with `axis` both are tuples, one number for each index of
    that dimension. `section` and `offset` tell where it lies among the reuse sections, None where the note does not
    say; `made` is the number of the launch after which it is complete.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    scale: float | tuple[float, ...] = 1.0
    zero_point: float | tuple[float, ...] = 0
    axis: int | None = None
    section: int | None = None
    offset: int = 0
    made: int = BEFORE_ALL

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * BY_NAME[self.dtype].size


@dataclass(frozen=True)
class NotedLaunch:
    """A launch: the layers it computes, its kernel, and names of tensors. `inner` exist inside the kernel alone."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    kernel: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    inner: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The layers' names in one line."""
        return " + ".join(self.names)


@dataclass(frozen=True)
class NotedState:
    """A tensor that hosts keep from run to run: what a run gives as `output` is the `input` of the next one, both by name.
    In the first run it has the real number `initial` everywhere."""

    input: str
    output: str
    initial: float = 0.0


@dataclass(frozen=True)
class GraphNote:
    """`inputs` and `outputs` in the runtime's order, `tensors` those between launches, in the order they are made."""

    inputs: tuple[NotedTensor, ...]
    outputs: tuple[NotedTensor, ...]
    tensors: tuple[NotedTensor, ...] = ()
    launches: tuple[NotedLaunch, ...] = ()
    states: tuple[NotedState, ...] = ()

    def to_bytes(self) -> bytes:
        """The note's content. Other tools know the keys `inputs`, `outputs` and `layers`."""
        content = {
            "format": FORMAT,
            "inputs": [_tensor(t) for t in self.inputs],
            "outputs": [_tensor(t) for t in self.outputs],
            "tensors": [_tensor(t) for t in self.tensors],
            "layers": [
                {"names": run.names, "types": run.types, "kernel": run.kernel, "inputs": run.inputs}
                | {"outputs": run.outputs}
                | ({"inner": run.inner} if run.inner else {})
                for run in self.launches
            ],
        } | ({"states": [[s.input, s.output, s.initial] for s in self.states]} if self.states else {})
        return json.dumps(content, separators=(",", ":")).encode()


def read_note(data: bytes) -> GraphNote | None:
    """The content of a note; None when it is not ours, or says what cannot be."""
    return _read(data, whole=True)


def read_ends(data: bytes) -> GraphNote | None:
    """The graph's inputs, outputs and states in a note: all that a run needs, read in a fraction of the time."""
    return _read(data, whole=False)


def _read(data: bytes, whole: bool) -> GraphNote | None:
    try:
        content = json.loads(data or b"{}")
        ends = tuple(map(_read_tensor, content["inputs"])), tuple(map(_read_tensor, content["outputs"]))
        states = _read_states(content.get("states", []), *ends)
        if not whole:
            return GraphNote(*ends, states=states)
        inner = tuple(map(_read_tensor, content.get("tensors", ())))
        return GraphNote(*ends, inner, tuple(map(_read_launch, content["layers"])), states)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return None


def _tensor(tensor: NotedTensor) -> dict[str, object]:
    found: dict[str, Any] = {"name": tensor.name, "dtype": tensor.dtype, "shape": tensor.shape}
    if (tensor.scale, tensor.zero_point) != (1.0, 0):
        found |= {"scale": tensor.scale, "zero_point": tensor.zero_point}
    if tensor.axis is not None:
        found["axis"] = tensor.axis
    if tensor.section is not None:
        found["place"] = (tensor.section, tensor.offset, tensor.made)
    return found


def _read_tensor(found: dict[str, Any]) -> NotedTensor:
    """ValueError, TypeError or KeyError if it is not a tensor."""
    place = found.get("place")
    section, offset, made = (None, 0, BEFORE_ALL) if place is None else _integers(place)
    shape = _integers(found["shape"])
    dtype = found["dtype"]
    if dtype not in BY_NAME or (section or 0) < 0 or offset < 0 or made < BEFORE_ALL:
        raise ValueError("it is no tensor")
    axis = found.get("axis")
    scale, zero = _numbers(found.get("scale", 1.0)), _numbers(found.get("zero_point", 0))
    if axis is None and (isinstance(scale, tuple) or isinstance(zero, tuple)):
        raise ValueError("several scales without an axis")
    if axis is not None and not _fit(axis, shape, scale, zero):
        raise ValueError("the scales do not fit the axis")
    if any(not s for s in (scale if isinstance(scale, tuple) else (scale,))):
        raise ValueError("a scale is 0")
    return NotedTensor(_label(found["name"]), dtype, shape, scale, zero, axis, section, offset, made)


def _fit(axis: Any, shape: Sequence[int], *numbers: float | tuple[float, ...]) -> bool:
    inside = type(axis) is int and 0 <= axis < len(shape)
    return inside and all(not isinstance(n, tuple) or len(n) == shape[axis] for n in numbers)


def _read_states(found: Any, inputs: Sequence[NotedTensor], outputs: Sequence[NotedTensor]) -> tuple[NotedState, ...]:
    """ValueError or TypeError where they are none of these inputs and outputs, of the same shape; each input once."""
    into, out = {t.name: t.shape for t in inputs}, {t.name: t.shape for t in outputs}
    states = [NotedState(_label(i), _label(o), float(_number(initial))) for i, o, initial in found]
    if any(s.input not in into or into[s.input] != out.get(s.output) for s in states):
        raise ValueError("a state is no input and output of one shape")
    if len({s.input for s in states}) < len(states):
        raise ValueError("an input is two states")
    return tuple(states)


def _read_launch(found: dict[str, Any]) -> NotedLaunch:
    def labels(key: str) -> tuple[str, ...]:
        items = tuple(found.get(key, ()))
        _label("".join(items))  # a graph has hundreds of them; joining checks that all are strings
        return items

    return NotedLaunch(
        labels("names"), labels("types"), _label(found["kernel"]), labels("inputs"), labels("outputs"), labels("inner")
    )


def _label(value: str) -> str:
    if not is_label(value):
        raise ValueError("it is no label")
    return value


def _integers(values: object) -> tuple[int, ...]:
    if not isinstance(values, list):
        raise TypeError("it is no list")
    for value in values:
        if type(value) is not int or not -_MOST < value < _MOST:
            raise ValueError("they are no whole numbers")
    return tuple(values)


def _numbers(value: object) -> float | tuple[float, ...]:
    """A finite number, or a tuple of such."""
    if isinstance(value, list):
        return tuple(_number(item) for item in value)
    return _number(value)


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise ValueError("it is no number")
    return float(value) if type(value) is float else int(value)
