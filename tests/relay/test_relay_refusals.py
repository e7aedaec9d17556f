"""Types that operators of Relay do not take are refused: the message names both sides."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import relay
from compassc.operators.patterns import PatternKind
from compassc.relay import declared, op
from compassc.relay.builders import BUILDERS, build, results
from compassc.relay.expr import Call, const, var
from compassc.relay.operators import OPERATORS, Op, OperatorError, get, register
from compassc.relay.types import IncompleteType, Open, Related, RelationError, TensorType, TupleType, Type

declared.load()
A, B, I8 = TensorType((2, 3)), TensorType((4, 3)), TensorType((2, 3), "int8")
PICTURE = TensorType((1, 3, 8, 8))


def typed(name: str, *types: Type, **attributes: object) -> Type | None:
    known = get(name)
    assert known.relation is not None
    found = known.relation(types, known.record(**attributes) if known.record else None)
    return found.result if isinstance(found, Related) else found


@pytest.mark.parametrize(
    ("name", "types", "attributes", "said"),
    [
        ("add", (A, B), {}, r"Incompatible broadcast type Tensor\[\(2, 3\), float32\] and Tensor\[\(4, 3\), float32\]"),
        ("add", (A, I8), {}, "float32 .* int8 .* do not match in BroadcastRel"),
        ("where", (A, A, I8), {}, "float32.* int8.*must be one"),
        ("sum", (A,), {"axis": 2}, "Axis out of bounds in reduce operator"),
        ("all", (A,), {}, "must be of bools, it is .*float32"),
        ("reshape", (A,), {"newshape": [4]}, r"Input tensor shape\(2,3\) and reshaped shape\(4\) are not compatible"),
        ("transpose", (A,), {"axes": [0, 0]}, "names an axis twice"),
        ("concatenate", (TupleType([A, I8]),), {"axis": 0}, "float32 .*int8 .* do not match"),
        ("concatenate", (TupleType([A, TensorType((2, 4))]),), {"axis": 0}, "extents 3 and 4 of .* differ"),
        ("concatenate", (A,), {"axis": 0}, "argument 'data' must be a tuple, not Tensor"),
        ("nn.relu", (TupleType([A]),), {}, "argument 'data' must be a tensor, not"),
        ("squeeze", (A,), {"axis": [0]}, "are not all 1"),
        ("split", (A,), {"indices_or_sections": 2, "axis": 1}, "able to divide"),
        ("take", (A, A), {"axis": 0}, "must be whole numbers, not .*float32"),
        ("nn.bias_add", (A, B), {"axis": 1}, r"argument 'bias' must be Tensor\[\(3,?\), float32\], not Tensor\[\(4, 3"),
        ("nn.bias_add", (A, B), {"axis": 2}, "The axis in bias_add must be in range for the shape"),
        ("nn.conv2d", (PICTURE, TensorType((4, 2, 3, 3))), {}, "do not match the weight Tensor"),
        ("nn.conv2d", (PICTURE, A), {}, "the weight Tensor.* has no layout OIHW"),
        ("nn.conv2d", (PICTURE, A), {"data_layout": "NCXY"}, "conv2d only support input layouts that are convertible"),
        ("fixed_point_multiply", (A,), {"multiplier": 1, "shift": 0}, "must be of int32, it is .*float32"),
    ],
)
def test_both_sides_are_named(name, types, attributes, said):
    with pytest.raises(RelationError, match=said) as raised:
        typed(name, *types, **attributes)
    assert raised.value.message.startswith(f"{name}: ")


@pytest.mark.parametrize("name", [n for n, o in OPERATORS.items() if o.arguments])
def test_rules_wait_for_their_first_argument(name):
    known = OPERATORS[name]
    holes = [IncompleteType() for _ in known.arguments]
    options = {
        k: "int8" if k.endswith("dtype") else 1
        for k, v in (known.record.fields if known.record else {}).items()
        if v is ...
    }
    assert (
        known.relation is not None and known.relation(holes, known.record(**options) if known.record else None) is None
    )


def test_open_extents_stay_open():
    any_ = Open()
    assert str(typed("add", TensorType((any_, 1)), TensorType((1, 5)))) == "Tensor[(?, 5), float32]"
    assert str(typed("add", TensorType((any_,)), TensorType((5,)))) == "Tensor[(5,), float32]"
    assert str(typed("reshape", TensorType((any_, 4)), newshape=[-1, 2])) == "Tensor[(?, 2), float32]"
    assert (
        str(typed("concatenate", TupleType([TensorType((any_, 4)), TensorType((3, 4))]), axis=0))
        == "Tensor[(?, 4), float32]"
    )
    assert (
        str(typed("nn.conv2d", TensorType((any_, 3, 8, 8)), TensorType((4, 3, 3, 3))))
        == "Tensor[(?, 4, 6, 6), float32]"
    )


def test_weights_get_their_types():
    known = get("nn.conv2d")
    assert known.record and known.relation
    found = known.relation([PICTURE, IncompleteType()], known.record(channels=4, kernel_size=[3, 3]))
    assert isinstance(found, Related) and str(found.inputs[1]) == "Tensor[(4, 3, 3, 3), float32]"


def test_builders_make_calls():
    x = var("x", shape=(2, 3))
    made = build("clip", x, 0, 6)
    assert isinstance(made, Call) and made.attrs is not None and dict(made.attrs) == {"a_min": 0, "a_max": 6}
    assert build("reshape", x, const([3, 2])).attrs.newshape == (3, 2)
    assert build("nn.conv2d", x, x, padding=1).attrs.padding == (1, 1, 1, 1)
    assert len(results("split", x, 3, 1)) == 3
    assert {"add", "nn.conv2d", "reverse_reshape"} <= set(BUILDERS)


def test_registrations_have_levels():
    known = register("tests.operator", "made by a test")
    try:
        known.set_attr("TOpPattern", 2)
        with pytest.raises(OperatorError, match="already registered"):
            known.set_attr("TOpPattern", 4)
        known.set_attr("TOpPattern", 4, 11)
        assert known.get_attr("TOpPattern") == 4 and isinstance(known, Op)
        with pytest.raises(OperatorError, match="is registered before"):
            register("tests.operator")
    finally:
        del OPERATORS["tests.operator"]
    with pytest.raises(OperatorError, match="is not registered"):
        get("tests.operator")


def test_operators_of_programs():
    made = op.register("tests.operator", "made by a test")
    try:
        made.set_num_inputs(2)
        made.add_argument("x", "Tensor", "data")
        made.set_attrs_type_key("relay.attrs.ClipAttrs")
        made.add_type_rel("Broadcast")
        assert made.attrs_type_key == "relay.attrs.ClipAttrs" and made.arguments[0].name == "x"
        assert (
            made.relation
            and made.relation([A, IncompleteType()], None) is None
            and str(made.relation([A, A], None)) == str(A)
        )
        made.add_type_rel("mine", lambda types, attrs: types[0])
        assert made.relation([A, B], None) is A
        op.register_pattern("tests.operator", op.OpPattern.ELEMWISE)
        assert made.pattern is PatternKind.ELEMENTWISE

        @op.register_compute("tests.operator", level=11)
        def compute(attrs, tensors, result):
            return tensors

        assert made.compute is compute
        with op.temporary("tests.operator", "TOpPattern", 8):
            assert made.pattern is PatternKind.OPAQUE
        assert made.get_attr("TOpPattern") == 0
        with pytest.raises(OperatorError, match="there is no type relation 'Broadcasts'"):
            made.add_type_rel("Broadcasts")
        with pytest.raises(OperatorError, match="there are no attributes"):
            made.set_attrs_type_key("relay.attrs.ClipAtrs")
    finally:
        del OPERATORS["tests.operator"]
    assert op.add(var("x", shape=(2,)), const(1.0)).op is get("add") and "nn.dense" in op.list_op_names()


def test_builders_by_kind():
    x = relay.var("x", shape=(2, 3))
    assert relay.nn.relu(x).op is get("nn.relu") and relay.add(x, x).op is get("add")
    assert "resize2d" in dir(relay.image) and relay.qnn.quantize.__name__ == "quantize"
    with pytest.raises(OperatorError, match=r"relay\.nn has no operator 'relo'"):
        relay.nn.relo(x)
    with pytest.raises(AttributeError, match="has no attribute 'ad'"):
        _ = relay.ad


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
@pytest.mark.parametrize("constant", [True, False])
def test_values_that_a_reference_does_not_take_are_refused(kind, constant):
    """Where the program runs, not where it is built: the call may stand where it is never computed."""
    places, x = np.array([1, 20], "int32"), relay.var("x", shape=(2,), dtype="int32")
    call = relay.unravel_index(relay.const(places) if constant else x, relay.const(np.array([4, 5], "int32")))
    module = relay.IRModule.from_expr(relay.Function([x], relay.add(call, relay.const(np.int32(1)))))
    with pytest.raises(CompassError, match=r"unravel_index cannot be computed .* index 20"):
        relay.create_executor(kind, mod=module, target="llvm").evaluate()(places)
