"""Narrow forms of well-known networks, as ONNX models with random weights: the layers of the real ones, few channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from onnx import ModelProto, TensorProto

from tests.importers.networks import NETWORKS as SMALL
from tests.importers.networks import Net

# -- parts


def hard_swish(net: Net, x: str) -> str:
    """As exporters without the operator write it."""
    clipped = net("Clip", net("Add", x, net.constant(3.0)), net.constant(0.0), net.constant(6.0))
    return net("Div", net("Mul", x, clipped), net.constant(6.0))


def swish(net: Net, x: str) -> str:
    return net("Mul", x, net("Sigmoid", x))


def relu6(net: Net, x: str) -> str:
    return net("Clip", x, net.constant(0.0), net.constant(6.0))


def plain_conv(net: Net, x: str, inputs: int, outputs: int, size: Sequence[int], **attributes: object) -> str:
    """A convolution with a bias, window `size` of any number of dimensions."""
    w = net.weights(outputs, inputs // int(attributes.get("group", 1)), *size)  # type: ignore[call-overload]
    return net("Conv", x, w, net.weights(outputs, scale=0.1), kernel_shape=list(size), **attributes)


def excite(net: Net, x: str, channels: int, gate: str = "Sigmoid") -> str:
    """Squeeze and excitation."""
    y = net.conv(net("GlobalAveragePool", x), channels, channels // 2, size=1, act="Relu", norm=False)
    return net("Mul", x, net(gate, net.conv(y, channels // 2, channels, size=1, norm=False)))


def classifier(net: Net, x: str, channels: int, classes: int = 10) -> str:
    flat = net("Flatten", net("GlobalAveragePool", x))
    return net("Gemm", flat, net.weights(classes, channels), net.weights(classes, scale=0.1), transB=1)


def pool(net: Net, x: str, kind: str = "MaxPool", size: int = 3, stride: int = 2, pad: int = 1, **more: int) -> str:
    return net(kind, x, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4, **more)


# -- pictures


def resnet18(side: int = 32, widths: Sequence[int] = (8, 16, 24, 32), classes: int = 10) -> ModelProto:
    """Two blocks of each width."""
    net, inputs = Net(), widths[0]
    x = pool(net, net.conv(net.input("x", 1, 3, side, side), 3, inputs, size=7, stride=2, act="Relu"))
    for outputs, stride in ((w, s) for w in widths for s in (1 if w == widths[0] else 2, 1)):
        y = net.conv(net.conv(x, inputs, outputs, stride=stride, act="Relu"), outputs, outputs)
        skip = x if stride == 1 and inputs == outputs else net.conv(x, inputs, outputs, size=1, stride=stride)
        x, inputs = net("Relu", net("Add", y, skip)), outputs
    return net.model(classifier(net, x, inputs, classes))


def mobilenet_v2(
    side: int = 32,
    first: int = 8,
    blocks: Sequence[tuple[int, int, int]] = ((1, 8, 1), (6, 12, 2), (6, 12, 1), (6, 16, 2), (6, 16, 1), (6, 20, 1)),
    last: int = 40,
    classes: int = 10,
    likely: bool = True,
) -> ModelProto:
    """Blocks by their expansion, channels and stride between a convolution of `first` and one of `last` channels.
    `likely`: the outputs are probabilities."""
    net, inputs = Net(13), first
    x = relu6(net, net.conv(net.input("x", 1, 3, side, side), 3, first, stride=2))
    for expand, outputs, stride in blocks:
        hidden = inputs * expand
        y = relu6(net, net.conv(x, inputs, hidden, size=1)) if expand > 1 else x
        y = relu6(net, net.conv(y, hidden, hidden, stride=stride, group=hidden))
        y = net.conv(y, hidden, outputs, size=1)
        x = net("Add", x, y) if stride == 1 and inputs == outputs else y
        inputs = outputs
    out = classifier(net, relu6(net, net.conv(x, inputs, last, size=1)), last, classes)
    return net.model(net("Softmax", out, axis=1) if likely else out)


def mobilenet_v3() -> ModelProto:
    net = Net(14)
    x = hard_swish(net, net.conv(net.input("x", 1, 3, 32, 32), 3, 8, stride=2))
    for outputs, size, act in ((8, 3, "Relu"), (12, 5, "HardSwish")):
        inputs = 8
        y = net.conv(x, inputs, 24, size=1, act=act)
        y = excite(net, net.conv(y, 24, 24, size=size, stride=2, group=24, act=act), 24, "HardSigmoid")
        x = net.conv(y, 24, outputs, size=1)
    return net.model(classifier(net, x, 12))


def efficientnet_b0() -> ModelProto:
    net = Net()
    x = swish(net, net.conv(net.input("x", 1, 3, 32, 32), 3, 8, stride=2))
    inputs = 8
    for expand, outputs, stride, size in ((1, 8, 1, 3), (6, 12, 2, 3), (6, 12, 1, 3), (6, 16, 2, 5), (6, 16, 1, 5)):
        hidden = inputs * expand
        y = swish(net, net.conv(x, inputs, hidden, size=1)) if expand > 1 else x
        y = excite(net, swish(net, net.conv(y, hidden, hidden, size=size, stride=stride, group=hidden)), hidden)
        y = net.conv(y, hidden, outputs, size=1)
        x = net("Add", y, x) if stride == 1 and inputs == outputs else y
        inputs = outputs
    return net.model(classifier(net, swish(net, net.conv(x, inputs, 32, size=1)), 32))


def shufflenet_v2() -> ModelProto:
    net, half = Net(), 12

    def shuffled(a: str, b: str, size: int) -> str:
        joined = net("Reshape", net("Concat", a, b, axis=1), net.ints(1, 2, half, size, size))
        return net("Reshape", net("Transpose", joined, perm=[0, 2, 1, 3, 4]), net.ints(1, 2 * half, size, size))

    def branch(x: str, inputs: int, stride: int) -> str:
        y = net.conv(x, inputs, half, size=1, act="Relu")
        return net.conv(net.conv(y, half, half, stride=stride, group=half), half, half, size=1, act="Relu")

    x = pool(net, net.conv(net.input("x", 1, 3, 32, 32), 3, 8, stride=2, act="Relu"))
    skip = net.conv(net.conv(x, 8, 8, stride=2, group=8), 8, half, size=1, act="Relu")
    x = shuffled(skip, branch(x, 8, 2), 4)
    for _ in range(2):
        kept, other = net("Split", x, net.ints(half, half), outputs=2, axis=1)
        x = shuffled(kept, branch(other, half, 1), 4)
    return net.model(classifier(net, net.conv(x, 2 * half, 32, size=1, act="Relu"), 32))


def squeezenet() -> ModelProto:
    net = Net()
    x = plain_conv(net, net.input("x", 2, 3, 33, 33), 3, 16, (3, 3), strides=[2, 2])
    x = pool(net, net("Relu", x), pad=0, ceil_mode=1)
    inputs = 16
    for squeeze, outputs in ((4, 8), (4, 8), (6, 12)):
        y = net("Relu", plain_conv(net, x, inputs, squeeze, (1, 1)))
        left = net("Relu", plain_conv(net, y, squeeze, outputs, (1, 1)))
        right = net("Relu", plain_conv(net, y, squeeze, outputs, (3, 3), pads=[1] * 4))
        x, inputs = net("Concat", left, right, axis=1), 2 * outputs
    x = pool(net, x, pad=0, ceil_mode=1)
    x = net("Relu", plain_conv(net, x, inputs, 10, (1, 1)))
    return net.model(net("Softmax", net("Flatten", net("GlobalAveragePool", x)), axis=1))


def inception() -> ModelProto:
    net = Net()
    x = net.conv(net.input("x", 1, 3, 24, 24), 3, 12, stride=2, act="Relu")
    x = net("LRN", x, size=5, alpha=1e-3, beta=0.75, bias=1.0)
    for inputs in (12, 28):
        wide = net.conv(x, inputs, 8, size=1, act="Relu")
        tall = plain_conv(net, net.conv(x, inputs, 6, size=1, act="Relu"), 6, 8, (1, 7), pads=[0, 3, 0, 3])
        tall = net("Relu", plain_conv(net, tall, 8, 8, (7, 1), pads=[3, 0, 3, 0]))
        dilated = plain_conv(net, x, inputs, 4, (3, 3), pads=[2] * 4, dilations=[2, 2])
        mean = pool(net, x, "AveragePool", stride=1, count_include_pad=0)
        mean = net.conv(mean, inputs, 8, size=1, act="Relu")
        x = net("Concat", wide, tall, net("LeakyRelu", dilated, alpha=0.1), mean, axis=1)
    x = pool(net, x, "AveragePool", size=2, stride=2, pad=0, ceil_mode=1, count_include_pad=1)
    return net.model(classifier(net, x, 28))


def densenet() -> ModelProto:
    net, growth = Net(), 6
    x, channels = net.conv(net.input("x", 1, 3, 16, 16), 3, 12, norm=False), 12

    def normed(x: str, channels: int) -> str:
        mean, bias = net.weights(channels, scale=0.1), net.weights(channels, scale=0.1)
        ones, var = net.constant(np.ones(channels)), net.constant(1 + net.random.random(channels))
        return net("Relu", net("BatchNormalization", x, ones, bias, mean, var))

    for _ in range(2):
        for _ in range(3):
            y = net.conv(normed(x, channels), channels, 12, size=1, norm=False)
            y = net.conv(normed(y, 12), 12, growth, norm=False)
            x, channels = net("Concat", x, y, axis=1), channels + growth
        x = net.conv(normed(x, channels), channels, channels // 2, size=1, norm=False)
        x, channels = pool(net, x, "AveragePool", size=2, pad=0), channels // 2
    return net.model(classifier(net, normed(x, channels), channels))


# -- detection, segmentation, pictures from pictures


def yolo(side: int = 32, stem: Sequence[int] = (8,), fine: int = 16, deep: int = 24, classes: int = 4) -> ModelProto:
    """As YOLOv5: a stem of convolutions, cross-stage parts, pyramid pooling, upsampling, two heads, of so many channels."""
    net, anchors = Net(), 3

    def act(x: str) -> str:
        return swish(net, x)

    def stage(x: str, inputs: int, outputs: int) -> str:
        left = act(net.conv(x, inputs, outputs // 2, size=1))
        inner = act(net.conv(act(net.conv(left, outputs // 2, outputs // 2, size=1)), outputs // 2, outputs // 2))
        right = act(net.conv(x, inputs, outputs // 2, size=1))
        joined = net("Concat", net("Add", left, inner), right, axis=1)
        return act(net.conv(joined, outputs, outputs, size=1))

    def twice(x: str) -> str:
        ratios = net.constant([1, 1, 2, 2])
        return net("Resize", x, "", ratios, mode="nearest", coordinate_transformation_mode="asymmetric")

    x, inputs = net.input("x", 1, 3, side, side), 3
    for outputs in (*stem, fine):
        x, inputs = act(net.conv(x, inputs, outputs, stride=2)), outputs
    lower = stage(x, fine, fine)
    middle = stage(act(net.conv(lower, fine, deep, stride=2)), deep, deep)
    y = act(net.conv(middle, deep, deep // 2, size=1))
    pools = [y]
    for _ in range(3):
        pools.append(pool(net, pools[-1], size=5, stride=1, pad=2))
    high = act(net.conv(net("Concat", *pools, axis=1), 2 * deep, deep, size=1))
    up = stage(net("Concat", twice(high), lower, axis=1), deep + fine, fine)
    found, cells = [], side >> (1 + len(stem))
    for level, channels, size in ((up, fine, cells), (high, deep, cells // 2)):
        raw = net.conv(level, channels, anchors * (5 + classes), size=1, norm=False)
        rows = net("Reshape", raw, net.ints(1, anchors, 5 + classes, size, size))
        rows = net("Sigmoid", net("Transpose", rows, perm=[0, 1, 3, 4, 2]))
        xy, wh, rest = net("Split", rows, net.ints(2, 2, 1 + classes), outputs=3, axis=4)
        grid = np.stack(np.meshgrid(np.arange(size), np.arange(size)), -1)[None, None] - 0.5
        xy = net("Mul", net("Add", net("Mul", xy, net.constant(2.0)), net.constant(grid)), net.constant(side / size))
        wh = net("Mul", net("Pow", net("Mul", wh, net.constant(2.0)), net.constant(2.0)), net.constant(8.0))
        found.append(net("Reshape", net("Concat", xy, wh, rest, axis=4), net.ints(1, -1, 5 + classes)))
    return net.model(net("Concat", *found, axis=1))


def ssd() -> ModelProto:
    """Boxes of two levels and a suppression that chooses among them."""
    net, classes = Net(), 3
    x = net.conv(net.input("x", 1, 3, 16, 16), 3, 12, stride=2, act="Relu")
    boxes, scores = [], []
    for size in (8, 4):
        for found, per in ((boxes, 4), (scores, classes)):
            y = net("Transpose", net.conv(x, 12, 2 * per, norm=False), perm=[0, 2, 3, 1])
            found.append(net("Reshape", y, net.ints(1, 2 * size * size, per)))
        x = net.conv(x, 12, 12, stride=2, act="Relu")
    all_boxes = net("Sigmoid", net("Concat", *boxes, axis=1))
    all_scores = net("Softmax", net("Concat", *scores, axis=1), axis=-1)
    flat = net("Transpose", all_scores, perm=[0, 2, 1])
    _, best = net("TopK", net("ReduceMax", all_scores, axes=[-1], keepdims=0), net.ints(10), outputs=2, axis=-1)
    return net.model(all_boxes, flat, best, net("ArgMax", all_scores, axis=-1, keepdims=0))


def unet() -> ModelProto:
    net, widths = Net(), (8, 12, 16)
    x, inputs, skips = net.input("x", 1, 1, 32, 32), 1, []
    for width in widths:
        x = net.conv(net.conv(x, inputs, width, act="Relu"), width, width, act="Relu")
        skips.append(x)
        x, inputs = pool(net, x, size=2, pad=0), width
    x = net.conv(x, inputs, 24, act="Relu")
    inputs = 24
    for width, skip in zip(widths[::-1], skips[::-1], strict=True):
        w = net.weights(inputs, width, 2, 2)
        up = net("ConvTranspose", x, w, net.weights(width, scale=0.1), kernel_shape=[2, 2], strides=[2, 2])
        x, inputs = net.conv(net("Concat", skip, up, axis=1), 2 * width, width, act="Relu"), width
    return net.model(net("Sigmoid", net.conv(x, inputs, 2, size=1, norm=False)))


def deeplab() -> ModelProto:
    """Dilated windows, a picture-wide branch, bilinear resizing, a label of each pixel."""
    net = Net()
    x = net.conv(net.conv(net.input("x", 1, 3, 32, 32), 3, 8, stride=2, act="Relu"), 8, 16, stride=2, act="Relu")
    parts = [net.conv(x, 16, 8, size=1, act="Relu")]
    for d in (2, 3):
        y = plain_conv(net, x, 16, 16, (3, 3), pads=[d] * 4, dilations=[d, d], group=16)
        parts.append(net.conv(net("Relu", y), 16, 8, size=1, act="Relu"))
    wide = net.conv(net("GlobalAveragePool", x), 16, 8, size=1, act="Relu")

    def sized(x: str, size: int, mode: str) -> str:
        sizes = net.ints(1, 8 if size == 8 else 5, size, size)
        return net("Resize", x, "", "", sizes, mode="linear", coordinate_transformation_mode=mode)

    parts.append(sized(wide, 8, "half_pixel"))
    x = net.conv(net("Concat", *parts, axis=1), 32, 16, act="Relu")
    y = sized(net.conv(x, 16, 5, size=1, norm=False), 32, "align_corners")
    return net.model(net("ArgMax", y, axis=1, keepdims=1), net("Softmax", y, axis=1))


def style_transfer() -> ModelProto:
    net = Net()

    def block(x: str, inputs: int, outputs: int, size: int, stride: int = 1, act: str = "Relu") -> str:
        pad = size // 2
        x = net("Pad", x, net.ints(0, 0, pad, pad, 0, 0, pad, pad), mode="reflect")
        y = plain_conv(net, x, inputs, outputs, (size, size), strides=[stride] * 2)
        gain = net.constant(1 + 0.1 * net.random.standard_normal(outputs))
        y = net("InstanceNormalization", y, gain, net.weights(outputs, scale=0.1))
        return net(act, y) if act else y

    x = block(net.input("x", 1, 3, 24, 24), 3, 8, 9)
    x = block(block(x, 8, 12, 3, 2), 12, 16, 3, 2)
    for _ in range(2):
        x = net("Add", x, block(block(x, 16, 16, 3), 16, 16, 3, act=""))
    for inputs, outputs in ((16, 12), (12, 8)):
        x = net("Resize", x, "", net.constant([1, 1, 2, 2]), mode="nearest")
        x = block(x, inputs, outputs, 3)
    return net.model(net("Tanh", plain_conv(net, x, 8, 3, (9, 9), pads=[4] * 4)))


def super_resolution() -> ModelProto:
    net = Net(13)
    given = net.input("x", 1, 1, 16, 16)
    x = net("PRelu", plain_conv(net, given, 1, 16, (5, 5), pads=[2] * 4), net.weights(16, 1, 1, scale=0.2))
    x = net("PRelu", plain_conv(net, x, 16, 12, (3, 3), pads=[1] * 4), net.weights(12, 1, 1, scale=0.2))
    x = net("DepthToSpace", plain_conv(net, x, 12, 9, (3, 3), pads=[1] * 4), blocksize=3, mode="CRD")
    up = net("Resize", given, "", net.constant([1, 1, 3, 3]), mode="linear")
    return net.model(net("Clip", net("Add", x, up), net.constant(-1.0), net.constant(1.0)))


def autoencoder() -> ModelProto:
    """A variational one: exponentials of half variances, transposed windows with a step, groups of channels normed."""
    net = Net(18)
    x = net("Elu", plain_conv(net, net.input("x", 2, 3, 16, 16), 3, 8, (4, 4), strides=[2, 2], pads=[1] * 4), alpha=1.0)
    gain, bias = net.constant(np.ones(4)), net.constant(np.zeros(4))
    normed = net("InstanceNormalization", net("Reshape", x, net.ints(2, 4, -1)), gain, bias)
    x = net("Reshape", normed, net.ints(2, 8, 8, 8))
    x = net("Softplus", plain_conv(net, x, 8, 12, (3, 3), strides=[2, 2], pads=[0, 0, 1, 1]))
    flat = net("Flatten", x)
    mean, spread = (net("Gemm", flat, net.weights(6, 192), net.weights(6, scale=0.1), transB=1) for _ in "mv")
    spread = net("Exp", net("Mul", spread, net.constant(0.5)))
    z = net("Add", mean, net("Mul", spread, net.weights(1, 6, scale=0.5)))
    x = net(
        "Reshape", net("Gemm", z, net.weights(192, 6), net.weights(192, scale=0.1), transB=1), net.ints(2, 12, 4, 4)
    )
    for inputs, outputs in ((12, 8), (8, 3)):
        w = net.weights(inputs, outputs, 4, 4)
        x = net("ConvTranspose", x, w, net.weights(outputs), kernel_shape=[4, 4], strides=[2, 2], pads=[1] * 4)
        x = net("Relu", x) if outputs > 3 else net("Sigmoid", x)
    return net.model(x, mean)


def volumes() -> ModelProto:
    """Windows over volumes, and what comes back from them."""
    net = Net()
    x = net("Relu", plain_conv(net, net.input("x", 1, 2, 6, 10, 10), 2, 6, (3, 3, 3), pads=[1] * 6))
    y = net("MaxPool", x, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    y = net("Relu", plain_conv(net, y, 6, 8, (3, 3, 3), pads=[1] * 6))
    w = net.weights(8, 6, 2, 2, 2)
    up = net("ConvTranspose", y, w, net.weights(6, scale=0.1), kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    x = net("Add", x, up)
    mean = net("AveragePool", x, kernel_shape=[2, 2, 2], strides=[2, 2, 2])
    flat = net("ReduceMean", mean, axes=[2, 3, 4], keepdims=0)
    return net.model(net("Gemm", flat, net.weights(5, 6), net.weights(5, scale=0.1), transB=1))


# -- sequences


def attention(net: Net, x: str, steps: int, width: int, heads: int, mask: str = "", batch: int = 1) -> str:
    def split(*perm: int) -> str:
        y = net("Reshape", net.dense(x, width, width), net.ints(batch, steps, heads, width // heads))
        return net("Transpose", y, perm=list(perm))

    query, key, value = split(0, 2, 1, 3), split(0, 2, 3, 1), split(0, 2, 1, 3)
    scores = net("Div", net("MatMul", query, key), net.constant(np.sqrt(width // heads)))
    scores = net("Add", scores, mask) if mask else scores
    seen = net("MatMul", net("Softmax", scores, axis=-1), value)
    joined = net("Reshape", net("Transpose", seen, perm=[0, 2, 1, 3]), net.ints(batch, steps, width))
    return net.dense(joined, width, width)


def bert(
    steps: int = 16, width: int = 32, heads: int = 4, layers: int = 2, words: int = 40, wide: int = 2
) -> ModelProto:
    """Embedded tokens with positions, a mask, layers whose inner width is `wide` widths, and a head on the first token."""
    net = Net(13)
    tokens = net.input("tokens", 1, steps, kind=TensorProto.INT32)
    seen = net("Reshape", net.input("mask", 1, steps), net.ints(1, 1, 1, steps))
    mask = net("Mul", net("Sub", net.constant(1.0), seen), net.constant(-100.0))
    x = net("Add", net("Gather", net.weights(words, width, scale=1), tokens), net.weights(1, steps, width, scale=1))
    x = net.layer_norm(x, width)
    for _ in range(layers):
        x = net.layer_norm(net("Add", x, attention(net, x, steps, width, heads, mask)), width)
        y = net.dense(net.gelu(net.dense(x, width, wide * width)), wide * width, width)
        x = net.layer_norm(net("Add", x, y), width)
    first = net("Gather", x, net.constant(0, np.int64), axis=1)
    pooled = net("Tanh", net("Gemm", first, net.weights(width, width), net.weights(width, scale=0.1), transB=1))
    return net.model(net("Gemm", pooled, net.weights(3, width), net.weights(3, scale=0.1), transB=1), x)


def vision_transformer() -> ModelProto:
    net, width, heads, side = Net(), 24, 3, 4
    x = plain_conv(net, net.input("x", 1, 3, 16, 16), 3, width, (4, 4), strides=[4, 4])
    x = net("Transpose", net("Reshape", x, net.ints(1, width, side * side)), perm=[0, 2, 1])
    x = net("Concat", net.weights(1, 1, width, scale=0.5), x, axis=1)
    steps = side * side + 1
    x = net("Add", x, net.weights(1, steps, width, scale=0.2))
    for _ in range(2):
        x = net("Add", x, attention(net, net.layer_norm(x, width), steps, width, heads))
        y = net.dense(net.gelu(net.dense(net.layer_norm(x, width), width, 2 * width)), 2 * width, width)
        x = net("Add", x, y)
    first = net("Gather", net.layer_norm(x, width), net.constant(0, np.int64), axis=1)
    return net.model(net("Gemm", first, net.weights(10, width), net.weights(10, scale=0.1), transB=1))


def speech_lstm() -> ModelProto:
    """Two layers in both directions, on whole sequences of a batch of two."""
    net, size, hidden, steps = Net(), 10, 12, 9
    x = net("Transpose", net.input("x", 2, steps, size), perm=[1, 0, 2])
    for inputs in (size, 2 * hidden):
        w, r = net.weights(2, 4 * hidden, inputs, scale=0.2), net.weights(2, 4 * hidden, hidden, scale=0.2)
        both = net.weights(2, 8 * hidden, scale=0.1)
        y, last, _ = net("LSTM", x, w, r, both, outputs=3, hidden_size=hidden, direction="bidirectional")
        x = net("Reshape", net("Transpose", y, perm=[0, 2, 1, 3]), net.ints(0, 0, -1))
    return net.model(net("LogSoftmax", net.dense(x, 2 * hidden, 6), axis=-1), last)


def translation_gru(
    steps: int = 6, size: int = 8, hidden: int = 10, words: int = 7, spread: float = 0.3, likely: bool = True
) -> ModelProto:
    """Both forms of the GRU, the one with a first state, with weights of so much spread. `likely`: the outputs are
    probabilities."""
    net = Net()
    x = net("Transpose", net.input("x", 1, steps, size), perm=[1, 0, 2])
    state = ""
    for inputs, form in ((size, 0), (hidden, 1)):
        w, r = net.weights(1, 3 * hidden, inputs, scale=spread), net.weights(1, 3 * hidden, hidden, scale=spread)
        b = net.weights(1, 6 * hidden, scale=0.1)
        y, last = net("GRU", x, w, r, b, "", state, outputs=2, hidden_size=hidden, linear_before_reset=form)
        x, state = net("Squeeze", y, net.ints(1)), last
    out = net.dense(net("Transpose", x, perm=[1, 0, 2]), hidden, words)
    return net.model(net("Softmax", out, axis=-1) if likely else out, net("Squeeze", state, net.ints(0)))


def key_words() -> ModelProto:
    """A depthwise-separable network on a spectrum, and a convolution over time only."""
    net = Net()
    x = net.input("x", 1, 1, 25, 10)
    x = net("Relu", plain_conv(net, x, 1, 16, (10, 4), strides=[2, 2], pads=[4, 1, 5, 2]))
    for _ in range(2):
        x = net.conv(net.conv(x, 16, 16, group=16, act="Relu"), 16, 16, size=1, act="Relu")
    x = net("ReduceMean", x, axes=[3], keepdims=0)
    x = plain_conv(net, x, 16, 12, (3,), pads=[1, 1], dilations=[1])
    x = net("HardSigmoid", x, alpha=0.2, beta=0.5)
    x = net("MaxPool", x, kernel_shape=[2], strides=[2])
    flat = net("ReduceMax", x, axes=[2], keepdims=0)
    return net.model(net("Softmax", net("Gemm", flat, net.weights(6, 12), net.weights(6), transB=1), axis=1))


def recommender() -> ModelProto:
    """Dense layers with tables, products of pairs, and comparisons."""
    net = Net(13)
    a = net("Relu", net("Gemm", net.input("x", 4, 13), net.weights(16, 13), net.weights(16, scale=0.1), transB=1))
    b = net("Tanh", net("Gemm", a, net.weights(16, 16), net.weights(16, scale=0.1), transB=1))
    rows = net("Concat", net("Unsqueeze", a, net.ints(1)), net("Unsqueeze", b, net.ints(1)), axis=1)
    pairs = net("MatMul", rows, net("Transpose", rows, perm=[0, 2, 1]))
    spread = net("Sqrt", net("Add", net("ReduceSum", net("Mul", b, b), net.ints(1), keepdims=1), net.constant(1e-3)))
    unit = net("Div", b, spread)
    larger = net("Where", net("Greater", a, b), a, net("Neg", b))
    both = net("Concat", net("Flatten", pairs), unit, net("Max", a, b), net("Min", a, b), net("Abs", larger), axis=1)
    return net.model(net("Sigmoid", net("Gemm", both, net.weights(1, 68), net.weights(1), transB=1)), unit)


MODELS: dict[str, Callable[..., ModelProto]] = {
    made.__name__: made
    for made in (
        *(resnet18, mobilenet_v2, mobilenet_v3, efficientnet_b0, shufflenet_v2, squeezenet, inception, densenet),
        *(yolo, ssd, unet, deeplab, style_transfer, super_resolution, autoencoder, volumes),
        *(bert, vision_transformer, speech_lstm, translation_gru, key_words, recommender),
    )
} | {f"small_{name}": made for name, made in SMALL.items()}
"""By name; those of the importer's tests among them."""
