"""A network of separable convolutions: windows for each channel, then sums over channels."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.builders import build
from compassc.relay.expr import Expr, Function, var
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload

BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2), (1024, 1))
"""Channels behind each separable convolution, and its stride."""


def _conv(
    data: Expr, conv: str, norm: str, layout: str, dtype: str, channels: int, options: dict[str, object],
    depthwise: bool = False,
) -> Expr:  # fmt: skip
    """A convolution, its normalisation and relu."""
    kernel, weight = layers.conv_kernel_layout(layout, depthwise), None
    if depthwise:  # of groups inference waits for the weight's shape
        sizes = {"O": channels, "I": 1, "H": 3, "W": 3}
        weight = var(f"{conv}_weight", shape=[sizes[c] for c in kernel], dtype=dtype)
    made = build(
        "nn.conv2d", data, weight or var(f"{conv}_weight"), data_layout=layout, kernel_layout=kernel, channels=channels, **options
    )  # fmt: skip
    return build("nn.relu", layers.batch_norm_infer(made, axis=layout.index("C"), name=norm))


def mobile_net(
    num_classes: int = 1000, data_shape: Sequence[int] = (1, 3, 224, 224), dtype: str = "float32", layout: str = "NCHW"
) -> Function:
    """Classes of pictures in a layout; a convolution with stride 2, then separable ones."""
    window: dict[str, object] = {"kernel_size": (3, 3), "padding": (1, 1)}
    data = layers.image(data_shape[0], data_shape[1:], dtype)
    made = _conv(data, "conv_block_1_conv", "conv_block_1_bn", layout, dtype, 32, {"strides": (2, 2), **window})
    channels = 32
    for n, (following, stride) in enumerate(BLOCKS, 1):
        name = f"separable_conv_block_{n}"
        own: dict[str, object] = {"groups": channels, "strides": (stride, stride), **window}
        made = _conv(made, f"{name}_depthwise_conv1", f"{name}_bn1", layout, dtype, channels, own, True)
        made = _conv(made, f"{name}_conv2", f"{name}_bn2", layout, dtype, following, {"kernel_size": (1, 1)})
        channels = following
    made = build("nn.batch_flatten", build("nn.global_avg_pool2d", made, layout=layout))
    return layers.classified(layers.dense_add_bias(made, units=num_classes, name="fc"))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, image_shape: Sequence[int] = (3, 224, 224), dtype: str = "float32",
    layout: str = "NCHW",
) -> Workload:  # fmt: skip
    """The module and parameters of `mobile_net`."""
    return create_workload(mobile_net(num_classes, (batch_size, *image_shape), dtype, layout))
