"""The graph that Compass IR describes: tensors, constants, nodes in topological order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from compass_core.aipubin.dtypes import element_dtype
from compass_core.errors import CompassError
from compass_core.errors.suggest import help_for
from compassc.gbuilder.plugin_api import OpType, Tensor, register_optype
from compassc.graph.sections import CompassIR, Section
from compassc.graph.values import IRDType, Value

LAYER_KEYS = frozenset(
    f"layer_{name}" for name in "id name type bottom bottom_shape bottom_type top top_shape top_type".split()
)
SOURCES = ("Input", "Constant")
"""Layer types that only introduce tensors."""


@dataclass
class Node:
    """A layer. `params` are its other keys as parsed, `constants` its constant tensors by name."""

    name: str
    type: OpType
    section: Section
    inputs: list[Tensor]
    outputs: list[Tensor]
    params: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Tensor] = field(default_factory=dict)


@dataclass
class Graph:
    """Nodes in topological order, without Input layers; the graph's inputs and outputs in the runtime's order."""

    ir: CompassIR
    nodes: list[Node]
    inputs: list[Tensor]
    outputs: list[Tensor]


def graph_of(ir: CompassIR, weights: bytes) -> Graph:
    """The graph of an IR with its binary file; CompassError with the section's line when the IR is inconsistent."""
    producers: dict[str, Tensor] = {}
    for section in ir.layers:
        for tensor in _tops(ir, section):
            if tensor.name in producers:
                raise ir.error(section, f"the tensor '{tensor.name}' is produced twice")
            producers[tensor.name] = tensor
    nodes = [_node(ir, section, producers, weights) for section in ir.layers]
    for node in nodes:
        if node.type.name == "Constant" and node.outputs:
            node.outputs[0].data = _content(ir, node)
    return Graph(
        ir=ir,
        nodes=[n for n in _sorted(ir, nodes) if n.type.name not in SOURCES],
        inputs=_ends(ir, "input_tensors", producers, [t for n in nodes if n.type.name == "Input" for t in n.outputs]),
        outputs=_ends(ir, "output_tensors", producers, _unused(nodes)),
    )


def _content(ir: CompassIR, node: Node) -> bytes:
    """The bytes of a Constant layer."""
    if "weights" not in node.constants:
        raise ir.error(node.section, f"the Constant layer '{node.name}' has no constant 'weights'")
    return node.constants["weights"].data or b""


def _list(ir: CompassIR, section: Section, key: str) -> list[Any]:
    value = section.values.get(key)
    if not isinstance(value, list):
        raise ir.error(section, f"'{key}' is {'missing' if value is None else 'not a list'}")
    return value


def _string(ir: CompassIR, section: Section, key: str) -> str:
    value = section.values.get(key)
    if value is None:
        raise ir.error(section, f"'{key}' is missing")
    return str(value)


def _shape(ir: CompassIR, section: Section, key: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(d, int) and not isinstance(d, bool) for d in value):
        raise ir.error(section, f"'{key}': {value!r} is not a list of whole numbers")
    return tuple(value)


def _tops(ir: CompassIR, section: Section) -> Iterator[Tensor]:
    """The output tensors of a layer. An Input layer may give its one shape without the outer list."""
    names = _list(ir, section, "layer_top")
    shapes = _list(ir, section, "layer_top_shape")
    dtypes = _list(ir, section, "layer_top_type")
    if section.values.get("layer_type") == "Input" and not any(isinstance(s, list) for s in shapes):
        shapes = [shapes]
    if not len(names) == len(shapes) == len(dtypes):
        raise ir.error(section, f"{len(names)} tensors in layer_top, {len(shapes)} shapes, {len(dtypes)} types")
    for i, (name, shape, dtype) in enumerate(zip(names, shapes, dtypes, strict=True)):
        tensor = Tensor()
        tensor.scale = float(_item(ir, section, "layer_top_scale", i, 1.0))
        tensor.zero_point = int(_item(ir, section, "layer_top_zp", i, 0))
        tensor.name = str(name)
        tensor.shape = list(_shape(ir, section, "layer_top_shape", shape))
        tensor.dtype = _dtype(ir, section, "layer_top_type", dtype)
        tensor.limits = _limits(ir, section, i)
        yield tensor


def _limits(ir: CompassIR, section: Section, index: int) -> tuple[float, float] | None:
    """The pair of layer_top_range for an output; None where there is none."""
    listed = section.values.get("layer_top_range")
    value: Any = listed[index] if isinstance(listed, list) and index < len(listed) else None
    if not isinstance(value, list):
        return None
    if len(value) != 2 or any(isinstance(v, bool) or not isinstance(v, (int, float)) for v in value):
        raise ir.error(section, f"'layer_top_range': {value!r} is no pair of numbers")
    return value[0], value[1]


def _item(ir: CompassIR, section: Section, key: str, index: int, default: float) -> float:
    """The number at `index` of a list; `default` for what is no number, such as the name of a constant."""
    listed = section.values.get(key)
    value = listed[index] if isinstance(listed, list) and index < len(listed) else None
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return default
    if not abs(value) < 1e30:
        raise ir.error(section, f"'{key}': {value} is no scale and no zero point")
    return value


def _dtype(ir: CompassIR, section: Section, key: str, value: Any) -> IRDType:
    if not isinstance(value, IRDType):
        raise ir.error(section, f"'{key}': '{value}' is not a data type")
    try:
        element_dtype(value)
    except CompassError as error:
        raise ir.error(section, f"'{key}': {error.message}", error.help) from None
    return value


def _node(ir: CompassIR, section: Section, producers: dict[str, Tensor], weights: bytes) -> Node:
    inputs = [_find(ir, section, str(name), producers) for name in _list(ir, section, "layer_bottom")]
    constants = _constants(ir, section, weights)
    consumed = {f"{name}_{part}" for name in constants for part in ("type", "shape", "offset", "size")}
    return Node(
        name=_string(ir, section, "layer_name"),
        type=register_optype(_string(ir, section, "layer_type")),
        section=section,
        inputs=inputs,
        outputs=[producers[str(name)] for name in _list(ir, section, "layer_top")],
        params={k: v for k, v in section.values.items() if k not in LAYER_KEYS and k not in consumed},
        constants=constants,
    )


def _find(ir: CompassIR, section: Section, name: str, producers: dict[str, Tensor]) -> Tensor:
    if name not in producers:
        raise ir.error(section, f"no layer produces the tensor '{name}'", help_for(name, producers, "tensors"))
    return producers[name]


def _constants(ir: CompassIR, section: Section, weights: bytes) -> dict[str, Tensor]:
    """The constants of a layer: every K for which K_offset, K_type, K_size and K_shape exist."""
    found = {}
    for key in section.values:
        name = key.removesuffix("_offset")
        keys = [f"{name}_{part}" for part in ("offset", "size", "shape", "type")]
        if name == key or any(k not in section.values for k in keys):
            continue
        parts: list[Any] = [section.values[k] for k in keys]
        several = isinstance(parts[0], list)
        columns = [part if several else [part] for part in parts]
        if any(not isinstance(c, list) or len(c) != len(columns[0]) for c in columns):
            raise ir.error(section, f"'{keys[0]}' and its companions differ in length")
        for i, item in enumerate(zip(*columns, strict=True)):
            label = f"{name}_{i}" if len(columns[0]) > 1 else name
            if item[1] != 0 and item[0] != "None":
                found[label] = _constant(ir, section, label, item, weights)
    return found


def _constant(ir: CompassIR, section: Section, name: str, item: tuple[Any, ...], weights: bytes) -> Tensor:
    offset, size, shape, dtype = item
    for value in (offset, size):
        if not isinstance(value, int) or value < 0:
            raise ir.error(section, f"constant '{name}': {value!r} is not a size in bytes")
    if offset + size > len(weights):
        raise ir.error(
            section,
            f"constant '{name}': {size} bytes at {offset} reach past the {len(weights)} bytes of the binary file",
            "give the binary file that belongs to this graph (-w)",
        )
    tensor = Tensor()
    tensor.name = name
    tensor.shape = list(_shape(ir, section, f"{name}_shape", shape))
    tensor.dtype = _dtype(ir, section, f"{name}_type", dtype)
    tensor.data = weights[offset : offset + size]
    return tensor


def _unused(nodes: list[Node]) -> list[Tensor]:
    used = {id(t) for n in nodes for t in n.inputs}
    return [t for n in nodes for t in n.outputs if id(t) not in used]


def _ends(ir: CompassIR, key: str, producers: dict[str, Tensor], default: list[Tensor]) -> list[Tensor]:
    names: Value | None = ir.header.values.get(key)
    if names is None:
        return default
    if not isinstance(names, list):
        raise ir.error(ir.header, f"'{key}' is not a list")
    return [_find(ir, ir.header, str(name), producers) for name in names]


def _sorted(ir: CompassIR, nodes: list[Node]) -> list[Node]:
    """The nodes so that producers come first, otherwise in file order; CompassError naming a layer on a cycle."""
    producer = {id(t): i for i, n in enumerate(nodes) for t in n.outputs}
    waits = [{producer[id(t)] for t in n.inputs} for n in nodes]
    users: list[list[int]] = [[] for _ in nodes]
    for i, needed in enumerate(waits):
        for j in needed:
            users[j].append(i)
    import heapq

    ready = [i for i, needed in enumerate(waits) if not needed]
    order = []
    while ready:
        i = heapq.heappop(ready)
        order.append(nodes[i])
        for user in users[i]:
            waits[user].discard(i)
            if not waits[user]:
                heapq.heappush(ready, user)
    if len(order) != len(nodes):
        stuck = next(n for n, needed in zip(nodes, waits, strict=True) if needed)
        raise ir.error(stuck.section, f"the layer '{stuck.name}' depends on its own output")
    return order
