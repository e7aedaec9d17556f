"""More narrow forms of well-known networks: generators, decoders, windows of attention, causal convolutions, points."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from onnx import ModelProto, TensorProto

from tests.importers.networks import Net
from tests.networks.models import attention, classifier, excite, plain_conv, pool, swish

# -- pictures


def resnext() -> ModelProto:
    """Groups of channels, an attention of channels, shortcuts through mean pools that round up."""
    net = Net()
    x = pool(net, net.conv(net.input("x", 1, 3, 30, 30), 3, 16, stride=2, act="Relu"))
    inputs = 16
    for outputs, stride in ((16, 1), (24, 2), (32, 2)):
        y = net.conv(x, inputs, outputs, size=1, act="Relu")
        y = net.conv(y, outputs, outputs, stride=stride, group=8, act="Relu")
        y = excite(net, net.conv(y, outputs, outputs, size=1), outputs)
        if stride > 1:
            x = pool(net, x, "AveragePool", size=2, stride=2, pad=0, ceil_mode=1, count_include_pad=0)
        skip = x if inputs == outputs else net.conv(x, inputs, outputs, size=1)
        x, inputs = net("Relu", net("Add", y, skip)), outputs
    return net.model(classifier(net, x, inputs))


def convnext() -> ModelProto:
    """Wide depthwise windows, norms over the channels as last axis, a factor for each channel of a branch."""
    net, width = Net(), 16
    x = plain_conv(net, net.input("x", 1, 3, 32, 32), 3, width, (4, 4), strides=[4, 4])
    for _ in range(2):
        y = plain_conv(net, x, width, width, (7, 7), pads=[3] * 4, group=width)
        y = net.layer_norm(net("Transpose", y, perm=[0, 2, 3, 1]), width)
        y = net.dense(net.gelu(net.dense(y, width, 4 * width)), 4 * width, width)
        y = net("Mul", y, net.weights(width, scale=0.5))
        x = net("Add", x, net("Transpose", y, perm=[0, 3, 1, 2]))
    mean = net("ReduceMean", x, axes=[2, 3], keepdims=0)
    return net.model(net("Gemm", net.layer_norm(mean, width), net.weights(10, width), net.weights(10), transB=1))


def shifted_windows() -> ModelProto:
    """As Swin: attention in windows of an image, the second time of the image turned by half a window."""
    net, width, heads, side, window = Net(), 16, 2, 8, 4
    count, steps = (side // window) ** 2, window * window
    x = plain_conv(net, net.input("x", 1, 3, 32, 32), 3, width, (4, 4), strides=[4, 4])
    x = net("Transpose", x, perm=[0, 2, 3, 1])

    def rolled(x: str, by: int) -> str:
        for axis in (1, 2):
            parts = [
                net("Slice", x, net.ints(a), net.ints(b), net.ints(axis))
                for a, b in ((by % side, side), (0, by % side))
            ]
            x = net("Concat", *parts, axis=axis)
        return x

    def windows(x: str) -> str:
        y = net("Reshape", x, net.ints(1, side // window, window, side // window, window, width))
        return net("Reshape", net("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), net.ints(count, steps, width))

    def joined(x: str) -> str:
        y = net("Reshape", x, net.ints(1, side // window, side // window, window, window, width))
        return net("Reshape", net("Transpose", y, perm=[0, 1, 3, 2, 4, 5]), net.ints(1, side, side, width))

    for shift in (0, window // 2):
        y = windows(rolled(net.layer_norm(x, width), shift) if shift else net.layer_norm(x, width))
        near = net.weights(1, heads, steps, steps, scale=0.3)
        y = joined(attention(net, y, steps, width, heads, near, count))
        x = net("Add", x, rolled(y, -shift) if shift else y)
        y = net.dense(net.gelu(net.dense(net.layer_norm(x, width), width, 2 * width)), 2 * width, width)
        x = net("Add", x, y)
    return net.model(net("ReduceMean", net.layer_norm(x, width), axes=[1, 2], keepdims=0))


def mixer() -> ModelProto:
    """Dense layers over the channels, and over the places."""
    net, width, places = Net(), 16, 16
    x = plain_conv(net, net.input("x", 2, 3, 16, 16), 3, width, (4, 4), strides=[4, 4])
    x = net("Transpose", net("Reshape", x, net.ints(2, width, places)), perm=[0, 2, 1])
    for _ in range(2):
        y = net("Transpose", net.layer_norm(x, width), perm=[0, 2, 1])
        y = net.dense(net.gelu(net.dense(y, places, 24)), 24, places)
        x = net("Add", x, net("Transpose", y, perm=[0, 2, 1]))
        x = net("Add", x, net.dense(net.gelu(net.dense(net.layer_norm(x, width), width, 32)), 32, width))
    return net.model(net("ReduceMean", x, axes=[1], keepdims=0))


def pyramid() -> ModelProto:
    """A feature pyramid, and pools of several sizes side by side as PSPNet has them."""
    net, width = Net(), 12
    x, levels = net.conv(net.input("x", 1, 3, 32, 32), 3, 8, stride=2, act="Relu"), []
    for inputs, outputs in ((8, 12), (12, 16), (16, 24)):
        x = net.conv(x, inputs, outputs, stride=2, act="Relu")
        levels.append((x, outputs))
    top = [levels[0][0]]
    for bins in (1, 2, 4):
        y = pool(net, levels[0][0], "AveragePool", size=8 // bins, stride=8 // bins, pad=0)
        y = net.conv(y, 12, 4, size=1, act="Relu")
        top.append(net("Resize", y, "", "", net.ints(1, 4, 8, 8), mode="linear"))
    merged = ""
    found = [net.conv(net("Concat", *top, axis=1), 24, 6, size=1, norm=False)]
    for level, channels in reversed(levels):
        side = net.conv(level, channels, width, size=1)
        if merged:
            merged = net("Resize", merged, "", net.constant([1, 1, 2, 2]), mode="nearest")
        merged = net("Add", side, merged) if merged else side
        found.append(net("Sigmoid", net.conv(merged, width, 6, norm=False)))
    return net.model(*found)


def pose() -> ModelProto:
    """An hourglass; the expected place of each joint, from a softmax over the whole map."""
    net, joints, side = Net(), 5, 16
    x = net.conv(net.input("x", 1, 3, 32, 32), 3, 12, stride=2, act="Relu")
    down = net.conv(pool(net, x, size=2, pad=0), 12, 16, act="Relu")
    low = net.conv(pool(net, down, size=2, pad=0), 16, 16, act="Relu")
    up = net("Resize", low, "", net.constant([1, 1, 2, 2]), mode="nearest")
    up = net.conv(net("Add", up, down), 16, 12, act="Relu")
    x = net("Add", x, net("Resize", up, "", net.constant([1, 1, 2, 2]), mode="linear"))
    maps = net.conv(x, 12, joints, size=1, norm=False)
    flat = net("Softmax", net("Reshape", maps, net.ints(1, joints, side * side)), axis=-1)
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(side * side, 2)
    return net.model(net("MatMul", flat, net.constant(grid / side)), maps)


def gan() -> ModelProto:
    """A generator from noise, and one from pictures whose norms are of single pictures."""
    net = Net()
    x = net("Relu", net("Gemm", net.input("z", 2, 12), net.weights(256, 12), net.weights(256, scale=0.1), transB=1))
    x = net("Reshape", x, net.ints(2, 16, 4, 4))
    for inputs, outputs in ((16, 12), (12, 8)):
        w = net.weights(inputs, outputs, 4, 4)
        x = net("ConvTranspose", x, w, kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4)
        mean, bias = net.weights(outputs, scale=0.1), net.weights(outputs, scale=0.1)
        ones, var = net.constant(np.ones(outputs)), net.constant(1 + net.random.random(outputs))
        x = net("LeakyRelu", net("BatchNormalization", x, ones, bias, mean, var), alpha=0.2)
    w = net.weights(8, 6, 3, 3)
    x = net(
        "ConvTranspose",
        x,
        w,
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1] * 4,
        output_padding=[1, 1],
        dilations=[1, 1],
    )
    x = net("Relu", net("InstanceNormalization", x, net.constant(np.ones(6)), net.weights(6, scale=0.1)))
    x = net("Pad", x, net.ints(0, 0, 3, 3, 0, 0, 3, 3), mode="reflect")
    return net.model(net("Tanh", plain_conv(net, x, 6, 3, (7, 7))))


def text_lines() -> ModelProto:
    """Windows, then a recurrence in both directions over the columns, then the logarithms of likely letters."""
    net, hidden = Net(), 12
    x = pool(net, net.conv(net.input("x", 1, 1, 16, 32), 1, 8, act="Relu"), size=2, pad=0)
    x = pool(net, net.conv(x, 8, 12, act="Relu"), size=2, pad=0)
    x = net("MaxPool", x, kernel_shape=[4, 1], strides=[4, 1])
    x = net("Transpose", net("Squeeze", x, net.ints(2)), perm=[2, 0, 1])
    w, r = net.weights(2, 4 * hidden, 12, scale=0.2), net.weights(2, 4 * hidden, hidden, scale=0.2)
    y = net("LSTM", x, w, r, net.weights(2, 8 * hidden, scale=0.1), hidden_size=hidden, direction="bidirectional")
    y = net("Reshape", net("Transpose", y, perm=[0, 2, 1, 3]), net.ints(8, 1, 2 * hidden))
    likely = net("LogSoftmax", net.dense(y, 2 * hidden, 11), axis=-1)
    return net.model(likely, net("ArgMax", likely, axis=-1, keepdims=0))


# -- sequences, tables, points


def causal_convolutions() -> ModelProto:
    """As TCN and WaveNet: dilated windows over time that see the past alone, gates, sums of what is skipped."""
    net, width = Net(), 12
    x = plain_conv(net, net.input("x", 2, 4, 24), 4, width, (1,))
    skips = []
    for d in (1, 2, 4):
        y = net("Pad", x, net.ints(0, 0, d, 0, 0, 0), mode="constant")
        gate = net("Sigmoid", plain_conv(net, y, width, width, (2,), dilations=[d]))
        y = net("Mul", net("Tanh", plain_conv(net, y, width, width, (2,), dilations=[d])), gate)
        skips.append(plain_conv(net, y, width, 8, (1,)))
        x = net("Add", x, plain_conv(net, y, width, width, (1,)))
    x = net("Relu", net("Sum", *skips))
    return net.model(net("Softmax", plain_conv(net, x, 8, 6, (1,)), axis=1))


def conformer() -> ModelProto:
    """Gated linear units, windows over time for each channel, and attention between two half steps."""
    net, width, steps = Net(), 16, 12
    x = net.input("x", 1, steps, width)

    def half(x: str) -> str:
        y = net.dense(swish(net, net.dense(net.layer_norm(x, width), width, 32)), 32, width)
        return net("Add", x, net("Mul", y, net.constant(0.5)))

    x = half(x)
    x = net("Add", x, attention(net, net.layer_norm(x, width), steps, width, 2))
    y = net("Transpose", net.layer_norm(x, width), perm=[0, 2, 1])
    left, right = net("Split", plain_conv(net, y, width, 2 * width, (1,)), outputs=2, axis=1)
    y = net("Mul", left, net("Sigmoid", right))
    y = swish(net, plain_conv(net, y, width, width, (5,), pads=[2, 2], group=width))
    x = net("Add", x, net("Transpose", plain_conv(net, y, width, width, (1,)), perm=[0, 2, 1]))
    return net.model(net.layer_norm(half(x), width))


def decoder() -> ModelProto:
    """Words that see those before them, and what another sequence says."""
    net, words, width, heads, steps, other = Net(), 40, 16, 2, 8, 6
    tokens = net.input("tokens", 1, steps, kind=TensorProto.INT32)
    memory = net.input("memory", 1, other, width)
    x = net("Add", net("Gather", net.weights(words, width, scale=1), tokens), net.weights(1, steps, width, scale=0.5))
    later = net.constant(np.triu(np.full((1, 1, steps, steps), -100.0), 1))
    for _ in range(2):
        x = net.layer_norm(net("Add", x, attention(net, x, steps, width, heads, later)), width)
        query = net("Reshape", net.dense(x, width, width), net.ints(1, steps, heads, width // heads))
        keys, values = (net("Reshape", net.dense(memory, width, width), net.ints(1, other, heads, 8)) for _ in "kv")
        scores = net("MatMul", net("Transpose", query, perm=[0, 2, 1, 3]), net("Transpose", keys, perm=[0, 2, 3, 1]))
        share = net("Softmax", net("Mul", scores, net.constant(8**-0.5)), axis=-1)
        seen = net("Transpose", net("MatMul", share, net("Transpose", values, perm=[0, 2, 1, 3])), perm=[0, 2, 1, 3])
        x = net.layer_norm(
            net("Add", x, net.dense(net("Reshape", seen, net.ints(1, steps, width)), width, width)), width
        )
        y = net.dense(net("Relu", net.dense(x, width, 32)), 32, width)
        x = net.layer_norm(net("Add", x, y), width)
    return net.model(net("Softmax", net.dense(x, width, words), axis=-1))


def language_model() -> ModelProto:
    """As Llama: norms by the root of the mean square, turned positions, gated dense layers, a mask by choice."""
    net, width, heads, steps = Net(), 16, 2, 8
    size = width // heads
    x = net.input("x", 1, steps, width)
    angles = np.arange(steps)[:, None] * 10.0 ** -np.arange(size // 2)[None]
    cosine, sine = (net.constant(np.concatenate([f(angles)] * 2, -1)[None, None]) for f in (np.cos, np.sin))
    past = net.constant(np.tril(np.ones((1, 1, steps, steps), bool)), bool)

    def norm(x: str) -> str:
        mean = net("ReduceMean", net("Pow", x, net.constant(2.0)), axes=[-1], keepdims=1)
        root = net("Sqrt", net("Add", mean, net.constant(1e-5)))
        return net("Mul", net.constant(1 + 0.1 * net.random.standard_normal(width)), net("Div", x, root))

    def turned(x: str) -> str:
        a, b = net("Split", x, net.ints(size // 2, size // 2), outputs=2, axis=-1)
        return net("Add", net("Mul", x, cosine), net("Mul", net("Concat", net("Neg", b), a, axis=-1), sine))

    for _ in range(2):
        y = norm(x)
        q, k, v = (
            net(
                "Transpose",
                net("Reshape", net.dense(y, width, width), net.ints(1, steps, heads, size)),
                perm=[0, 2, 1, 3],
            )
            for _ in "qkv"
        )
        scores = net("MatMul", turned(q), net("Transpose", turned(k), perm=[0, 1, 3, 2]))
        scores = net("Where", past, net("Mul", scores, net.constant(size**-0.5)), net.constant(-100.0))
        seen = net("Transpose", net("MatMul", net("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
        x = net("Add", x, net.dense(net("Reshape", seen, net.ints(1, steps, width)), width, width))
        y = norm(x)
        y = net("Mul", swish(net, net.dense(y, width, 32)), net.dense(y, width, 32))
        x = net("Add", x, net.dense(y, 32, width))
    return net.model(norm(x))


def wide_and_deep() -> ModelProto:
    """Tables of embeddings beside numbers; a wide part of sums over words."""
    net, rows, width = Net(13), 4, 6
    words = net.input("words", rows, 5, kind=TensorProto.INT32)
    numbers = net.input("numbers", rows, 7)
    deep = net("Gather", net.weights(40, width, scale=1), words)
    mean = net("ReduceMean", deep, axes=[1], keepdims=0)
    most = net("ReduceMax", deep, axes=[1], keepdims=0)
    first = net("Gather", deep, net.constant(0, np.int64), axis=1)
    x = net("Concat", mean, most, first, net("Log", net("Add", net("Abs", numbers), net.constant(1.0))), axis=1)
    for inputs, outputs in ((25, 16), (16, 8)):
        x = net("Relu", net("Gemm", x, net.weights(outputs, inputs), net.weights(outputs, scale=0.1), transB=1))
    wide = net("ReduceSum", net("Gather", net.weights(40, 1, scale=1), words), net.ints(1), keepdims=0)
    x = net("Gemm", net("Concat", x, numbers, axis=1), net.weights(1, 15), net.weights(1, scale=0.1), transB=1)
    return net.model(net("Sigmoid", net("Add", x, wide)))


def points() -> ModelProto:
    """As PointNet: a matrix that turns the points comes from the points; their largest features."""
    net, count = Net(), 20
    given = net.input("x", 2, 3, count)

    def features(x: str, sizes: tuple[int, ...]) -> str:
        for inputs, outputs in pairwise(sizes):
            x = net("Relu", plain_conv(net, x, inputs, outputs, (1,)))
        return x

    most = net("ReduceMax", features(given, (3, 8, 16)), axes=[2], keepdims=0)
    turn = net("Gemm", most, net.weights(9, 16), net.constant(np.eye(3).reshape(-1)), transB=1)
    turned = net("MatMul", net("Transpose", given, perm=[0, 2, 1]), net("Reshape", turn, net.ints(2, 3, 3)))
    local = features(net("Transpose", turned, perm=[0, 2, 1]), (3, 8, 16))
    whole = net("Expand", net("ReduceMax", local, axes=[2], keepdims=1), net.ints(2, 16, count))
    x = features(net("Concat", local, whole, axis=1), (32, 16))
    return net.model(net("LogSoftmax", net("Transpose", plain_conv(net, x, 16, 4, (1,)), perm=[0, 2, 1]), axis=-1))


FURTHER = {
    made.__name__: made
    for made in (
        *(resnext, convnext, shifted_windows, mixer, pyramid, pose, gan, text_lines),
        *(causal_convolutions, conformer, decoder, language_model, wide_and_deep, points),
    )
}
"""By name."""
