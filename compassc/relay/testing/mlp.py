"""A network of three products with matrices."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.builders import build
from compassc.relay.expr import Function
from compassc.relay.testing.init import Workload, create_workload
from compassc.relay.testing.layers import classified, dense_add_bias, image


def get_net(
    batch_size: int, num_classes: int = 10, image_shape: Sequence[int] = (1, 28, 28), dtype: str = "float32"
) -> Function:
    """128 and 64 hidden units with relu, then classes."""
    hidden = build("nn.batch_flatten", image(batch_size, image_shape, dtype))
    for name, units in (("fc1", 128), ("fc2", 64)):
        hidden = build("nn.relu", dense_add_bias(hidden, units=units, name=name))
    return classified(dense_add_bias(hidden, units=num_classes, name="fc3"))


def get_workload(
    batch_size: int, num_classes: int = 10, image_shape: Sequence[int] = (1, 28, 28), dtype: str = "float32"
) -> Workload:
    """The module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
