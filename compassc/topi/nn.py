"""Layers of networks, under one name."""

from compassc.operators.convolution import (
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
from compassc.operators.elementwise import gelu, leaky_relu, prelu, relu, silu
from compassc.operators.linear import batch_matmul, dense, matmul
from compassc.operators.movement import (
    depth_to_space,
    flatten,
    pad,
    space_to_depth,
)
from compassc.operators.normalisation import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    log_softmax,
    rms_norm,
    softmax,
)
from compassc.operators.pooling import adaptive_pool, global_pool, pool2d
