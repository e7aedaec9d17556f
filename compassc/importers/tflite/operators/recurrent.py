"""Recurrent networks over a whole sequence, and those that see a part of it in each run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compass_core.arrays import Array
from compassc.importers.building import Building
from compassc.importers.onnx.operators.elementwise import arithmetic
from compassc.importers.onnx.operators.linear import fully_connected
from compassc.importers.onnx.operators.reduce import reduction
from compassc.importers.tflite.convert import Conversion
from compassc.importers.tflite.declare import Constant, operator, stateful
from compassc.importers.tflite.source import names_of
from compassc.importers.values import Refused, Value

BATCH_FIRST = (1, 0, 2)

MEMORY = 4
"""The input of SVDF that is its state."""

stateful("UNIDIRECTIONAL_SEQUENCE_LSTM", 18, 19)
stateful("SVDF", MEMORY)


@operator(
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    partly="without peepholes, projection, layer normalisation and joined gates; each run begins with states of 0",
)
def lstm(
    b: Building,
    x: Value,
    i2i: Constant | None,
    i2f: Constant,
    i2c: Constant,
    i2o: Constant,
    r2i: Constant | None,
    r2f: Constant,
    r2c: Constant,
    r2o: Constant,
    c2i: Constant | None = None,
    c2f: Constant | None = None,
    c2o: Constant | None = None,
    bias_i: Constant | None = None,
    bias_f: Constant | None = None,
    bias_c: Constant | None = None,
    bias_o: Constant | None = None,
    projection: Constant | None = None,
    projection_bias: Constant | None = None,
    output_state: Value | None = None,
    cell_state: Value | None = None,
    norm_i: Constant | None = None,
    norm_f: Constant | None = None,
    norm_c: Constant | None = None,
    norm_o: Constant | None = None,
    *,
    fused_activation_function: int,
    cell_clip: float = 0.0,
    proj_clip: float = 0.0,
    time_major: bool = False,
) -> Value:
    """The cell's state changes by less than 1 a step, so that a limit of it that is not below the steps is none."""
    if i2i is None or r2i is None:
        raise Refused("input and forget gates in one are not supported")
    extra = (c2i, c2f, c2o, projection, projection_bias, norm_i, norm_f, norm_c, norm_o)
    sequence = b.transpose(x, BATCH_FIRST) if time_major else x
    batch, steps, size = sequence.shape
    _check(extra, fused_activation_function, cell_clip, steps)
    hidden = r2i.shape[0]
    weights = [np.concatenate(pair, 1) for pair in ((i2i, r2i), (i2c, r2c), (i2f, r2f), (i2o, r2o))]
    zeros: Array = np.zeros(b.room(batch, hidden, each=4), np.float32)
    biases = [np.zeros(hidden) if v is None else v for v in (bias_i, bias_c, bias_f, bias_o)]
    tensor = b.laid(sequence)
    (made,) = b.layers_of(
        "BasicLSTM",
        [tensor, b.laid(Value.of(zeros)), b.laid(Value.of(zeros))],
        [((batch, steps, hidden), tensor.dtype)],
        weights=np.concatenate(weights).astype(np.float32),
        biases=np.concatenate(biases).astype(np.float32),
        time_steps=steps,
        input_size=size,
        cell_size=hidden,
        direction="forward",
        activations=["SIGMOID", "TANH", "TANH"],
        out_sequence=["Y"],
    )
    found = b.value(made, x.dtype)
    return b.transpose(found, BATCH_FIRST) if time_major else found


def _check(extra: Sequence[Constant | None], activation: int, clip: float, steps: int) -> None:
    """Refuses what a layer has no place for."""
    if any(v is not None for v in extra):
        raise Refused("peepholes, projection and layer normalisation are not supported")
    if names_of("ActivationFunctionType").get(activation) != "TANH":
        raise Refused("its activation is not TANH")
    if 0 < clip < steps:
        raise Refused(f"its cell's state is limited to {clip}, which {steps} steps may reach")


@operator("SVDF", partly="weights are computed with as real numbers where they are integers")
def svdf(
    b: Conversion,
    x: Value,
    feature: Constant,
    time: Constant,
    bias: Constant | None = None,
    state: Value | None = None,
    *,
    rank: int = 0,
) -> Value:
    """Filters of what the last runs gave: each filter keeps its features of as many runs as it has weights in time, of which the
    oldest gives way to that of this run. An output is the sum of `rank` filters."""
    if x.rank != 2 or rank < 1 or time.ndim != 2 or len(time) % rank or feature.shape != (len(time), x.shape[1]):
        raise Refused(f"filters {list(feature.shape)} and {list(time.shape)} of rank {rank} do not fit {list(x.shape)}")
    batch, (filters, steps), units = x.shape[0], time.shape, len(time) // rank
    before = b.state_before(MEMORY, (batch, filters * steps))
    now = b.reshape(fully_connected(b, x, feature.astype(np.float32), None), (batch, filters, 1))
    kept = b.reshape(before, (batch, filters, steps))
    if steps > 1:
        kept = b.concat(b.sliced(kept, [1], [steps], [1], [2]), now, axis=2)
    else:
        kept = now
    after = b.leave_state(MEMORY, b.reshape(kept, (batch, filters * steps)))
    weights = Value.of(time.reshape(1, units, rank * steps).astype(np.float32))
    weighted = arithmetic(b, b.reshape(after, (batch, units, rank * steps)), weights, "Mul")
    made = b.squeeze(reduction(b, weighted, "SUM", [2]), [2])
    return made if bias is None else arithmetic(b, made, Value.of(bias.reshape(1, units).astype(np.float32)), "Add")
