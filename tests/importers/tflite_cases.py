"""Models of one operator or a few, of each operator that is imported: CASES by name, each a function of the model that
adds inputs and operators and gives the outputs."""

from __future__ import annotations

import numpy as np

from tests.importers.tflite_models import Model, Tensor

CASES = {}
PLAIN_CONV = {"padding": "SAME", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 1, "dilation_h_factor": 1}
POOL = {"filter_width": 3, "filter_height": 2, "stride_w": 2, "stride_h": 1}


def case(function):
    CASES[function.__name__] = function
    return function


def random(*shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def build(name):
    """The bytes of a case's model."""
    net = Model()
    made = CASES[name](net)
    return net.bytes(*(made if isinstance(made, list) else [made]))


# -- floats


def _unary(operator, shape=(2, 3, 4), options=None, **given):
    def make(net):
        return net(operator, [net.input("x", shape)], shape, options=options, **given)

    CASES[operator.lower()] = make


for _name in "ABS CEIL COS EXP FLOOR LOG NEG ROUND RSQRT SIGN SIN SQRT SQUARE ZEROS_LIKE".split():
    _unary(_name)
for _name in "RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 LOGISTIC TANH HARD_SWISH ELU LOG_SOFTMAX L2_NORMALIZATION".split():
    _unary(_name)
_unary("LEAKY_RELU", alpha=0.3, options="LeakyReluOptions")
_unary("SOFTMAX", beta=0.5)
_unary("GELU", approximate=True)
_unary(
    "LOCAL_RESPONSE_NORMALIZATION",
    (1, 2, 3, 8),
    "LocalResponseNormalizationOptions",
    radius=2,
    bias=1.5,
    alpha=0.1,
    beta=0.75,
)
_unary("FAKE_QUANT", min=-1.0, max=2.0, num_bits=8)


def _binary(operator, y=(3, 4), dtype="float32", to=None, **given):
    def make(net):
        x = net.input("x", (2, 3, 4), dtype)
        return net(operator, [x, net.input("y", y, dtype)], (2, 3, 4), to or dtype, **given)

    CASES[operator.lower() if dtype == "float32" else f"{operator.lower()}_{dtype}"] = make


for _name in "ADD SUB MUL DIV".split():
    _binary(_name, fused_activation_function="RELU6")
for _name in "MAXIMUM MINIMUM FLOOR_DIV FLOOR_MOD SQUARED_DIFFERENCE POW".split():
    _binary(_name)
for _name in "EQUAL NOT_EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL".split():
    _binary(_name, to="bool")
for _name in "ADD SUB MUL DIV MAXIMUM FLOOR_DIV FLOOR_MOD SQUARED_DIFFERENCE BITWISE_XOR RIGHT_SHIFT".split():
    _binary(_name, dtype="int32")
for _name in "LOGICAL_AND LOGICAL_OR".split():
    _binary(_name, dtype="bool")


@case
def logical_not(net):
    return net("LOGICAL_NOT", [net.input("x", (5,), "bool")], (5,), "bool")


@case
def add_n(net):
    return net("ADD_N", [net.input(n, (2, 3)) for n in "xyz"], (2, 3))


@case
def select(net):
    condition = net.input("c", (4,), "bool")
    return net("SELECT", [condition, net.input("x", (4, 3)), net.input("y", (4, 3))], (4, 3))


@case
def select_v2(net):
    condition = net.input("c", (3,), "bool")
    return net("SELECT_V2", [condition, net.input("x", (4, 3)), net.input("y", (1, 3))], (4, 3))


@case
def prelu(net):
    return net("PRELU", [net.input("x", (1, 4, 4, 3)), net.constant(random(1, 1, 3))], (1, 4, 4, 3))


@case
def cast(net):
    return net("CAST", [net.input("x", (2, 3))], (2, 3), "int32")


@case
def conv(net):
    x, w, bias = net.input("x", (2, 9, 8, 3)), net.constant(random(4, 3, 2, 3)), net.constant(random(4))
    given = PLAIN_CONV | {"stride_w": 2, "fused_activation_function": "RELU6"}
    return net("CONV_2D", [x, w, bias], (2, 9, 4, 4), **given)


@case
def conv_dilated(net):
    x, w = net.input("x", (1, 9, 9, 3)), net.constant(random(4, 3, 3, 3))
    given = PLAIN_CONV | {"padding": "VALID", "dilation_h_factor": 2, "fused_activation_function": "RELU_N1_TO_1"}
    return net("CONV_2D", [x, w, net.constant(random(4))], (1, 5, 7, 4), **given)


@case
def conv_grouped(net):
    x, w = net.input("x", (1, 5, 5, 4)), net.constant(random(6, 3, 3, 2))
    return net("CONV_2D", [x, w, net.constant(random(6))], (1, 5, 5, 6), **PLAIN_CONV)


@case
def depthwise_conv(net):
    x, w, bias = net.input("x", (1, 7, 7, 3)), net.constant(random(1, 3, 3, 6)), net.constant(random(6))
    given = {
        "padding": "SAME",
        "stride_w": 2,
        "stride_h": 2,
        "depth_multiplier": 2,
        "dilation_w_factor": 1,
        "dilation_h_factor": 1,
    }
    return net("DEPTHWISE_CONV_2D", [x, w, bias], (1, 4, 4, 6), options="DepthwiseConv2DOptions", **given)


@case
def depthwise_of_one(net):
    x, w, bias = net.input("x", (1, 7, 7, 3)), net.constant(random(1, 3, 3, 3)), net.constant(random(3))
    given = PLAIN_CONV | {"depth_multiplier": 1}
    return net("DEPTHWISE_CONV_2D", [x, w, bias], (1, 7, 7, 3), options="DepthwiseConv2DOptions", **given)


def _transposed(net, size, padding):
    x, w = net.input("x", (1, 4, 4, 3)), net.constant(random(5, 3, 3, 3))
    shape = net.constant([1, size, size, 5], np.int32)
    return net(
        "TRANSPOSE_CONV",
        [shape, w, x],
        (1, size, size, 5),
        padding=padding,
        stride_w=2,
        stride_h=2,
        options="TransposeConvOptions",
    )


@case
def transpose_conv(net):
    return _transposed(net, 8, "SAME")


@case
def transpose_conv_with_a_border(net):
    """Filters that are smaller than strides do not reach the last places, which have the bias alone."""
    x, w, bias = net.input("x", (1, 2, 3, 3)), net.constant(random(4, 1, 2, 3)), net.constant(random(4))
    shape = net.constant([1, 6, 9, 4], np.int32)
    given = {"padding": "SAME", "stride_w": 3, "stride_h": 3, "options": "TransposeConvOptions"}
    return net("TRANSPOSE_CONV", [shape, w, x, bias], (1, 6, 9, 4), **given)


@case
def transpose_conv_valid(net):
    return _transposed(net, 9, "VALID")


@case
def conv_3d(net):
    x, w = net.input("x", (1, 4, 5, 6, 2)), net.constant(random(2, 3, 3, 2, 3))
    return net(
        "CONV_3D",
        [x, w],
        (1, 4, 5, 3, 3),
        padding="SAME",
        stride_d=1,
        stride_w=2,
        stride_h=1,
        dilation_d_factor=1,
        dilation_w_factor=1,
        dilation_h_factor=1,
        options="Conv3DOptions",
    )


@case
def max_pool(net):
    return net(
        "MAX_POOL_2D", [net.input("x", (1, 5, 5, 3))], (1, 5, 3, 3), options="Pool2DOptions", padding="SAME", **POOL
    )


@case
def average_pool(net):
    return net(
        "AVERAGE_POOL_2D",
        [net.input("x", (1, 5, 5, 3))],
        (1, 5, 3, 3),
        options="Pool2DOptions",
        padding="SAME",
        fused_activation_function="RELU",
        **POOL,
    )


@case
def l2_pool(net):
    return net(
        "L2_POOL_2D", [net.input("x", (1, 5, 5, 3))], (1, 4, 2, 3), options="Pool2DOptions", padding="VALID", **POOL
    )


@case
def fully_connected(net):
    x, w, bias = net.input("x", (2, 3, 4)), net.constant(random(5, 4)), net.constant(random(5))
    return net("FULLY_CONNECTED", [x, w, bias], (2, 3, 5), keep_num_dims=True, fused_activation_function="RELU")


@case
def fully_connected_flat(net):
    return net("FULLY_CONNECTED", [net.input("x", (2, 2, 4)), net.constant(random(5, 8)), -1], (2, 5))


@case
def batch_matmul(net):
    return net(
        "BATCH_MATMUL",
        [net.input("x", (2, 3, 4)), net.input("y", (2, 5, 4))],
        (2, 3, 5),
        adj_y=True,
        options="BatchMatMulOptions",
    )


@case
def reshape(net):
    return net("RESHAPE", [net.input("x", (2, 3, 4)), net.constant([4, -1], np.int32)], (4, 6))


@case
def reshape_by_option(net):
    return net("RESHAPE", [net.input("x", (2, 3, 4))], (6, 4), new_shape=[6, 4])


@case
def squeeze(net):
    return net("SQUEEZE", [net.input("x", (1, 3, 1, 4))], (1, 3, 4), squeeze_dims=[2])


@case
def expand_dims(net):
    return net("EXPAND_DIMS", [net.input("x", (3, 4)), net.constant([-1], np.int32)], (3, 4, 1))


@case
def transpose(net):
    return net("TRANSPOSE", [net.input("x", (2, 3, 4)), net.constant([2, 0, 1], np.int32)], (4, 2, 3))


@case
def concatenation(net):
    return net("CONCATENATION", [net.input("x", (2, 3)), net.input("y", (2, 4))], (2, 7), axis=-1)


@case
def pack(net):
    return net("PACK", [net.input("x", (2, 3)), net.input("y", (2, 3))], (2, 2, 3), values_count=2, axis=1)


@case
def unpack(net):
    return net("UNPACK", [net.input("x", (2, 3))], (2,), num=3, axis=1, many=3)


@case
def split(net):
    return net("SPLIT", [net.constant(1, np.int32), net.input("x", (2, 6))], (2, 3), num_splits=2, many=2)


@case
def split_v(net):
    x = net.input("x", (5, 2))
    parts = [net.add(Tensor(f"part{i}", (n, 2), "float32")) for i, n in enumerate((2, 3))]
    sizes, axis = net.constant([2, -1], np.int32), net.constant(0, np.int32)
    return net.node("SPLIT_V", [x, sizes, axis], parts, "SplitVOptions", num_splits=2)


@case
def slice_(net):
    given = [net.constant([0, 1, 0], np.int32), net.constant([2, -1, 3], np.int32)]
    return net("SLICE", [net.input("x", (2, 3, 4)), *given], (2, 2, 3))


@case
def strided_slice(net):
    bounds = [net.constant(v, np.int32) for v in ([0, -1, 3], [0, 0, 0], [1, -2, -1])]
    return net("STRIDED_SLICE", [net.input("x", (2, 5, 4)), *bounds], (3, 4), end_mask=6, shrink_axis_mask=1)


@case
def strided_slice_new_axis(net):
    bounds = [net.constant(v, np.int32) for v in ([0, 0, 1], [0, 0, 3], [1, 1, 1])]
    return net("STRIDED_SLICE", [net.input("x", (2, 3, 4)), *bounds], (1, 2, 3, 2), ellipsis_mask=2, new_axis_mask=1)


@case
def pad(net):
    return net("PAD", [net.input("x", (2, 3)), net.constant([[1, 0], [2, 1]], np.int32)], (3, 6))


@case
def pad_v2(net):
    paddings = net.constant([[1, 0], [2, 1]], np.int32)
    return net("PADV2", [net.input("x", (2, 3)), paddings, net.constant(np.float32(2.5))], (3, 6))


@case
def mirror_pad(net):
    return net("MIRROR_PAD", [net.input("x", (3, 4)), net.constant([[1, 1], [2, 0]], np.int32)], (5, 6), mode=1)


@case
def tile(net):
    return net("TILE", [net.input("x", (2, 3)), net.constant([2, 1], np.int32)], (4, 3))


@case
def broadcast_to(net):
    return net("BROADCAST_TO", [net.input("x", (2, 1)), net.constant([3, 2, 4], np.int32)], (3, 2, 4))


@case
def gather(net):
    return net("GATHER", [net.input("x", (4, 3)), net.constant([3, 0, 0], np.int32)], (3, 3), axis=0)


@case
def gather_by_batch(net):
    indices = net.constant([[3, 0], [1, 1]], np.int32)
    return net("GATHER", [net.input("x", (2, 4, 3)), indices], (2, 2, 3), axis=1, batch_dims=1)


@case
def gather_nd(net):
    return net("GATHER_ND", [net.input("x", (4, 3, 2)), net.constant([[3, 0], [1, 2]], np.int32)], (2, 2))


@case
def embedding_lookup(net):
    return net("EMBEDDING_LOOKUP", [net.constant([2, 0, 2], np.int32), net.input("x", (4, 3))], (3, 3))


@case
def scatter_nd(net):
    given = [net.constant([[0], [2], [0]], np.int32), net.input("x", (3, 2)), net.constant([4, 2], np.int32)]
    return net("SCATTER_ND", given, (4, 2))


@case
def reverse(net):
    return net("REVERSE_V2", [net.input("x", (2, 3)), net.constant([1], np.int32)], (2, 3))


@case
def reverse_sequence(net):
    lengths = net.constant([2, 4], np.int32)
    return net("REVERSE_SEQUENCE", [net.input("x", (2, 4, 3)), lengths], (2, 4, 3), seq_dim=1, batch_dim=0)


@case
def topk(net):
    outputs = [net.add(Tensor(n, (2, 3), t)) for n, t in (("values", "float32"), ("places", "int32"))]
    return net.node("TOPK_V2", [net.input("x", (2, 7)), net.constant(3, np.int32)], outputs)


@case
def one_hot(net):
    given = [net.constant(v) for v in (np.int32(4), np.float32(2), np.float32(-1))]
    return net("ONE_HOT", [net.input("x", (3,), "int32"), *given], (3, 4), axis=-1)


@case
def depth_to_space(net):
    return net("DEPTH_TO_SPACE", [net.input("x", (1, 2, 3, 8))], (1, 4, 6, 2), block_size=2)


@case
def space_to_depth(net):
    return net("SPACE_TO_DEPTH", [net.input("x", (1, 4, 6, 2))], (1, 2, 3, 8), block_size=2)


@case
def space_to_batch(net):
    given = [net.constant([2, 2], np.int32), net.constant([[0, 1], [2, 0]], np.int32)]
    return net("SPACE_TO_BATCH_ND", [net.input("x", (1, 3, 4, 2)), *given], (4, 2, 3, 2))


@case
def batch_to_space(net):
    given = [net.constant([2, 2], np.int32), net.constant([[0, 1], [2, 0]], np.int32)]
    return net("BATCH_TO_SPACE_ND", [net.input("x", (4, 2, 3, 2)), *given], (1, 3, 4, 2))


def _reduced(operator, keep, axes, shape):
    def make(net):
        axes_of = net.constant(axes, np.int32)
        return net(operator, [net.input("x", (2, 3, 4)), axes_of], shape, keep_dims=keep, options="ReducerOptions")

    CASES[operator.lower()] = make


for _name in "MEAN SUM REDUCE_PROD REDUCE_MAX REDUCE_MIN".split():
    _reduced(_name, _name != "SUM", [1, -1], (2, 1, 1) if _name != "SUM" else (2,))


@case
def arg_max(net):
    return net("ARG_MAX", [net.input("x", (2, 5)), net.constant(1, np.int32)], (2,), "int32", output_type=2)


@case
def cumsum(net):
    return net("CUMSUM", [net.input("x", (2, 5)), net.constant(1, np.int32)], (2, 5), exclusive=True, reverse=True)


def _resize(name, operator, size, **given):
    def make(net):
        size_of = net.constant(size, np.int32)
        kind = "ResizeBilinearOptions" if "BILINEAR" in operator else "ResizeNearestNeighborOptions"
        return net(operator, [net.input("x", (1, 3, 4, 2)), size_of], (1, *size, 2), options=kind, **given)

    CASES[name] = make


for _key, _given in {"": {}, "_corners": {"align_corners": True}, "_half": {"half_pixel_centers": True}}.items():
    _resize(f"resize_bilinear{_key}", "RESIZE_BILINEAR", (6, 7), **_given)
    _resize(f"resize_nearest{_key}", "RESIZE_NEAREST_NEIGHBOR", (5, 7), **_given)


@case
def shape_arithmetic(net):
    """What a network computes of its own sizes is known at import."""
    x = net.input("x", (2, 3, 4))
    shape = net("SHAPE", [x], (3,), "int32", out_type=2)
    bounds = [net.constant([v], np.int32) for v in (0, 1, 1)]
    first = net("STRIDED_SLICE", [shape, *bounds], (), "int32", shrink_axis_mask=1)
    twelve = net("MUL", [net.constant(np.int32(6)), first], (), "int32")
    wanted = net("PACK", [first, twelve], (2,), "int32", values_count=2, axis=0)
    return net("RESHAPE", [x, wanted], (2, 12))


@case
def half_weights(net):
    """Weights in float16 are dequantised in the model."""
    w = net("DEQUANTIZE", [net.constant(random(5, 4), np.float16)], (5, 4))
    return net("FULLY_CONNECTED", [net.input("x", (2, 4)), w, -1], (2, 5))


@case
def hybrid(net):
    """Weights of 8 bits, everything else in floats."""
    w = net.constant(np.arange(-10, 10).reshape(5, 4), np.int8, scale=0.05, zero=0)
    return net("FULLY_CONNECTED", [net.input("x", (2, 4)), w, -1], (2, 5))


def _lstm(name, time_major):
    def make(net):
        steps, size, hidden = 4, 3, 5
        x = net.input("x", (steps, 2, size) if time_major else (2, steps, size))
        inner = [net.constant(random(hidden, size, seed=i)) for i in range(4)]
        recurrent = [net.constant(random(hidden, hidden, seed=i + 4)) for i in range(4)]
        biases = [net.constant(random(hidden, seed=i + 8)) for i in range(4)]
        states = [net.add(Tensor(f"state{i}", (2, hidden), "float32", variable=True)) for i in range(2)]
        given = [x, *inner, *recurrent, -1, -1, -1, *biases, -1, -1, *states, -1, -1, -1, -1]
        shape = (steps, 2, hidden) if time_major else (2, steps, hidden)
        return net(
            "UNIDIRECTIONAL_SEQUENCE_LSTM",
            given,
            shape,
            options="UnidirectionalSequenceLSTMOptions",
            fused_activation_function="TANH",
            cell_clip=10.0,
            time_major=time_major,
        )

    CASES[name] = make


_lstm("lstm", False)
_lstm("lstm_time_major", True)
