"""The graph that the graph executor runs: nodes for inputs, constants and kernels, and which memory values share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from compass_core.errors import CompassError
from compass_runtime import graph_executor
from compass_runtime.ndarray import NDArray
from compass_runtime.program import numpy_dtype
from compassc.relay.backend.kernels import Kernels
from compassc.relay.backend.referenced import tensors_of
from compassc.relay.equal import structural_hash
from compassc.relay.expr import Call, Constant, Expr, Function, Let, Tuple, TupleGetItem
from compassc.relay.infer.errors import error
from compassc.relay.operators import Op
from compassc.relay.types import TensorType, TupleType, is_dynamic
from compassc.relay.visit import children, post_order

SHARED_WITHIN = 16
"""A storage is taken for values of at least this part of its size, and at most this many times."""
_CONTROL_FLOW = "Graph executor does not support control flow (found {}Node)"


@dataclass(eq=False)
class Token:
    """A storage, and how many uses of it are to come."""

    size: int
    uses: int = 0
    storage: int = -1


@dataclass(eq=False)
class Entry:
    """A value: output `output` of node `node`."""

    node: int
    output: int
    type: TensorType
    token: Token


@dataclass(eq=False)
class Made:
    """A node as it is written, with its inputs."""

    name: str
    inputs: list[Entry] = field(default_factory=list)
    outputs: list[Entry] = field(default_factory=list)
    kernel: str = ""
    attrs: dict[str, str] = field(default_factory=dict)


def _size(t: TensorType) -> int:
    n = numpy_dtype(t.dtype).itemsize
    for d in t.concrete_shape:
        n *= d
    return n


class GraphBuilder:
    """The nodes of a function whose calls are fused. `params`: the constants by the names of their nodes."""

    def __init__(self, f: Function, kernels: Kernels, device: int) -> None:
        self.kernels, self.device = kernels, device
        self.nodes: list[Made] = []
        self.params: dict[str, NDArray] = {}
        self._names: set[str] = set()
        self._values: dict[int, list[Entry]] = {}
        for p in f.params:
            self._values[id(p)] = [self._given(p.name_hint, t).outputs[0] for t in tensors_of(p.checked_type)]
        bound: dict[int, list[Let]] = {}
        order = list(post_order(f.body, lambda e: isinstance(e, Function)))
        for e in order:
            if isinstance(e, Let):
                bound.setdefault(id(e.value), []).append(e)
        for e in order:
            if id(e) not in self._values:
                self._values[id(e)] = self._value(e)
            for let in bound.get(id(e), ()):
                self._values[id(let.var)] = self._values[id(e)]
        self.heads = self._values[id(f.body)]
        self._plan()

    # ---------------------------------------------------------------------------------------------------------------- nodes

    def _add(self, made: Made, types: list[TensorType]) -> Made:
        number, name = 0, made.name
        while name in self._names:
            number += 1
            name = f"{made.name}_{number}"
        made.name = name
        self._names.add(name)
        made.outputs = [Entry(len(self.nodes), i, t, Token(_size(t))) for i, t in enumerate(types)]
        self.nodes.append(made)
        return made

    def _given(self, name: str, t: TensorType) -> Made:
        if is_dynamic(t):
            raise CompassError(
                f"Graph Executor only supports static graphs, got {t} of '{name}'",
                code="relay-graph",
                help="give shapes without Any, or use the virtual machine",
            )
        return self._add(Made(name), [t])

    def _value(self, e: Expr) -> list[Entry]:
        if isinstance(e, Constant):
            made = self._given(f"p{len(self.params)}", e.tensor_type)
            self.params[made.name] = e.data
            return made.outputs
        if isinstance(e, Tuple):
            return [one for f in e.fields for one in self._values[id(f)]]
        if isinstance(e, TupleGetItem):
            t = e.tuple_value.checked_type
            assert isinstance(t, TupleType)
            before = sum(len(tensors_of(f)) for f in t.fields[: e.index])
            return self._values[id(e.tuple_value)][before : before + len(tensors_of(t.fields[e.index]))]
        if isinstance(e, Let):
            return self._values[id(e.body)]
        if isinstance(e, Call):
            return self._call(e)
        if isinstance(e, (Function, Op)):
            return []
        if not children(e):
            return []  # a variable, which its `let` gives a value
        raise error(e, _CONTROL_FLOW.format(type(e).__name__), help="use the virtual machine, or the debug executor")

    def _call(self, e: Call) -> list[Entry]:
        if not isinstance(e.op, Function) or not e.op.attrs.get("Primitive"):
            raise error(e, "a call that is no kernel is left over", help="run FuseOps before, and inline functions")
        types = tensors_of(e.checked_type)
        inputs = [one for a in e.args for one in self._values[id(a)]]
        if any(is_dynamic(t) for t in types):
            raise error(e, f"Graph Executor only supports static graphs, got {e.checked_type}")
        if e.op.attrs.get("relay.reshape_only") and len(inputs) == len(types) == 1:
            made = Made("reshape_nop", inputs, kernel=graph_executor.NOTHING)
        else:
            name = self.kernels.name_of(e.op)
            made = Made(name, inputs, kernel=name)
        made.attrs = {"hash": f"{structural_hash(e.op) & (1 << 64) - 1:016x}"}
        return self._add(made, types).outputs

    # ---------------------------------------------------------------------------------------------------------------- memory

    def _plan(self) -> None:
        """Give every value a storage: one whose value is used no more, of about its size, else a new one."""
        for node in self.nodes:
            for one in node.inputs:
                one.token.uses += 1
        for one in self.heads:
            one.token.uses += 1
        free: list[Token] = []
        self.storages: list[Token] = []
        for node in self.nodes:
            if node.kernel == graph_executor.NOTHING:
                source, made = node.inputs[0].token, node.outputs[0]
                source.uses += made.token.uses - 1
                made.token = source
                continue
            for one in node.outputs:
                self._request(one, free, keep=not node.kernel)
            for one in node.outputs:
                self._release(one.token, free)
            for one in node.inputs:
                one.token.uses -= 1
                self._release(one.token, free)

    def _request(self, one: Entry, free: list[Token], keep: bool) -> None:
        wanted = one.token
        if not keep:
            fits = [t for t in free if wanted.size <= t.size <= wanted.size * SHARED_WITHIN]
            less = [t for t in free if wanted.size / SHARED_WITHIN <= t.size < wanted.size]
            found = min(fits, key=lambda t: t.size) if fits else max(less, key=lambda t: t.size) if less else None
            if found is not None:
                free.remove(found)
                found.size, found.uses = max(found.size, wanted.size), wanted.uses
                one.token = found
                return
        wanted.uses += keep
        wanted.storage = len(self.storages)
        self.storages.append(wanted)

    def _release(self, token: Token, free: list[Token]) -> None:
        if token.uses == 0 and not any(token is t for t in free):
            free.append(token)

    # ------------------------------------------------------------------------------------------------------------------ text

    def text(self) -> str:
        """The graph as JSON."""
        entries = [one for node in self.nodes for one in node.outputs]
        rows = [0]
        for node in self.nodes:
            rows.append(rows[-1] + len(node.outputs))
        return graph_executor.text_of(
            {
                "nodes": [_written(node) for node in self.nodes],
                "arg_nodes": [i for i, node in enumerate(self.nodes) if not node.kernel],
                "heads": [[one.node, one.output, 0] for one in self.heads],
                "attrs": {
                    "dltype": ["list_str", [one.type.dtype for one in entries]],
                    "device_index": ["list_int", [self.device] * len(entries)],
                    "storage_id": ["list_int", [one.token.storage for one in entries]],
                    "shape": ["list_shape", [list(one.type.concrete_shape) for one in entries]],
                },
                "node_row_ptr": rows,
            }
        )


def _written(node: Made) -> dict[str, Any]:
    if not node.kernel:
        return {"op": "null", "name": node.name, "inputs": []}
    counts = {"num_outputs": str(len(node.outputs)), "num_inputs": str(len(node.inputs)), "flatten_data": "0"}
    return {
        "op": "tvm_op",
        "name": node.name,
        "attrs": {**counts, "func_name": node.kernel, **node.attrs},
        "inputs": [[one.node, one.output, 0] for one in node.inputs],
    }
