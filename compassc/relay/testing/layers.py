"""Layers of networks: calls with variables for the weights that are not given, named after the layer."""

from __future__ import annotations

from collections.abc import Sequence

from compassc.relay.analysis import free_vars
from compassc.relay.builders import build, results
from compassc.relay.expr import Expr, Function, TupleGetItem, var


def made(name: str, *args: object, **options: object) -> Expr:
    """What the builder of an operator with one result makes (`nn.relu`)."""
    found = results(name, *args, **options)
    assert isinstance(found, Expr), f"{name} has one result"
    return found


_KERNELS = {"NCHW": "OIHW", "NHWC": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}


def conv_kernel_layout(data_layout: str, is_depthwise: bool = False) -> str:
    """The layout of a kernel that goes with a layout of data. ValueError for layouts without one."""
    if data_layout not in _KERNELS:
        raise ValueError(f"no layout of kernels goes with {data_layout}: give one of {', '.join(_KERNELS)}")
    return "HWOI" if is_depthwise and data_layout == "NHWC" else _KERNELS[data_layout]


def _weight(given: Expr | None, name: str, what: str) -> Expr:
    return given if given is not None else var(f"{name}_{what}")


def conv2d(data: Expr, weight: Expr | None = None, *, name: str = "", **options: object) -> Expr:
    """A convolution, by default with the variable NAME_weight."""
    return made("nn.conv2d", data, _weight(weight, name, "weight"), **options)


def conv3d(data: Expr, weight: Expr | None = None, *, name: str = "", **options: object) -> Expr:
    """A convolution over three dimensions, by default with the variable NAME_weight."""
    return made("nn.conv3d", data, _weight(weight, name, "weight"), **options)


def conv2d_transpose(data: Expr, weight: Expr | None = None, *, name: str = "", **options: object) -> Expr:
    """A transposed convolution, by default with the variable NAME_weight."""
    return made("nn.conv2d_transpose", data, _weight(weight, name, "weight"), **options)


def dense_add_bias(
    data: Expr, weight: Expr | None = None, bias: Expr | None = None, units: int | None = None, *, name: str = "",
    **options: object,
) -> Expr:  # fmt: skip
    """A product with a matrix and a bias, by default NAME_weight and NAME_bias."""
    product = made("nn.dense", data, _weight(weight, name, "weight"), units, **options)
    return made("nn.bias_add", product, _weight(bias, name, "bias"), axis=-1)


def batch_norm_infer(
    data: Expr, gamma: Expr | None = None, beta: Expr | None = None, moving_mean: Expr | None = None,
    moving_var: Expr | None = None, *, name: str = "", **options: object,
) -> Expr:  # fmt: skip
    """The result of a batch normalisation, without its statistics; by default with NAME_gamma, NAME_beta, NAME_moving_mean and
    NAME_moving_var."""
    given = zip((gamma, beta, moving_mean, moving_var), ("gamma", "beta", "moving_mean", "moving_var"))
    found = build("nn.batch_norm", data, *(_weight(v, name, what) for v, what in given), **options)
    return TupleGetItem(found, 0)


def bias_add(data: Expr, *, name: str, axis: int = 1) -> Expr:
    """A sum with NAME_bias."""
    return made("nn.bias_add", data, var(f"{name}_bias"), axis=axis)


def classified(body: Expr) -> Function:
    """The function of a network that ends with the weights of classes."""
    classes = made("nn.softmax", body)
    return Function(free_vars(classes), classes)


def image(batch_size: int, image_shape: Sequence[int], dtype: str) -> Expr:
    """The variable of a network's input."""
    return var("data", shape=(batch_size, *image_shape), dtype=dtype)
