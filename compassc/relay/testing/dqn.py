"""A network that rates actions: three convolutions and two products with matrices."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.analysis import free_vars
from compassc.relay.builders import build
from compassc.relay.expr import Expr, Function
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload


def get_net(
    batch_size: int, num_actions: int = 18, image_shape: Sequence[int] = (4, 84, 84), dtype: str = "float32",
    layout: str = "NCHW",
) -> Function:  # fmt: skip
    """A number for each action, of pictures in a layout."""
    made: Expr = layers.image(batch_size, image_shape, dtype)
    kernel = layers.conv_kernel_layout(layout)
    for n, (channels, size, stride) in enumerate(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 1):
        name = f"conv{n}"
        made = layers.conv2d(
            made, kernel_size=(size, size), strides=(stride, stride), padding=(0, 0), channels=channels, name=name,
            data_layout=layout, kernel_layout=kernel,
        )  # fmt: skip
        made = build("nn.relu", layers.bias_add(made, name=name, axis=layout.index("C")))
    made = layers.dense_add_bias(build("nn.batch_flatten", made), units=512, name="dense1")
    made = layers.dense_add_bias(build("nn.relu", made), units=num_actions, name="dense2")
    return Function(free_vars(made), made)


def get_workload(
    batch_size: int, num_actions: int = 18, image_shape: Sequence[int] = (4, 84, 84), dtype: str = "float32",
    layout: str = "NCHW",
) -> Workload:  # fmt: skip
    """The module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
