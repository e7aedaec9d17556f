"""1x1 convolutions of bytes as work of the AIFF of X2.

The image of a layer, NHWC, is read as planes of one column: a pixel is a row, and surfaces lie 32 bytes apart. Both MTPs
read it, and each writes half of the output channels, NHWC again.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from compass_core import targets
from compass_core.aiff.weights import pack
from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.dsl.aiff import Aiff
from compassc.dsl.aiff.encode import compress
from compassc.dsl.aiff.programs import SURFACE, configure_convolutions
from compassc.graph import Layer, LayerError
from compassc.layers.accelerated.rounding import Scaling, Sums, scaling
from compassc.layers.families.linear.reference import quantised_weights, summed_biases
from compassc.layers.requantise import FLOAT_EXACT
from compassc.layers.windows import window_of

TYPE = "Convolution"
ROWS = 255
"""Most rows of a node: what the fields of tiles hold."""
CHANNELS = 16
"""Output channels come in so many: no program had results that are aligned to less."""
MOST_INPUTS, MOST_OUTPUTS = 4064, 2 * 4096


class Work(NamedTuple):
    """A layer for the unit. `scaling`: of its sums; `descriptors`: control, parameters and activations, lists of words, in
    which arrays stand for their addresses, or for that of a part of them: `input` and `output`, which are as large as the
    layer's tensors, and `constants`."""

    scaling: Scaling
    descriptors: tuple[list[Any], list[Any], list[Any]]
    input: Array
    output: Array
    constants: tuple[Array, ...]
    nodes: int


def work_of(layer: Layer, target: str, allowed: frozenset[str]) -> Work:
    """What the unit is to do for a layer; `allowed`: assumptions that may be made. LayerError with the reason where it
    cannot be built for it, or where results might differ from the layer's."""
    if (version := targets.load(target).version) != "X2":
        raise LayerError(f"convolutions on the AIFF of {version} are not known")
    _check_form(layer)
    inputs, outputs = layer.input.shape[-1], layer.output.shape[-1]
    _check_sizes(layer, inputs, outputs)
    weights, biases = quantised_weights(layer).reshape(outputs, inputs).astype(np.int64), summed_biases(layer, outputs)
    _check_range("weights", weights, np.int8)
    _check_range("biases", biases, np.int16)
    sums = _sums(weights, biases)
    found = scaling(*_one_scale(layer, outputs), sums, _limits(layer), _is_rectified(layer), allowed)
    if _is_rectified(layer) and sums.high > FLOAT_EXACT:
        raise LayerError(f"its sums reach {sums.high}, of which rectifiers drop bits")
    return _configured(layer, target, weights.T.astype(np.int8), biases.astype(np.int16), found)


def _check_form(layer: Layer) -> None:
    """LayerError for a layer that is no 1x1 convolution of int8."""
    tensors = {
        "input": layer.input.dtype,
        "weights": layer.constant("weights").dtype.name,
        "output": layer.output.dtype,
    }
    for what, dtype in tensors.items():
        if dtype != "int8":
            raise LayerError(f"its {what} is {dtype}, not int8")
    if layer.output.scalar_zero != 0:
        raise LayerError(f"its output has the zero point {layer.output.scalar_zero}, which the unit does not subtract")
    window = window_of(layer)
    for name, values, wanted in (("kernel", window.kernel, 1), ("stride", window.stride, 1)):
        if set(values) != {wanted}:
            raise LayerError(f"its {name} is {'x'.join(map(str, values))}, not 1x1")
    if any(end for pads in window.pads for end in pads):
        raise LayerError("it pads its input")
    if layer.integer("group", 1) != 1:
        raise LayerError(f"it has {layer.integer('group')} groups of channels")
    if layer.word("with_activation", "NONE").upper() not in ("NONE", "RELU"):
        raise LayerError(f"the unit does not know the rectifier {layer.word('with_activation')}")


def _check_sizes(layer: Layer, inputs: int, outputs: int) -> None:
    if layer.constant("weights").shape != (outputs, *(1,) * (len(layer.input.shape) - 2), inputs):
        raise LayerError(f"its weights have the shape {list(layer.constant('weights').shape)}")
    if layer.input.shape[:-1] != layer.output.shape[:-1] or layer.input.count == 0:
        raise LayerError(f"its output has the shape {list(layer.output.shape)}")
    if inputs % SURFACE or inputs > MOST_INPUTS:
        raise LayerError(f"it has {inputs} input channels, not a multiple of {SURFACE} up to {MOST_INPUTS}")
    if outputs % CHANNELS or not 2 * CHANNELS <= outputs <= MOST_OUTPUTS:
        raise LayerError(f"it has {outputs} output channels, not a multiple of {CHANNELS} from 32 to {MOST_OUTPUTS}")


def _check_range(what: str, values: Array, kind: type) -> None:
    low, high = int(values.min()), int(values.max())
    if low < np.iinfo(kind).min or high > np.iinfo(kind).max:
        raise LayerError(f"its {what} reach from {low} to {high}, beyond {np.dtype(kind).name}")


def _sums(weights: Array, biases: Array) -> Sums:
    """The smallest and largest sum with its bias: each input is the byte that makes it so."""
    low = np.minimum(-128 * weights, 127 * weights).sum(1) + biases
    high = np.maximum(-128 * weights, 127 * weights).sum(1) + biases
    return Sums(int(low.min()), int(high.max()))


def _one_scale(layer: Layer, outputs: int) -> tuple[int, int]:
    scales, shifts = (np.unique(values) for values in layer.scale_shift(of=outputs))
    if scales.size > 1 or shifts.size > 1:
        raise LayerError("its channels have scales of their own, where the unit is only known with one for all")
    return int(scales[0]), int(shifts[0])


def _limits(layer: Layer) -> tuple[int, int]:
    return layer.output.low, layer.output.high


def _is_rectified(layer: Layer) -> bool:
    return layer.word("with_activation", "NONE").upper() == "RELU"


def _halves(outputs: int) -> int:
    """Output channels of the first MTP: groups of 32 where there are two."""
    group = 2 * CHANNELS if outputs >= 4 * CHANNELS else CHANNELS
    return -(-outputs // (2 * group)) * group


def _configured(layer: Layer, target: str, weights: Array, biases: Array, found: Scaling) -> Work:
    (inputs, outputs), pixels = weights.shape, layer.input.count // weights.shape[0]
    image = np.empty((pixels, inputs // SURFACE, 1, SURFACE), np.int8).transpose(1, 0, 2, 3)
    result = np.empty((pixels, 1, outputs), np.int8)
    first = _halves(outputs)
    parts = (slice(0, first), slice(first, outputs))
    streams = [np.frombuffer(pack(weights[:, part]), np.uint8).copy() for part in parts]
    added = [biases[part].copy() for part in parts]
    nodes = -(-pixels // ROWS)
    rows = -(-pixels // nodes)
    aiff = Aiff(target)
    for at in range(0, pixels, rows):
        if at:
            aiff.add_new_register_config()
        views = [result[at : at + rows, :, part] for part in parts]
        configure_convolutions(aiff, image[:, at : at + rows], streams, added, views, found.factor, found.shift)
        for itp in (aiff.itp[0], aiff.itp[1]):
            itp.m0_ccfg.relu_byp = int(not _is_rectified(layer))
    # nodes that differ in addresses alone could be one that repeats; no program has repetitions
    control, parameters, activations = (
        list(chain.from_iterable(words)) for words in compress(aiff.reg_cfgs, repeats=False)
    )
    return Work(found, (control, parameters, activations), image, result, (*streams, *added), len(aiff.reg_cfgs))
