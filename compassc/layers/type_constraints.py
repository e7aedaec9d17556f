"""What tensors, attributes and constants of a layer say about each other, for types that ask more than that each is of its
kind: output shapes that follow from the rest, dimensions, how many inputs there are, and constants of a size."""

from __future__ import annotations

from collections.abc import Callable

from compassc.graph import Layer, LayerError
from compassc.layers.shapes import RULES, unknown

Law = Callable[[Layer], None]


def check_laws(layer: Layer) -> None:
    """LayerError where the parts of a layer contradict each other; it names them with their values."""
    for law in LAWS.get(layer.type, ()):
        law(layer)
    _follow(layer)


_DECLARED = frozenset("Pooling Pooling3D MaxPoolingWithArgMax ConvTranspose ConvTranspose3D Resize Interp".split())
"""Types whose declared sizes decide: whether windows hang over, where pads and factors come from. Only how many dimensions
there are follows; kernels check the sizes."""


def _follow(layer: Layer) -> None:
    """The declared output shapes are those that the rule of the type makes of all else."""
    rule = RULES.get(layer.type, unknown)
    found = rule(layer)
    if found is None or any(n < 0 for t in (*layer.inputs, *layer.outputs) for n in t.shape):
        return
    if len(found) != len(layer.outputs):
        raise LayerError(
            f"it has {len(layer.outputs)} outputs {[t.name for t in layer.outputs]}, but makes {len(found)}"
        )
    for t, shape in zip(layer.outputs, found, strict=True):
        sized = layer.type not in _DECLARED
        if len(t.shape) != len(shape) or (sized and t.shape != tuple(shape)):
            given = ", ".join(f"'{x.name}' {list(x.shape)}" for x in layer.inputs)
            raise LayerError(
                f"'{t.name}' is declared as {list(t.shape)}, but {given} and its attributes give {list(shape)}"
            )


def ranks(first: int | None, *others: int) -> Law:
    """The first input has so many dimensions (None: any number), the others too, the last number repeated."""

    def law(layer: Layer) -> None:
        wanted = [first, *others, *others[-1:] * len(layer.inputs)]
        for t, rank in zip(layer.inputs, wanted, strict=False):
            if rank is not None and len(t.shape) != rank:
                raise LayerError(f"'{t.name}' is declared as {list(t.shape)}, expected {rank} dimensions")

    return law


def at_least(rank: int, first: int = 1) -> Law:
    """The `first` inputs have so many dimensions or more."""

    def law(layer: Layer) -> None:
        for t in layer.inputs[:first]:
            if len(t.shape) < rank:
                raise LayerError(f"'{t.name}' is declared as {list(t.shape)}, expected {rank} dimensions or more")

    return law


def of_numbers(key: str, many: int) -> Law:
    """An attribute is a list of so many numbers."""

    def law(layer: Layer) -> None:
        if layer.is_quantised and layer.has(key) and len(layer.numbers(key)) != many:
            raise LayerError(f"'{key}' is {layer.attributes[key]}, expected {many} numbers")

    return law


def operands(layer: Layer) -> None:
    """NOT has one operand, other methods have two."""
    method = layer.word("method")
    wanted = 1 if method == "NOT" else 2
    if len(layer.inputs) != wanted:
        names = [t.name for t in layer.inputs]
        raise LayerError(f"it has {len(names)} inputs {names}, but 'method' is {method}, which takes {wanted}")


def one_shift(layer: Layer) -> None:
    """A shift is one number, whatever there is of multipliers."""
    shift = layer.scale_shift()[1] if layer.is_quantised else None
    if shift is not None and shift.size != 1:
        key = "shift" if "shift" in layer.constants else "shift_value"
        raise LayerError(f"'{key}' has {shift.size} values {shift.tolist()}, expected 1")


def something(layer: Layer) -> None:
    """There is nothing to take elements from where the input has none."""
    x = layer.input
    if x.count == 0 and any(t.count for t in layer.outputs):
        full = next(t for t in layer.outputs if t.count)
        raise LayerError(f"'{x.name}' {list(x.shape)} has no elements, but '{full.name}' {list(full.shape)} has")


def extremes(layer: Layer) -> None:
    """The largest or smallest of nothing is no number."""
    if layer.word("method", "NONE") in ("MAX", "MIN"):
        something(layer)


def scattered(layer: Layer) -> None:
    """Updates of single elements are as many as indices, and of the data's dimensions."""
    x, index, updates = layer.inputs[:3]
    if index.shape != updates.shape or len(index.shape) != len(x.shape):
        raise LayerError(
            f"'{updates.name}' is {list(updates.shape)} and its indices '{index.name}' {list(index.shape)}, expected one shape "
            f"of as many dimensions as '{x.name}' {list(x.shape)}"
        )


def addressed(layer: Layer) -> None:
    """The last axis of indices addresses leading axes of the data."""
    x, index = layer.inputs[:2]
    batch = layer.integer("batch_dims", 0)
    if not index.shape or not 0 <= batch < len(index.shape) or batch + index.shape[-1] > len(x.shape):
        raise LayerError(
            f"'{index.name}' is {list(index.shape)}, which does not address axes of '{x.name}' {list(x.shape)} "
            f"behind {batch} of the batch"
        )


def scattered_slices(layer: Layer) -> None:
    """Updates are slices of the data, one for each index."""
    addressed(layer)
    x, index, updates = layer.inputs[:3]
    expected = (*index.shape[:-1], *x.shape[index.shape[-1] :])
    if updates.shape != expected:
        raise LayerError(
            f"'{updates.name}' is declared as {list(updates.shape)}, but '{x.name}' {list(x.shape)} and the indices "
            f"'{index.name}' {list(index.shape)} want {list(expected)}"
        )


def reversed_lengths(layer: Layer) -> None:
    """A length for each sample, or one for all; without lengths all are reversed whole."""
    if len(layer.inputs) < 2:
        return
    x, lengths = layer.inputs[:2]
    axis = layer.axis("batch_axis", 0)
    if lengths.count not in (1, x.shape[axis]):
        raise LayerError(
            f"'{lengths.name}' has {lengths.count} lengths, but '{x.name}' {list(x.shape)} has {x.shape[axis]} samples along "
            f"'batch_axis' {axis}"
        )


def filtered(layer: Layer) -> None:
    """Outputs are the filtered inputs, and how many rows there are."""
    inputs, outputs = layer.inputs, layer.outputs
    if len(outputs) != len(inputs) or len(inputs) < 2:
        raise LayerError(
            f"it has {len(inputs)} inputs and {len(outputs)} outputs, expected 'x..., selector' and 'y..., count'"
        )
    if outputs[-1].shape != (1,):
        raise LayerError(
            f"'{outputs[-1].name}' is declared as {list(outputs[-1].shape)}, expected [1], the number of rows"
        )


def exponent(layer: Layer) -> None:
    if len(layer.inputs) < 2 and not layer.has("exponent"):
        raise LayerError("the attribute 'exponent' is missing, and there is no second input in its place")


def both_moments(layer: Layer) -> None:
    if len(layer.outputs) != 2:
        raise LayerError(
            f"it has {len(layer.outputs)} outputs {[t.name for t in layer.outputs]}, expected 'mean, variance'"
        )


def blocks(layer: Layer) -> None:
    """A block, and crops or pads, for each axis between batch and channels; lists may begin with more."""
    x = layer.input
    axes = max(len(x.shape) - 2, 0)
    if layer.has("block_size") and not 0 < axes <= len(layer.integers("block_size")):
        raise LayerError(
            f"'block_size' is {layer.attributes['block_size']}, expected {axes} numbers for '{x.name}' {list(x.shape)}"
        )
    for key in ("crops", "pads"):
        if layer.has(key) and len(layer.pairs(key)) < axes:
            raise LayerError(
                f"'{key}' is {layer.attributes[key]}, expected {axes} pairs for '{x.name}' {list(x.shape)}"
            )


def norm(layer: Layer) -> None:
    """There is an axis; zero points of factors and addends are one, or one for each."""
    if layer.is_quantised and layer.has("axis") and not layer.integers("axis"):
        raise LayerError(f"'axis' is {layer.attributes['axis']}, expected an axis of '{layer.input.name}' at least")
    for key in ("weights", "biases"):
        zero, array = f"{key}_zp", layer.constants.get(key)
        if array is None or not layer.is_quantised or not layer.has(zero):
            continue
        many = len(layer.numbers(zero))
        if many not in (1, array.size, *array.shape):
            raise LayerError(f"'{zero}' has {many} values, but '{key}' the shape {list(array.shape)}")


def per_channel(layer: Layer) -> None:
    """Factors and addends are one for each channel."""
    x = layer.input
    channels = x.shape[layer.axis("axis", -1)]
    for key in ("weights", "biases"):
        array = layer.constants.get(key)
        if array is not None and array.size not in (1, channels):
            raise LayerError(f"'{key}' has {array.size} values, but '{x.name}' {list(x.shape)} {channels} channels")


def whole_tables(layer: Layer) -> None:
    """Tables of integers."""
    for key, array in layer.constants.items():
        if key.startswith("lut") and layer.is_quantised and array.dtype.kind == "f":
            raise LayerError(
                f"the table '{key}' is {array.dtype.name}, but its tensors are integers: expected whole numbers"
            )


def a_list(layer: Layer) -> None:
    """Numbers of dimensions are a list."""
    if len(layer.output.shape) != 1:
        raise LayerError(f"'{layer.output.name}' is declared as {list(layer.output.shape)}, expected a list of sizes")


def check_constants(layer: Layer, declared: dict[str, str]) -> None:
    """Constants have elements where there is something to make, and dimensions where they are declared with some."""
    for key, words in declared.items():
        array = layer.constants.get(key)
        if array is None:
            continue
        if (array.ndim < (2 if key == "weights" else 1) and "," in words) or (
            array.size == 0 and any(t.count for t in layer.outputs)
        ):
            raise LayerError(f"the constant '{key}' has the shape {list(array.shape)}, expected {words}")


def _by_type(*rows: tuple[str, tuple[Law, ...]]) -> dict[str, tuple[Law, ...]]:
    return {name: laws for names, laws in rows for name in names.split()}


LAWS: dict[str, tuple[Law, ...]] = _by_type(
    ("BasicLSTM GRUv1 GRUv3 RNN", (ranks(3, 2),)),
    ("GlobalPool", (at_least(3),)),
    ("ChannelShuffle", (at_least(1),)),
    ("MatMul MatMulInteger Gemm", (at_least(2, first=2),)),
    ("DepthToSpace SpaceToDepth", (ranks(4),)),
    ("Resize Interp", (at_least(2),)),
    ("Bitwise Logical", (operands,)),
    ("Eltwise Add Sub Mul", (one_shift,)),
    ("ROIPooling", (something,)),
    ("Reduce", (extremes,)),
    ("GatherND", (something, addressed)),
    ("ScatterElements", (scattered,)),
    ("ScatterND", (scattered_slices,)),
    ("ReverseSequence", (reversed_lengths,)),
    ("Filter", (filtered,)),
    ("Pow", (exponent,)),
    ("NormalizedMoments", (both_moments,)),
    ("BatchToSpaceND SpaceToBatchND", (blocks,)),
    ("LayerNorm RMSNorm InstanceNorm GroupNorm", (norm,)),
    ("BatchNorm", (per_channel,)),
    ("LogSoftmax", (of_numbers("quantize_scale", 2),)),
    ("Softmax", (whole_tables,)),
    ("Shape", (a_list,)),
)
"""What is asked of types besides the shapes that `RULES` gives."""
