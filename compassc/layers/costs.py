"""What computing a layer by its reference takes, from its shapes and attributes: elements that are held, and operations.

Estimates from above, of the order: references hold numbers in eight bytes, and windows cell by cell.
"""

from __future__ import annotations

from math import prod

from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple
from compass_core.reading.limits import LAYER_BYTES, LAYER_OPERATIONS
from compassc.graph import Layer, LayerError
from compassc.layers.layer_checks import described
from compassc.layers.windows import window_of

PRODUCTS = ("FullyConnected", "MatMul", "MatMulInteger", "Gemm")
RECURRENT = ("BasicLSTM", "GRUv1", "GRUv3", "RNN")
CONVOLUTIONS = frozenset("Convolution Convolution3D ConvInteger ConvTranspose ConvTranspose3D".split())


class Cost(NamedTuple):
    """Elements that the reference holds beside the inputs, and operations."""

    held: int
    operations: int


def cost_of(layer: Layer) -> Cost:
    """The cost of a layer; LayerError for attributes that are not in order."""
    read, made = sum(t.count for t in layer.inputs), sum(t.count for t in layer.outputs)
    if layer.has("kernel_x") and layer.inputs:
        return _windowed(layer, read, made)
    if layer.type in PRODUCTS and layer.inputs:
        depth = layer.input.shape[-2 if layer.flag("trans_a", False) else -1] if len(layer.input.shape) > 1 else read
        return Cost(made, read + made * max(depth, 1))
    if layer.type in RECURRENT and layer.inputs:
        return Cost(made, read + made + prod(layer.input.shape[:2]) * layer.constant("weights").size)
    if layer.type == "SDPAttention" and len(layer.inputs) > 1:
        scores = prod(layer.inputs[0].shape[:-1]) * layer.inputs[1].shape[-2]
        return Cost(made + scores, read + (made + scores) * layer.inputs[0].shape[-1])
    return Cost(made, read + made)


def _windowed(layer: Layer, read: int, made: int) -> Cost:
    """Of windows over images: the padded image, and the cells of all positions."""
    try:
        window = window_of(layer)
    except LayerError:  # of regions, which are no windows over the whole image
        return Cost(made, read + made * layer.integer("kernel_x") * layer.integer("kernel_y", 1))
    shape, cells = layer.input.shape, prod(window.kernel)
    padded = prod((shape[0], shape[-1]))
    for size, pads, reach in zip(shape[1:-1], window.pads, window.reach, strict=True):
        padded *= max(size + sum(pads), size, reach)
    if layer.type not in CONVOLUTIONS:
        return Cost(padded + made * cells, padded + made * cells)
    places = max(prod(layer.output.shape[:-1]), prod(shape[:-1]))
    channels = max(shape[-1] // max(layer.integer("group", 1), 1), 1)
    return Cost(padded + places * cells * channels, padded + made * cells * channels)


def check_cost(layer: Layer) -> None:
    """LayerError for a layer whose reference would take memory or time without end; it says how the limit is raised."""
    held, operations = cost_of(layer)
    for limit, amount in ((LAYER_BYTES, 8 * held), (LAYER_OPERATIONS, operations)):
        try:
            limit.check(amount, "its sizes ask for much")
        except CompassError as error:
            raise LayerError(f"{error} ({error.help}; {described(layer)})") from None
