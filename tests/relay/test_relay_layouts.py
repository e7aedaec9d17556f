"""Programs in other layouts: they compute what they did, and layouts are changed at their borders alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import relay
from compassc.relay.builders import build, results
from compassc.relay.expr import Expr
from compassc.relay.module import IRModule
from compassc.relay.op import temporary
from compassc.relay.operators import op_name
from compassc.relay.passes import make
from compassc.relay.passes.convert_layout import LayoutConfig
from compassc.relay.visit import post_order
from tests.relay.relay_values import evaluate, module

RNG = np.random.default_rng(5)
W = [RNG.integers(-2, 3, (8, 8, 3, 3)).astype("float32") for _ in range(2)]
X = RNG.integers(-3, 4, (1, 8, 6, 7)).astype("float32")


def vector(n: int = 8) -> relay.Constant:
    return relay.const(np.arange(1, n + 1, dtype="float32"))


def conv(x: Expr, which: int = 0) -> Expr:
    made: Expr = build("nn.conv2d", x, relay.const(W[which]), padding=(1, 1))
    return made


FOLLOW: dict[str, Callable[[Expr], Expr]] = {
    "elements": lambda e: build("nn.relu", build("clip", e, -9.0, 9.0)),
    "scalar": lambda e: e * relay.const(2.0),
    "channels": lambda e: e + relay.const(np.arange(8, dtype="float32").reshape(8, 1, 1)),
    "bias": lambda e: build("nn.bias_add", e, vector()),
    "variable": lambda e: e + relay.const(X),
    "batch norm": lambda e: results("nn.batch_norm", e, vector(), vector(), vector(), vector())[0],
    "pools": lambda e: build("nn.avg_pool2d", build("nn.max_pool2d", e, (2, 2)), (2, 1), padding=(1, 0)),
    "join": lambda e: build("concatenate", [e, build("nn.relu", e)], 1),
    "split": lambda e: build("add", *results("split", e, 2, axis=1)),
    "pad": lambda e: build("nn.pad", e, ((0, 0), (0, 0), (1, 2), (0, 3))),
    "slice": lambda e: build("strided_slice", e, [0, 0, 1, 2], [1, 8, 5, 6], [1, 1, 2, 1]),
    "slice of axes": lambda e: build("strided_slice", e, [1], [4], axes=[2]),
    "slice like": lambda e: build("slice_like", e, relay.const(X[:, :, :4, :4]), axes=(2, 3)),
    "resize": lambda e: build("image.resize2d", e, (9, 8)),
    "upsampling": lambda e: build("nn.upsampling", e, 2, 2),
    "prelu": lambda e: build("nn.prelu", e, vector()),
    "reduction": lambda e: build("sum", e, axis=[2, 3], keepdims=True),
}
"""What can follow a convolution in its layout."""
STOP: dict[str, Callable[[Expr], Expr]] = {
    "softmax": lambda e: build("nn.softmax", e, axis=1),
    "reshape": lambda e: build("reshape", e, (8, -1)),
    "reduced": lambda e: build("mean", e, axis=1),
    "squeezed": lambda e: build("squeeze", build("max", e, axis=[0], keepdims=True), axis=[0]),
    "transposed": lambda e: build("transpose", e, (0, 2, 1, 3)),
    "layer norm": lambda e: build("nn.layer_norm", e, vector(7), vector(7), axis=-1),
}
"""What ends a layout, or changes the axes."""
BLOCKED = {"prelu", "split"}
"""What does not follow into blocks of channels."""
UNMOVED = {"resize", "upsampling"}
"""What follows where H and W stay where they are."""


def converted(f: IRModule, layout: str) -> IRModule:
    """A module whose convolutions have another layout."""
    f = make("CanonicalizeOps")(f)
    if layout != "NCHW4c":
        return make("ConvertLayout", {"nn.conv2d": [layout, "default"]})(f)

    def alter(attrs, args, types, out_type):
        return build("nn.conv2d", *args, **{**attrs, "data_layout": layout, "kernel_layout": "OIHW4i4o"})

    with temporary("nn.conv2d", "FTVMAlterOpLayout", alter):
        return make("AlterOpLayout")(f)


def transforms(m: IRModule) -> list[tuple[str, str]]:
    """The transformations of layouts but those of constants."""
    calls = [e for e in post_order(make("FoldConstant")(m)["main"]) if op_name(e) == "layout_transform"]
    return [(e.attrs.src_layout, e.attrs.dst_layout) for e in calls]


def program(*steps: Callable[[Expr], Expr]) -> IRModule:
    x = e = relay.var("x", shape=X.shape)
    for step in steps:
        e = step(e)
    return make("InferType")(module(relay.Function([x], e)))


@pytest.mark.parametrize("layout", ["NHWC", "HWNC", "NCHW4c"])
@pytest.mark.parametrize("name", [*FOLLOW, *STOP])
def test_programs_in_other_layouts_compute_the_same(name, layout):
    f = program(conv, {**FOLLOW, **STOP}[name], lambda e: build("nn.relu", e))
    made = converted(f, layout)
    np.testing.assert_allclose(evaluate(made, X)[0], evaluate(f, X)[0], rtol=1e-5, atol=1e-4)
    follows = (
        name in FOLLOW and not (name in BLOCKED and layout == "NCHW4c") and not (name in UNMOVED and layout != "NCHW4c")
    )
    if follows:
        assert transforms(made) == [("NCHW", layout), (layout, "NCHW")]


def test_layouts_go_on_through_networks():
    block = lambda e: build("nn.relu", conv(e, 1) + e)
    f = program(conv, block, block, FOLLOW["pools"], lambda e: build("nn.batch_flatten", e))
    made = converted(f, "NHWC")
    assert transforms(made) == [("NCHW", "NHWC"), ("NHWC", "NCHW")]
    np.testing.assert_allclose(evaluate(made, X)[0], evaluate(f, X)[0], rtol=1e-5)


@pytest.mark.parametrize(("skip", "left"), [([0], 1), ([1], 1), ([0, 1], 2), ([5], 0)])
def test_convolutions_are_left_alone_by_number(skip, left):
    with LayoutConfig(skip_layers=skip):
        made = converted(program(conv, lambda e: conv(e, 1)), "NHWC")
    assert LayoutConfig.current is None
    assert [e.attrs.data_layout for e in post_order(made["main"]) if op_name(e) == "nn.conv2d"].count("NCHW") == left


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"nn.conv2d": ["default", "default"]}, "no layout of its data"),
        ({"nn.conv2d": ["NWHC", "default"]}, "no layout 'NWHC'"),
        ({"nn.relu": ["NHWC"]}, "nn.relu has no other layouts"),
    ],
)
def test_layouts_that_are_not_there_are_refused(wanted, message):
    with pytest.raises(CompassError, match=message):
        make("ConvertLayout", wanted)(program(conv, FOLLOW["elements"]))


POOLS = {
    "nn.max_pool2d": lambda e: build("nn.max_pool2d", e, (2, 2)),
    "nn.global_avg_pool2d": lambda e: build("nn.global_avg_pool2d", e),
    "image.resize2d": lambda e: build("image.resize2d", e, (9, 8)),
    "nn.conv2d_transpose": lambda e: build("nn.conv2d_transpose", e, relay.const(W[0])),
}


@pytest.mark.parametrize("name", POOLS)
def test_operators_that_are_told_a_layout(name):
    f = program(POOLS[name])
    made = make("ConvertLayout", {name: ["NHWC", "default"]})(f)
    assert transforms(made) == [("NCHW", "NHWC"), ("NHWC", "NCHW")]
    np.testing.assert_allclose(evaluate(made, X)[0], evaluate(f, X)[0], rtol=1e-5, atol=1e-4)


MOVES = {
    "NHWC": lambda e: build("transpose", e, [0, 2, 3, 1]),
    "NCHW4c": lambda e: build("layout_transform", e, "NCHW", "NCHW4c"),
    "HWCN": lambda e: build("layout_transform", e, "NCHW", "HWCN"),
}


@pytest.mark.parametrize("first", MOVES)
@pytest.mark.parametrize("second", MOVES)
def test_moves_of_axes_are_one(first, second):
    """A move, and back to the layout before by way of another one."""
    back = lambda e: build("layout_transform", MOVES[first](e), first, "NCHW")
    f = program(back, MOVES[second])
    made = make("SimplifyExpr")(f)
    assert len([e for e in post_order(made["main"]) if op_name(e)]) == 1
    np.testing.assert_array_equal(evaluate(made, X)[0], evaluate(f, X)[0])
