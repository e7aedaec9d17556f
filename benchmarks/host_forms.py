"""What `suite/host_networks.py` runs: networks as Relay modules and as ONNX models, with an input of both.

The encoder is a layer of a transformer, written once for both forms by the names of ONNX's operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.networks import NETWORKS, Array
from benchmarks.onnx_form import OPSET, onnx_model
from benchmarks.relay_form import relay_module
from compassc import relay
from compassc.relay.builders import build

WORDS, WIDTH, HEADS = 128, 768, 12
Node = Callable[..., Any]


def forms(name: str) -> tuple[relay.IRModule, bytes, Array]:
    """The module, the ONNX model and an input of the network of a name."""
    if name == "encoder":
        x = np.random.default_rng(2).normal(0, 1, (WORDS, WIDTH)).astype(np.float32)
        return _encoder_module(), _encoder_model(), x
    net = NETWORKS[name]()
    return relay_module(net), onnx_model(net), np.ascontiguousarray(net.image().transpose(0, 3, 1, 2))


def _encoder(node: Node, constant: Callable[[Array], Any], x: Any) -> Any:
    """Attention of HEADS heads and two products, each with what it is of added, and normalised."""
    rng = np.random.default_rng(1)
    size = WIDTH // HEADS

    def dense(value: Any, inputs: int, outputs: int) -> Any:
        weights = rng.normal(0, inputs**-0.5, (inputs, outputs)).astype(np.float32)
        biases = rng.normal(0, 0.1, outputs).astype(np.float32)
        return node("Add", node("MatMul", value, constant(weights)), constant(biases))

    def heads(value: Any, perm: tuple[int, ...]) -> Any:
        return node("Transpose", node("Reshape", value, constant(np.array((WORDS, HEADS, size)))), perm=perm)

    q, k, v = (heads(dense(x, WIDTH, WIDTH), perm) for perm in ((1, 0, 2), (1, 2, 0), (1, 0, 2)))
    scores = node("Mul", node("MatMul", q, k), constant(np.float32(size**-0.5)))
    mixed = node("Transpose", node("MatMul", node("Softmax", scores, axis=-1), v), perm=(1, 0, 2))
    mixed = node("Reshape", mixed, constant(np.array((WORDS, WIDTH))))
    first = _normalised(node, constant, node("Add", dense(mixed, WIDTH, WIDTH), x))
    wide = dense(first, WIDTH, 4 * WIDTH)
    bent = node("Add", node("Erf", node("Mul", wide, constant(np.float32(0.5**0.5)))), constant(np.float32(1)))
    bent = node("Mul", node("Mul", wide, bent), constant(np.float32(0.5)))
    return _normalised(node, constant, node("Add", dense(bent, 4 * WIDTH, WIDTH), first))


def _normalised(node: Node, constant: Callable[[Array], Any], x: Any) -> Any:
    scale = constant(np.ones(WIDTH, np.float32))
    return node("LayerNormalization", x, scale, constant(np.zeros(WIDTH, np.float32)), axis=-1)


def _encoder_model() -> bytes:
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def node(kind: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [f"value{len(nodes)}"], **attributes))
        return str(nodes[-1].output[0])

    def constant(array: Array) -> str:
        constants.append(numpy_helper.from_array(np.asarray(array), f"constant{len(constants)}"))
        return constants[-1].name

    last = _encoder(node, constant, "x")
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [WORDS, WIDTH])
    made = helper.make_tensor_value_info(last, TensorProto.FLOAT, [WORDS, WIDTH])
    graph = helper.make_graph(nodes, "encoder", [given], [made], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return bytes(model.SerializeToString())


def _product(a: relay.Expr, b: relay.Expr) -> relay.Expr:
    """By a constant: `nn.dense`, as importers write it; of two values: of all heads."""
    if isinstance(b, relay.Constant):
        return build("nn.dense", a, relay.const(np.ascontiguousarray(b.data.numpy().T)))
    return build("nn.batch_matmul", a, build("transpose", b, (0, 2, 1)))


_RELAY: dict[str, Node] = {
    "Add": lambda a, b: build("add", a, b),
    "Mul": lambda a, b: build("multiply", a, b),
    "Erf": lambda a: build("erf", a),
    "MatMul": _product,
    "Reshape": lambda a, shape: build("reshape", a, tuple(map(int, shape.data.numpy()))),
    "Transpose": lambda a, perm: build("transpose", a, perm),
    "Softmax": lambda a, axis: build("nn.softmax", a, axis),
    "LayerNormalization": lambda a, scale, shift, axis: build("nn.layer_norm", a, scale, shift, axis),
}


def _encoder_module() -> relay.IRModule:
    x = relay.var("x", shape=(WORDS, WIDTH))
    last = _encoder(lambda kind, *given, **named: _RELAY[kind](*given, **named), relay.const, x)
    return relay.IRModule.from_expr(relay.Function([x], last))
