"""The graph that the graph executor runs: nodes for inputs, constants and kernels, on the memory that was planned for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from compass_core.dataclass import dataclass
from compass_runtime import graph_executor
from compass_runtime.module import Module
from compass_runtime.ndarray import NDArray
from compassc.relay.backend.kernels import Kernels
from compassc.relay.backend.storage import StaticMemoryPlan, is_view, values_of
from compassc.relay.equal import structural_hash
from compassc.relay.expr import Call, Constant, Expr, Function, Var
from compassc.relay.infer.errors import error
from compassc.relay.types import TensorType


@dataclass(eq=False)
class Entry:
    """A value: output `output` of node `node`."""

    node: int
    output: int
    type: TensorType
    storage: int


@dataclass(eq=False)
class Made:
    """A node as it is written, with its inputs."""

    name: str
    inputs: Sequence[Entry] = ()
    outputs: list[Entry] = field(default_factory=list)
    kernel: str = ""
    attrs: dict[str, str] = field(default_factory=dict)


class GraphBuilder:
    """The nodes of a function whose calls are fused, on planned memory. `params`: the constants by the names of their nodes."""

    def __init__(self, f: Function, plan: StaticMemoryPlan, kernels: Kernels[Module], device: int) -> None:
        self.plan, self.kernels, self.device = plan, kernels, device
        self.nodes: list[Made] = []
        self.params: dict[str, NDArray] = {}
        self._names: set[str] = set()
        self.heads = values_of(f, self._given, self._called)[-1][1]

    # ---------------------------------------------------------------------------------------------------------------- nodes

    def _add(self, made: Made, types: Sequence[TensorType], storages: Sequence[int]) -> list[Entry]:
        number, name = 0, made.name
        while name in self._names:
            number += 1
            name = f"{made.name}_{number}"
        made.name = name
        self._names.add(name)
        made.outputs = [Entry(len(self.nodes), i, t, s) for i, (t, s) in enumerate(zip(types, storages, strict=True))]
        self.nodes.append(made)
        return made.outputs

    def _storages(self, e: Expr) -> Sequence[int]:
        info = self.plan.expr_to_storage_info.get(e)
        return info.storage_ids if info is not None else ()

    def _given(self, e: Var | Constant, types: Sequence[TensorType]) -> list[Entry]:
        """A node for each tensor of a parameter."""
        name = e.name_hint if isinstance(e, Var) else f"p{len(self.params)}"
        if isinstance(e, Constant):
            self.params[name] = e.data
        nodes = zip(types, self._storages(e), strict=True)
        return [one for t, storage in nodes for one in self._add(Made(name), [t], [storage])]

    def _called(self, e: Call, inputs: Sequence[Entry], types: Sequence[TensorType]) -> list[Entry]:
        if not isinstance(e.op, Function) or not e.op.attrs.get("Primitive"):
            raise error(e, "a call that is no kernel is left over", help="run FuseOps before, and inline functions")
        if is_view(e, inputs, types):
            made = Made("reshape_nop", inputs, kernel=graph_executor.NOTHING)
        else:
            name = self.kernels.name_of(e.op)
            made = Made(name, inputs, kernel=name)
        made.attrs = {"hash": f"{structural_hash(e.op) & (1 << 64) - 1:016x}"}
        return self._add(made, types, self._storages(e))

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
                    "storage_id": ["list_int", [one.storage for one in entries]],
                    "shape": ["list_shape", [list(one.type.concrete_shape) for one in entries]],
                },
                "node_row_ptr": rows,
            }
        )


def _written(node: Made) -> dict[str, object]:
    if not node.kernel:
        return {"op": "null", "name": node.name, "inputs": []}
    counts = {"num_outputs": str(len(node.outputs)), "num_inputs": str(len(node.inputs)), "flatten_data": "0"}
    return {
        "op": "tvm_op",
        "name": node.name,
        "attrs": {**counts, "func_name": node.kernel, **node.attrs},
        "inputs": [[one.node, one.output, 0] for one in node.inputs],
    }
