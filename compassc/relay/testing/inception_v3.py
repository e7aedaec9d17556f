"""A network of towers of convolutions beside each other, for pictures of 299 rows and columns."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.expr import Expr, Function
from compassc.relay.testing import layers
from compassc.relay.testing.init import Workload, create_workload

Window = tuple[int, int]
Layer = tuple[int, Window, int]
"""Channels, window, stride; those of stride 1 keep rows and columns."""
EPSILON = 2e-5
ONE, THREE, FIVE = (1, 1), (3, 3), (5, 5)
ROW, COLUMN = (1, 7), (7, 1)


def _conv(data: Expr, channels: int, window: Window, stride: int, name: str, keep: bool = True) -> Expr:
    padding = tuple(n // 2 for n in window) if keep and stride == 1 else (0, 0)
    made = layers.conv2d(
        data, channels=channels, kernel_size=window, strides=(stride, stride), padding=padding, name=f"{name}_conv"
    )
    return layers.made("nn.relu", layers.batch_norm_infer(made, epsilon=EPSILON, name=f"{name}_bn"))


def _tower(data: Expr, steps: Sequence[Layer], name: str) -> Expr:
    for n, (channels, window, stride) in enumerate(steps):
        data = _conv(data, channels, window, stride, f"{name}_{n}")
    return data


def _pool(data: Expr, kind: str, stride: int) -> Expr:
    padding = (1, 1) if stride == 1 else (0, 0)
    return layers.made(f"nn.{kind}_pool2d", data, THREE, (stride, stride), padding=padding)


def _mixed(data: Expr, towers: Sequence[Sequence[Layer]], kind: str, projected: int, name: str) -> Expr:
    """Towers and a pool of the same data, with `projected` channels behind the pool (0: those of the data, with stride 2)."""
    made = [_tower(data, steps, f"{name}_tower{n}") for n, steps in enumerate(towers)]
    pooled = _pool(data, kind, 1 if projected else 2)
    made.append(_conv(pooled, projected, ONE, 1, f"{name}_project") if projected else pooled)
    return layers.made("concatenate", made, axis=1)


def _wide(data: Expr, kind: str, name: str) -> Expr:
    """Towers that end with two convolutions beside each other, of a row and of a column."""
    ends: list[Expr] = [_conv(data, 320, ONE, 1, f"{name}_single")]
    for n, steps in enumerate(([(384, ONE, 1)], [(448, ONE, 1), (384, THREE, 1)])):
        made = _tower(data, steps, f"{name}_tower{n}")
        ends += [_conv(made, 384, w, 1, f"{name}_tower{n}_{e}") for e, w in (("row", (1, 3)), ("column", (3, 1)))]
    ends.append(_conv(_pool(data, kind, 1), 192, ONE, 1, f"{name}_project"))
    return layers.made("concatenate", ends, axis=1)


def _stem(data: Expr) -> Expr:
    made = _conv(data, 32, THREE, 2, "stem0")
    made = _conv(_conv(made, 32, THREE, 1, "stem1", keep=False), 64, THREE, 1, "stem2")
    made = _conv(_pool(made, "max", 2), 80, ONE, 1, "stem3")
    return _pool(_conv(made, 192, THREE, 1, "stem4", keep=False), "max", 2)


def get_net(batch_size: int, num_classes: int, image_shape: Sequence[int], dtype: str) -> Function:
    """Classes of pictures NCHW."""
    made = _stem(layers.image(batch_size, image_shape, dtype))
    for n, projected in enumerate((32, 64, 64)):
        towers = ([(64, ONE, 1)], [(48, ONE, 1), (64, FIVE, 1)], [(64, ONE, 1), (96, THREE, 1), (96, THREE, 1)])
        made = _mixed(made, towers, "avg", projected, f"mixed{n}")
    made = _mixed(made, ([(384, THREE, 2)], [(64, ONE, 1), (96, THREE, 1), (96, THREE, 2)]), "max", 0, "mixed3")
    for n, c in enumerate((128, 160, 160, 192), 4):
        long = [(c, ONE, 1), (c, COLUMN, 1), (c, ROW, 1), (c, COLUMN, 1), (192, ROW, 1)]
        made = _mixed(
            made, ([(192, ONE, 1)], [(c, ONE, 1), (c, ROW, 1), (192, COLUMN, 1)], long), "avg", 192, f"mixed{n}"
        )
    ends = ([(192, ONE, 1), (320, THREE, 2)], [(192, ONE, 1), (192, ROW, 1), (192, COLUMN, 1), (192, THREE, 2)])
    made = _mixed(made, ends, "max", 0, "mixed8")
    for n, kind in ((9, "avg"), (10, "max")):
        made = _wide(made, kind, f"mixed{n}")
    made = layers.made("nn.batch_flatten", layers.made("nn.global_avg_pool2d", made))
    return layers.classified(layers.dense_add_bias(made, units=num_classes, name="fc1"))


def get_workload(
    batch_size: int = 1, num_classes: int = 1000, image_shape: Sequence[int] = (3, 299, 299), dtype: str = "float32"
) -> Workload:
    """The module and parameters of `get_net`."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
