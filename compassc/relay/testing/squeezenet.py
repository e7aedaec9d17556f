"""A network that squeezes channels before it expands them by two convolutions beside each other."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.builders import build
from compassc.relay.expr import Expr, Function
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload

POOL = 0
VERSIONS: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    "1.0": ((96, 7), (POOL, 16, 16, 32, POOL, 32, 48, 48, 64, POOL, 64)),
    "1.1": ((64, 3), (POOL, 16, 16, POOL, 32, 32, POOL, 48, 48, 64, 64)),
}
"""Channels and window of the first convolution, then squeezed channels, which are expanded to eight times as many."""


def _conv(data: Expr, channels: int, size: int, name: str, padding: int = 0, stride: int = 1) -> Expr:
    made = layers.conv2d(
        data,
        channels=channels,
        kernel_size=(size, size),
        strides=(stride, stride),
        padding=(padding, padding),
        name=name,
    )
    return build("nn.relu", layers.bias_add(made, name=name))


def get_net(
    batch_size: int, image_shape: Sequence[int], num_classes: int, version: str, dtype: str = "float32"
) -> Function:
    """Classes of pictures NCHW. ValueError for versions other than 1.0 and 1.1."""
    if version not in VERSIONS:
        raise ValueError(f"there is no version {version}: give one of {', '.join(VERSIONS)}")
    (channels, size), fires = VERSIONS[version]
    made, n = _conv(layers.image(batch_size, image_shape, dtype), channels, size, "conv1", stride=2), 1
    for squeezed in fires:
        if squeezed == POOL:
            made = build("nn.max_pool2d", made, (3, 3), (2, 2))
            continue
        name = f"fire{n}"
        made = _conv(made, squeezed, 1, f"{name}_squeeze")
        wide = [_conv(made, 4 * squeezed, s, f"{name}_expand{s}x{s}", s // 2) for s in (1, 3)]
        made, n = build("concatenate", wide, axis=1), n + 1
    made = _conv(build("nn.dropout", made, 0.5), num_classes, 1, "conv2")
    return layers.classified(build("nn.batch_flatten", build("nn.global_avg_pool2d", made)))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, version: str = "1.0", image_shape: Sequence[int] = (3, 224, 224),
    dtype: str = "float32",
) -> Workload:  # fmt: skip
    """The module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
