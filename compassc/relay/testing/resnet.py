"""Residual networks whose normalisations stand before convolutions."""

from __future__ import annotations

from collections.abc import Sequence

from compass_core.dataclass import dataclass
from compassc.ir.errors import ExpressionError
from compassc.relay.builders import build
from compassc.relay.expr import Expr, Function
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload

UNITS: dict[int, tuple[int, ...]] = {
    18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3), 200: (3, 24, 36, 3),
    269: (3, 30, 48, 8),
}  # fmt: skip
"""Units in each stage, by the number of layers."""
EPSILON, SMALL, SMALL_STEM = 2e-5, 28, 32
"""Pictures up to SMALL have three stages, those up to SMALL_STEM a first convolution that keeps their size."""


class NoSuchDepth(ExpressionError, ValueError):
    """A number of layers that no network has."""


@dataclass(frozen=True)
class Form:
    """What a network is made of: units and channels of each stage (the first of these is that before them), and whether units
    are three convolutions through a quarter of the channels."""

    units: Sequence[int]
    filters: Sequence[int]
    bottleneck: bool


def form(num_layers: int, height: int) -> Form:
    """The form of a network for pictures of a height. NoSuchDepth (a ValueError) for other numbers of layers."""
    if height <= SMALL:
        deep = (num_layers - 2) % 9 == 0 and num_layers >= 164
        if not deep and ((num_layers - 2) % 6 or not 8 <= num_layers < 164):
            raise NoSuchDepth(
                f"no residual network for small pictures has {num_layers} layers", "give 6 n + 2: 8, 14, 20"
            )
        each = (num_layers - 2) // (9 if deep else 6)
        return Form([each] * 3, [16, 64, 128, 256] if deep else [16, 16, 32, 64], deep)
    if num_layers not in UNITS:
        raise NoSuchDepth(f"no residual network has {num_layers} layers", f"give one of {', '.join(map(str, UNITS))}")
    deep = num_layers >= 50
    return Form(UNITS[num_layers], [64, 256, 512, 1024, 2048] if deep else [64, 64, 128, 256, 512], deep)


@dataclass(frozen=True)
class _Network:
    layout: str

    def conv(self, data: Expr, channels: int, size: int, stride: int, name: str) -> Expr:
        return layers.conv2d(
            data, channels=channels, kernel_size=(size, size), strides=(stride, stride), padding=(size // 2, size // 2),
            data_layout=self.layout, kernel_layout=layers.conv_kernel_layout(self.layout), name=name,
        )  # fmt: skip

    def norm(self, data: Expr, name: str, scale: bool = True) -> Expr:
        return layers.batch_norm_infer(data, epsilon=EPSILON, axis=self.layout.index("C"), name=name, scale=scale)

    def active(self, data: Expr, name: str) -> Expr:
        return build("nn.relu", self.norm(data, name))

    def unit(self, data: Expr, channels: int, stride: int, same: bool, bottleneck: bool, name: str) -> Expr:
        """Convolutions whose result is added to what they are of, or to a convolution of it where shapes differ."""
        sizes = [(channels // 4, 1), (channels // 4, 3), (channels, 1)] if bottleneck else [(channels, 3)] * 2
        first = made = self.active(data, f"{name}_bn1")
        for n, (count, size) in enumerate(sizes, 1):
            made = self.active(made, f"{name}_bn{n}") if n > 1 else made
            made = self.conv(made, count, size, stride if n == 1 else 1, f"{name}_conv{n}")
        return build("add", made, data if same else self.conv(first, channels, 1, stride, f"{name}_sc"))

    def stem(self, data: Expr, channels: int, height: int) -> Expr:
        made = self.norm(data, "bn_data", scale=False)
        if height <= SMALL_STEM:
            return self.conv(made, channels, 3, 1, "conv0")
        made = self.active(self.conv(made, channels, 7, 2, "conv0"), "bn0")
        return build("nn.max_pool2d", made, (3, 3), (2, 2), padding=(1, 1), layout=self.layout)


def get_net(
    batch_size: int, num_classes: int, num_layers: int = 18, image_shape: Sequence[int] = (3, 224, 224),
    layout: str = "NCHW", dtype: str = "float32",
) -> Function:  # fmt: skip
    """Classes of pictures in a layout, by so many layers."""
    height = image_shape[layout.index("H") - 1]
    shape, net = form(num_layers, height), _Network(layout)
    made = net.stem(layers.image(batch_size, image_shape, dtype), shape.filters[0], height)
    for stage, (units, channels) in enumerate(zip(shape.units, shape.filters[1:]), 1):
        for n in range(1, units + 1):
            stride = 2 if stage > 1 and n == 1 else 1
            made = net.unit(made, channels, stride, n > 1, shape.bottleneck, f"stage{stage}_unit{n}")
    made = build("nn.global_avg_pool2d", net.active(made, "bn1"), layout=layout)
    return layers.classified(layers.dense_add_bias(build("nn.batch_flatten", made), units=num_classes, name="fc1"))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, num_layers: int = 18, image_shape: Sequence[int] = (3, 224, 224),
    layout: str = "NCHW", dtype: str = "float32",
) -> Workload:  # fmt: skip
    """The module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype))
