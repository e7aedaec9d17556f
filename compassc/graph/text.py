"""A graph as Compass IR: text, and the bytes of its constants.

`read(*write(graph))` equals the graph; `write(read(text, weights))` has every line of a text that says something, layers
in topological order.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

from compass_core.arrays import Array, content_of
from compass_core.errors import Span
from compass_core.errors.suggest import help_for
from compass_core.files.pieces import Pieces
from compass_core.namedtuple import NamedTuple
from compass_core.reading.budget import Budget
from compass_core.reading.limits import COMPUTED_BYTES, COMPUTED_ELEMENTS, FILE_BYTES, TENSOR_ELEMENTS
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.sections import CompassIR, Section, SubgraphIR, format_ir, parse
from compassc.graph.tensor import Tensor
from compassc.graph.values import IRDType, Value

_TOP = ("layer_top_range", "layer_top_scale", "layer_top_zp", "activation_quantization_axis")
_OWN_KEYS = frozenset(
    f"layer_{name}" for name in "id name type bottom bottom_shape bottom_type top top_shape top_type".split()
) | frozenset(_TOP)
"""Keys of a layer that are neither constants nor attributes."""
_HEADER_KEYS = frozenset("model_name subgraph_name layer_number input_tensors output_tensors".split())
_PARTS = ("offset", "size", "shape", "type")
"""The suffixes of the four keys of a constant."""
_LARGEST = 1e30
"""Of scales and zero points."""


def read(text: str, weights: bytes | memoryview = b"", path: str = "compass_ir.txt") -> Graph:
    """The graph in `text`, its constants (views of `weights`, the content of the binary file). `path` is for messages.

    CompassError with file and line where the text is malformed or contradicts itself.
    """
    ir = parse(text, path)
    budget = Budget(path, lambda: len(text) + len(weights))
    subgraphs = {
        str(s.header.values["subgraph_name"]): _Reader(ir, s.header, s.layers, weights, budget).graph()
        for s in ir.subgraphs
    }
    return _Reader(ir, ir.header, ir.layers, weights, budget).graph(subgraphs)


def write(graph: Graph) -> tuple[str, bytes]:
    """Text and binary file of a graph. CompassError when a name or a word could not be read back."""
    written, weights = in_pieces(graph)
    return written, bytes(weights)


def in_pieces(graph: Graph) -> tuple[str, Pieces]:
    """As `write`, without another copy of the constants."""
    weights = _Weights()
    main = _sections(graph, weights, "model_name")
    inner = [_sections(g, weights, "subgraph_name") for g in graph.subgraphs.values()]
    written = format_ir(CompassIR(main[0], main[1:], [SubgraphIR(s[0], s[1:]) for s in inner]))
    return written, Pieces(weights.parts)


# ------------------------------------------------------------------------------------------------------------- reading


class _Reader(NamedTuple):
    """One graph of a file: its header, and the sections of its layers. Constants may be the same bytes of the binary
    file, so that what they take together is asked of the budget."""

    ir: CompassIR
    header: Section
    sections: list[Section]
    weights: bytes | memoryview
    budget: Budget

    def graph(self, subgraphs: Mapping[str, Graph] | None = None) -> Graph:
        tensors: dict[str, Tensor] = {}
        outputs, constants = [], []
        for section in self.sections:
            constants.append(self._constants(section))
            outputs.append(tuple(self._tops(section, constants[-1])))
            for tensor in outputs[-1]:
                if tensor.name in tensors:
                    raise self.ir.error(section, f"the tensor '{tensor.name}' is produced twice")
                tensors[tensor.name] = tensor
        layers = [
            self._layer(section, tensors, made, arrays)
            for section, made, arrays in zip(self.sections, outputs, constants, strict=True)
        ]
        values = self.header.values
        return Graph(
            name=str(values.get("model_name", values.get("subgraph_name", ""))),
            inputs=self._ends("input_tensors", tensors, (t for n in layers if n.type == "Input" for t in n.outputs)),
            outputs=self._ends("output_tensors", tensors, _unused(layers)),
            layers=tuple(self._sorted(layers)),
            attributes={key: value for key, value in values.items() if key not in _HEADER_KEYS},
            subgraphs=subgraphs or {},
            path=self.ir.path,
        )

    def _layer(
        self, section: Section, tensors: Mapping[str, Tensor], outputs: tuple[Tensor, ...], found: dict[str, Array]
    ) -> Layer:
        inputs = tuple(self._find(section, str(name), tensors) for name in self._list(section, "layer_bottom"))
        consumed = {f"{name}_{part}" for name in _constant_names(section) for part in _PARTS}
        attributes = {k: v for k, v in section.values.items() if k not in _OWN_KEYS and k not in consumed}
        constants = {key: array for key, array in found.items() if not key.startswith(_TOP[1:3])}
        for key, array in constants.items():
            dtype = section.values.get(f"{key}_type")
            if isinstance(dtype, IRDType) and dtype != array.dtype.name:
                attributes[f"{key}_type"] = dtype  # NumPy stores it as another type
        span = self._span(section)
        name, kind = self._string(section, "layer_name"), self._string(section, "layer_type")
        if kind == "Constant" and outputs and "weights" not in constants:
            raise self.ir.error(section, f"the Constant layer '{name}' has no constant 'weights'")
        return Layer(name, kind, inputs, outputs, attributes, constants, span)

    def _tops(self, section: Section, constants: Mapping[str, Array]) -> Iterator[Tensor]:
        """The output tensors of a layer. An Input layer may give its one shape without the outer list."""
        names, shapes, dtypes = (self._list(section, f"layer_top{part}") for part in ("", "_shape", "_type"))
        if section.values.get("layer_type") == "Input" and not any(isinstance(s, list) for s in shapes):
            shapes = [shapes]
        if not len(names) == len(shapes) == len(dtypes):
            raise self.ir.error(
                section, f"{len(names)} tensors in layer_top, {len(shapes)} shapes, {len(dtypes)} types"
            )
        for i, (name, shape, dtype) in enumerate(zip(names, shapes, dtypes, strict=True)):
            scale = self._quantity(section, "layer_top_scale", i, len(names), constants)
            zero = self._quantity(section, "layer_top_zp", i, len(names), constants)
            yield Tensor(
                name=str(name),
                shape=self._sizes(section, shape),
                dtype=str(self._dtype(section, "layer_top_type", dtype)),
                scale=1.0 if scale is None else _each(float, scale),
                zero=0 if zero is None else _each(int, zero),
                limits=self._limits(section, i),
                axis=self._axis(section, i),
            )

    def _quantity(
        self, section: Section, key: str, index: int, count: int, constants: Mapping[str, Array]
    ) -> float | list[float] | None:
        """The number or numbers of a list, or of a constant of that name; None for what is neither."""
        array = constants.get(f"{key}_{index}" if count > 1 else key)
        if array is not None:
            self.budget.take(COMPUTED_ELEMENTS, array.size, f"'{key}'", self._span(section))
        value = array.reshape(-1).tolist() if array is not None else _item(section, key, index)
        numbers = value if isinstance(value, list) and value else [value]
        if any(isinstance(n, bool) or not isinstance(n, (int, float)) for n in numbers):
            return None
        if not all(abs(n) < _LARGEST for n in numbers):
            raise self.ir.error(section, f"'{key}': {value} is no scale and no zero point")
        return value

    def _limits(self, section: Section, index: int) -> tuple[float, float] | None:
        """The pair of layer_top_range for an output; None where there is none."""
        value = _item(section, "layer_top_range", index)
        if not isinstance(value, list):
            return None
        if len(value) != 2 or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in value):
            raise self.ir.error(section, f"'layer_top_range': {value!r} is no pair of numbers")
        return value[0], value[1]

    def _axis(self, section: Section, index: int) -> int | None:
        value = _item(section, "activation_quantization_axis", index)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def _constants(self, section: Section) -> dict[str, Array]:
        """The constants of a layer: every K for which K_offset, K_type, K_size and K_shape exist."""
        found = {}
        for name in _constant_names(section):
            parts: list[Any] = [section.values[f"{name}_{part}"] for part in _PARTS]
            several = isinstance(parts[0], list)
            columns = [part if several else [part] for part in parts]
            if any(not isinstance(c, list) or len(c) != len(columns[0]) for c in columns):
                raise self.ir.error(section, f"'{name}_offset' and its companions differ in length")
            for i, item in enumerate(zip(*columns, strict=True)):
                label = f"{name}_{i}" if len(columns[0]) > 1 else name
                if item[0] != "None" and (item[1] != 0 or (isinstance(item[2], list) and 0 in item[2])):
                    found[label] = self._constant(section, label, item)
        return found

    def _constant(self, section: Section, name: str, item: tuple[Any, ...]) -> Array:
        import numpy as np

        offset, size, given, kind = item
        for value in (offset, size):
            if not isinstance(value, int) or value < 0:
                raise self.ir.error(section, f"constant '{name}': {value!r} is not a size in bytes")
        if offset + size > len(self.weights):
            raise self.ir.error(
                section,
                f"constant '{name}': {size} bytes at {offset} reach past the {len(self.weights)} bytes of the binary "
                "file",
                "give the binary file that belongs to this graph (-w)",
            )
        shape = self._shape(section, f"{name}_shape", given)
        dtype = numpy_dtype(self._dtype(section, f"{name}_type", kind))
        count = 1
        for dim in shape:
            count *= dim
        if min(shape, default=0) < 0 or count * dtype.itemsize != size:
            raise self.ir.error(
                section, f"constant '{name}': {size} bytes are not the {kind} elements of {list(shape)}"
            )
        self.budget.take(COMPUTED_BYTES, size, f"constant '{name}'", self._span(section))
        return np.frombuffer(self.weights, dtype, count, offset if count else 0).reshape(shape)

    def _list(self, section: Section, key: str) -> list[object]:
        value = section.values.get(key)
        if not isinstance(value, list):
            raise self.ir.error(section, f"'{key}' is {'missing' if value is None else 'not a list'}")
        return value

    def _string(self, section: Section, key: str) -> str:
        value = section.values.get(key)
        if value is None:
            raise self.ir.error(section, f"'{key}' is missing")
        return str(value)

    def _sizes(self, section: Section, value: object) -> tuple[int, ...]:
        """The shape of a tensor, which is of a size that a device may hold."""
        shape = self._shape(section, "layer_top_shape", value)
        TENSOR_ELEMENTS.check(prod(max(d, 1) for d in shape), "'layer_top_shape'", self._span(section))
        return shape

    def _span(self, section: Section) -> Span | None:
        return Span(self.ir.path, section.line) if section.line else None

    def _shape(self, section: Section, key: str, value: object) -> tuple[int, ...]:
        if not isinstance(value, list) or not all(isinstance(d, int) and not isinstance(d, bool) for d in value):
            raise self.ir.error(section, f"'{key}': {value!r} is not a list of whole numbers")
        return tuple(value)

    def _dtype(self, section: Section, key: str, value: object) -> IRDType:
        if not isinstance(value, IRDType):
            raise self.ir.error(section, f"'{key}': '{value}' is not a data type")
        return value

    def _find(self, section: Section, name: str, tensors: Mapping[str, Tensor]) -> Tensor:
        if name not in tensors:
            raise self.ir.error(
                section, f"no layer produces the tensor '{name}'", help_for(name, list(tensors), "tensors")
            )
        return tensors[name]

    def _ends(self, key: str, tensors: Mapping[str, Tensor], default: Iterable[Tensor]) -> tuple[Tensor, ...]:
        names = self.header.values.get(key)
        if names is None:
            return tuple(default)
        if not isinstance(names, list):
            raise self.ir.error(self.header, f"'{key}' is not a list")
        return tuple(self._find(self.header, str(name), tensors) for name in names)

    def _sorted(self, layers: list[Layer]) -> list[Layer]:
        """The layers so that producers come first, otherwise in file order; CompassError naming a layer on a cycle."""
        producer = {t.name: i for i, n in enumerate(layers) for t in n.outputs}
        waits = [{producer[t.name] for t in n.inputs} for n in layers]
        users: list[list[int]] = [[] for _ in layers]
        for i, needed in enumerate(waits):
            for j in needed:
                users[j].append(i)
        ready = [i for i, needed in enumerate(waits) if not needed]
        order = []
        while ready:
            i = heapq.heappop(ready)
            order.append(layers[i])
            for user in users[i]:
                waits[user].discard(i)
                if not waits[user]:
                    heapq.heappush(ready, user)
        if len(order) != len(layers):
            stuck = next(i for i, needed in enumerate(waits) if needed)
            raise self.ir.error(self.sections[stuck], f"the layer '{layers[stuck].name}' depends on its own output")
        return order


def _item(section: Section, key: str, index: int) -> Any:
    """An element of a list; None when it is none, or shorter."""
    listed = section.values.get(key)
    return listed[index] if isinstance(listed, list) and index < len(listed) else None


def _each(kind: type, value: object) -> Any:
    return tuple(kind(v) for v in value) if isinstance(value, list) else kind(value)


def _constant_names(section: Section) -> list[str]:
    names = [key.removesuffix("_offset") for key in section.values if key.endswith("_offset")]
    return [name for name in names if all(f"{name}_{part}" in section.values for part in _PARTS)]


def _unused(layers: Sequence[Layer]) -> list[Tensor]:
    used = {t.name for n in layers for t in n.inputs}
    return [t for n in layers for t in n.outputs if t.name not in used]


# ------------------------------------------------------------------------------------------------------------- writing


class _Weights:
    """The constants so far, and how many bytes they are."""

    def __init__(self) -> None:
        self.parts: list[Pieces] = []
        self.size = 0

    def add(self, array: Array, layer: Layer) -> int:
        """Adds a constant of a layer. Gives where it lies."""
        at = self.size
        self.size += array.nbytes
        FILE_BYTES.check(self.size, f"the constants up to those of '{layer.name}'")
        self.parts.append(Pieces(lambda: [content_of(array)], array.nbytes))
        return at


def _sections(graph: Graph, weights: _Weights, title: str) -> list[Section]:
    """Header and layers of a graph; its constants are added to `weights`."""
    header = Section(
        {
            title: graph.name,
            "layer_number": len(graph.layers),
            **graph.attributes,
            "input_tensors": [t.name for t in graph.inputs],
            "output_tensors": [t.name for t in graph.outputs],
        }
    )
    return [header, *(Section(_values(i, layer, weights)) for i, layer in enumerate(graph.layers))]


def _values(number: int, layer: Layer, weights: _Weights) -> dict[str, Value]:
    values: dict[str, Value] = {"layer_id": number, "layer_name": layer.name, "layer_type": layer.type}
    for end, tensors in (("bottom", layer.inputs), ("top", layer.outputs)):
        values[f"layer_{end}"] = [t.name for t in tensors]
        values[f"layer_{end}_shape"] = [list(t.shape) for t in tensors]
        values[f"layer_{end}_type"] = [IRDType(t.dtype) for t in tensors]
    if any(t.limits for t in layer.outputs):
        values["layer_top_range"] = [list(t.limits) if t.limits else "NONE" for t in layer.outputs]
    quantised = any((t.scale, t.zero, t.axis, t.limits) != (1.0, 0, None, None) for t in layer.outputs)
    if quantised:
        values["layer_top_scale"] = [_listed(t.scale) for t in layer.outputs]
        values["layer_top_zp"] = [_listed(t.zero) for t in layer.outputs]
    kept = dict(layer.attributes)
    for key, array in layer.constants.items():
        values[f"{key}_type"] = kept.pop(f"{key}_type", IRDType(array.dtype.name))
        at = weights.add(array, layer)
        values |= {f"{key}_offset": at, f"{key}_size": array.nbytes, f"{key}_shape": list(array.shape)}
    values |= kept
    if quantised:
        values["activation_quantization_axis"] = ["None" if t.axis is None else t.axis for t in layer.outputs]
    return values


def _listed(value: Any) -> Value:
    return list(value) if isinstance(value, tuple) else value
