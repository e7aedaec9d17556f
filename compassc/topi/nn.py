"""Layers of networks, under one name."""

from compassc.topi.convolution import (
    conv1d,
    conv1d_ncw,
    conv1d_nwc,
    conv2d,
    conv2d_nchw,
    conv2d_nhwc,
    conv2d_transpose_nchw,
    depthwise_conv2d_nchw,
    depthwise_conv2d_nhwc,
    group_conv2d_nchw,
    group_conv2d_nhwc,
)
from compassc.topi.elementwise import gelu, leaky_relu, prelu, relu, silu
from compassc.topi.linear import batch_matmul, dense, matmul
from compassc.topi.movement import (
    depth_to_space,
    flatten,
    pad,
    space_to_depth,
)
from compassc.topi.normalisation import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    log_softmax,
    rms_norm,
    softmax,
)
from compassc.topi.pooling import adaptive_pool, global_pool, pool2d

__all__ = [
    "adaptive_pool",
    "batch_matmul",
    "batch_norm",
    "conv1d",
    "conv1d_ncw",
    "conv1d_nwc",
    "conv2d",
    "conv2d_nchw",
    "conv2d_nhwc",
    "conv2d_transpose_nchw",
    "dense",
    "depth_to_space",
    "depthwise_conv2d_nchw",
    "depthwise_conv2d_nhwc",
    "flatten",
    "gelu",
    "global_pool",
    "group_conv2d_nchw",
    "group_conv2d_nhwc",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "matmul",
    "pad",
    "pool2d",
    "prelu",
    "relu",
    "rms_norm",
    "silu",
    "softmax",
    "space_to_depth",
]
