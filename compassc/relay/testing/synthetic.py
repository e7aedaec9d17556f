"""A small network with what others have: products, convolutions, normalisation, branches that meet."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.analysis import free_vars
from compassc.relay.expr import Expr, Function, var
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload

SHAPE = (1, 3, 24, 12)


def _branches(data: Expr, shape: Sequence[int], wtype: str, names: Sequence[str]) -> Expr:
    """The sum of a product and of a convolution of the same data."""
    rows = layers.made("reshape", data, (-1, shape[3]))
    product = layers.made("nn.dense", rows, var(f"{names[0]}_weight", shape=(shape[3], shape[3]), dtype=wtype))
    product = layers.made("reshape_like", layers.made("nn.relu", product), data)
    kernel = var(f"{names[1]}_weight", shape=(shape[1], shape[1], 3, 3), dtype=wtype)
    return layers.made("add", product, layers.made("nn.softmax", layers.made("nn.conv2d", data, kernel, padding=1)))


def get_net(input_shape: Sequence[int] = SHAPE, dtype: str = "float32", wtype: str | None = None) -> Function:
    """A tensor of the shape of the input, NCHW. `wtype`: the type of weights, by default that of the input."""
    wtype = wtype or dtype
    data = var("data", shape=tuple(input_shape), dtype=dtype)
    made = _branches(data, input_shape, wtype, ("dense", "conv"))
    made = layers.batch_norm_infer(layers.made("nn.bias_add", made, var("bias", dtype=wtype)), name="batch_norm")
    made = _branches(made, input_shape, wtype, ("dense2", "conv2d"))
    return Function(free_vars(made), made)


def get_workload(input_shape: Sequence[int] = SHAPE, dtype: str = "float32", wtype: str | None = None) -> Workload:
    """The module and parameters of `get_net`."""
    return create_workload(get_net(input_shape, dtype, wtype))
