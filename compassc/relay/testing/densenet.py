"""Networks of blocks in which each convolution gets what all before it in the block gave."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.analysis import free_vars
from compassc.relay.expr import Expr, Function
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload

FORMS: dict[int, tuple[int, int, tuple[int, ...]]] = {
    121: (64, 32, (6, 12, 24, 16)),
    161: (96, 48, (6, 12, 36, 24)),
    169: (64, 32, (6, 12, 32, 32)),
    201: (64, 32, (6, 12, 48, 32)),
}
"""Channels before the first block, channels that each layer adds, and layers in each block, by the number of layers."""
WIDE = 4
"""Channels between the two convolutions of a layer, in those that it adds."""


class NoSuchNetwork(ExpressionError, ValueError):
    """A number of layers that no network has."""


def _active(data: Expr, name: str) -> Expr:
    return layers.made("nn.relu", layers.batch_norm_infer(data, epsilon=1e-5 + 1e-12, name=name))


def _conv(data: Expr, channels: int, size: int, name: str, stride: int = 1, padding: int = 0) -> Expr:
    return layers.conv2d(
        data, channels=channels, kernel_size=(size, size), strides=(stride, stride), padding=(padding, padding), name=name
    )  # fmt: skip


def get_net(num_layers: int, classes: int, batch_size: int, image_shape: Sequence[int], dtype: str) -> Function:
    """Scores of pictures NCHW. NoSuchNetwork (a ValueError) for other numbers of layers."""
    if num_layers not in FORMS:
        raise NoSuchNetwork(f"no such network has {num_layers} layers", f"give one of {', '.join(map(str, FORMS))}")
    channels, growth, blocks = FORMS[num_layers]
    made = _conv(layers.image(batch_size, image_shape, dtype), channels, 7, "conv1", 2, 3)
    made = layers.made("nn.max_pool2d", _active(made, "bn1"), (3, 3), (2, 2), padding=(1, 1))
    for block, count in enumerate(blocks, 1):
        for n in range(1, count + 1):
            name = f"block{block}_layer{n}"
            added = _conv(_active(made, f"{name}_bn1"), WIDE * growth, 1, f"{name}_conv1")
            added = _conv(_active(added, f"{name}_bn2"), growth, 3, f"{name}_conv2", padding=1)
            made = layers.made("concatenate", [made, added], axis=1)
        channels += count * growth
        if block < len(blocks):
            channels //= 2
            made = _conv(_active(made, f"transition{block}_bn"), channels, 1, f"transition{block}_conv")
            made = layers.made("nn.avg_pool2d", made, (2, 2), (2, 2))
    made = layers.made("nn.batch_flatten", layers.made("nn.global_avg_pool2d", _active(made, "bn2")))
    made = layers.dense_add_bias(made, units=classes, name="dense1")
    return Function(free_vars(made), made)


def get_workload(
    densenet_size: int = 121, classes: int = 1000, batch_size: int = 4, image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> Workload:  # fmt: skip
    """The module and parameters of `get_net`."""
    return create_workload(get_net(densenet_size, classes, batch_size, image_shape, dtype))
