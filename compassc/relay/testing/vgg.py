"""Networks of stages of 3x3 convolutions with a pool behind each, and three products with matrices."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.expr import Expr, Function
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload

STAGES: dict[int, tuple[int, ...]] = {11: (1, 1, 2, 2, 2), 13: (2,) * 5, 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
"""Convolutions in each stage, by the number of layers."""
FILTERS = (64, 128, 256, 512, 512)


class NoSuchNetwork(ExpressionError, ValueError):
    """A number of layers that no network has."""


def get_net(
    batch_size: int, image_shape: Sequence[int], num_classes: int, dtype: str, num_layers: int = 11, batch_norm: bool = False
) -> Function:  # fmt: skip
    """Classes of pictures NCHW. NoSuchNetwork (a ValueError) for other numbers of layers."""
    if num_layers not in STAGES:
        raise NoSuchNetwork(f"no such network has {num_layers} layers", f"give one of {', '.join(map(str, STAGES))}")
    made: Expr = layers.image(batch_size, image_shape, dtype)
    for stage, (count, filters) in enumerate(zip(STAGES[num_layers], FILTERS), 1):
        for n in range(1, count + 1):
            name = f"conv{stage}_{n}"
            made = layers.conv2d(made, channels=filters, kernel_size=(3, 3), padding=(1, 1), name=name)
            made = layers.bias_add(made, name=name)
            if batch_norm:
                made = layers.batch_norm_infer(made, name=f"bn{stage}_{n}")
            made = layers.made("nn.relu", made)
        made = layers.made("nn.max_pool2d", made, (2, 2), (2, 2))
    made = layers.made("nn.batch_flatten", made)
    for name in ("fc6", "fc7"):
        made = layers.made("nn.relu", layers.dense_add_bias(made, units=4096, name=name))
        made = layers.made("nn.dropout", made, 0.5)
    return layers.classified(layers.dense_add_bias(made, units=num_classes, name="fc8"))


def get_workload(
    batch_size: int, num_classes: int = 1000, image_shape: Sequence[int] = (3, 224, 224), dtype: str = "float32",
    num_layers: int = 11, batch_norm: bool = False,
) -> Workload:  # fmt: skip
    """The module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))
