"""Operators as tensor expressions, a view of `compassc.operators`; and default schedules for each kind of target.

c = topi.nn.dense(a, w)
module = te.build(topi.schedule(c, "X2_1204"), [a, w, c], "X2_1204")
"""

from compassc.operators.broadcast import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    broadcast_to,
    divide,
    elemwise_sum,
    equal,
    floor_divide,
    floor_mod,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    power,
    right_shift,
    subtract,
    where,
)
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
from compassc.operators.declare import OPERATORS, Operator
from compassc.operators.elementwise import (
    abs,
    arange,
    bitwise_not,
    cast,
    ceil,
    celu,
    clip,
    cos,
    cosh,
    elu,
    erf,
    exp,
    exp2,
    floor,
    full,
    full_like,
    gelu,
    gelu_tanh,
    hard_sigmoid,
    hard_swish,
    identity,
    isfinite,
    isinf,
    isnan,
    leaky_relu,
    log,
    log2,
    log10,
    logical_not,
    mish,
    negative,
    prelu,
    reciprocal,
    relu,
    round,
    rsqrt,
    selu,
    shrink,
    sigmoid,
    sign,
    silu,
    sin,
    sinh,
    softplus,
    softsign,
    sqrt,
    square,
    swish,
    tan,
    tanh,
    thresholded_relu,
    trunc,
)
from compassc.operators.image import resize2d
from compassc.operators.indexing import argsort, gather, gather_nd, one_hot, scatter_elements, sort, take, topk
from compassc.operators.inverse import acos, acosh, asin, asinh, atan, atanh
from compassc.operators.linear import batch_matmul, dense, matmul
from compassc.operators.movement import (
    concatenate,
    depth_to_space,
    expand_dims,
    flatten,
    flip,
    pad,
    repeat,
    reshape,
    space_to_depth,
    split,
    squeeze,
    stack,
    strided_slice,
    tile,
    transpose,
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
from compassc.operators.reduction import all, any, argmax, argmin, max, mean, min, prod, sum
from compassc.topi import image, nn
from compassc.topi.schedules import Knobs, schedule

__all__ = ["Knobs", "Operator", "conv1d", "conv2d", "image", "nn", "schedule"]
__all__ += [name for name in OPERATORS if name in globals()] + ["pool2d"]
