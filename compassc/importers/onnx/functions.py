"""Operators that ONNX defines by other operators, and functions of models: their bodies with a node's attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from compassc.importers.onnx.protobuf import elem_type
from compassc.importers.values import ModelTensor, Refused

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, NodeProto, TypeProto

LOSSES = ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")


def body_of(node: NodeProto, inputs: Sequence[object], opsets: Mapping[str, int]) -> FunctionProto | None:
    """The function by which ONNX defines a node's operator, for the types of its inputs; None when there is none."""
    import onnx
    from onnx import defs

    domain = "" if node.domain == "ai.onnx" else node.domain
    opset = opsets.get(domain, 1)
    if not domain and node.op_type in LOSSES:
        _check_loss([i.shape if isinstance(i, ModelTensor) else None for i in inputs])
    try:
        schema: Any = defs.get_schema(node.op_type, opset, domain)
    except defs.SchemaError:
        return None
    found = onnx.FunctionProto()
    if schema.has_function:
        versions = schema.function_opset_versions
        found.ParseFromString(schema.get_function_with_opset_version(_fitting(versions, opset)))
        return found
    if schema.has_context_dependent_function:
        version = _fitting(schema.context_dependent_function_opset_versions, opset)
        types = [_type_proto(i).SerializeToString() for i in inputs]
        text = schema.get_context_dependent_function_with_opset_version(version, node.SerializeToString(), types)
        found.ParseFromString(text)
        return found if found.node else None
    return None


def _check_loss(shapes: Sequence[tuple[object, ...] | None]) -> None:
    """Refused where targets or weights do not fit the scores: the operators of the body would repeat them, or leave scores out."""
    scores, *others = shapes
    if scores is None:
        return
    fitting = (scores[:1] + scores[2:], scores[1:2])
    for what, wanted, shape in zip(("targets", "weights"), fitting, others):
        if shape is None:
            continue
        pairs = [(a, b) for a, b in zip(wanted, shape) if isinstance(a, int) and isinstance(b, int)]
        if len(shape) != len(wanted) or any(a != b for a, b in pairs):
            raise Refused(f"its {what} are {list(shape)}, of scores {list(scores)} they are {list(wanted)}")


def _fitting(versions: Sequence[int], opset: int) -> int:
    """The newest opset of a function's bodies that is not above the model's, or the oldest: a body brings its opset along."""
    return max((v for v in versions if v <= opset), default=min(versions))


def _type_proto(value: object) -> TypeProto:
    from onnx import TypeProto, helper

    if not isinstance(value, ModelTensor):
        return TypeProto()
    return helper.make_tensor_type_proto(
        elem_type(value.dtype), [d if isinstance(d, int) else None for d in value.shape]
    )


def _defaults(node: NodeProto) -> list[AttributeProto]:
    """The attributes that ONNX gives an operator where a node does not."""
    from onnx import defs

    try:
        schema = defs.get_schema(node.op_type, domain=node.domain)
    except defs.SchemaError:  # a function of the model
        return []
    return [a.default_value for a in schema.attributes.values() if a.default_value.name]


def bound(body: FunctionProto, node: NodeProto, given: AbstractSet[str], prefix: str) -> list[NodeProto]:
    """The nodes of a function's body with the attributes of the node that calls it, named behind `prefix`.

    Inputs that the call leaves out are left out in the body.
    """
    import onnx

    attributes = {a.name: a for a in node.attribute}
    for default in (*body.attribute_proto, *_defaults(node)):
        attributes.setdefault(default.name, default)
    absent = set(body.input) - set(given)
    made = []
    for i, inner in enumerate(body.node):
        copy = onnx.NodeProto()
        copy.CopyFrom(inner)
        copy.name = f"{prefix}/{inner.name or f'{inner.op_type}_{i}'}"
        _bind(copy, attributes, absent)
        made.append(copy)
    return made


def _bind(node: NodeProto, attributes: Mapping[str, object], absent: AbstractSet[str]) -> None:
    """Attributes that refer to the function's get their values, or go; so in bodies."""
    import onnx

    names = ["" if n in absent else n for n in node.input]
    del node.input[:]
    node.input.extend(names)
    kept = []
    for a in node.attribute:
        if a.ref_attr_name:
            source = attributes.get(a.ref_attr_name)
            if source is None:
                continue
            copy = onnx.AttributeProto()
            copy.CopyFrom(source)
            copy.name = a.name
            kept.append(copy)
            continue
        kept.append(a)
        for graph in ([a.g] if a.HasField("g") else []) + list(a.graphs):
            for inner in graph.node:
                _bind(inner, attributes, absent)
    listed = [onnx.AttributeProto.FromString(a.SerializeToString()) for a in kept]
    del node.attribute[:]
    node.attribute.extend(listed)
