"""Recurrent layers: LSTM, GRU and plain RNN over [batch, time, features]."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, layer_type
from compassc.layers.families.recurrent.reference import gru, lstm, quantised_gru, quantised_lstm, quantised_rnn, rnn
from compassc.operators.patterns import PatternKind

COMMON = (
    Attribute("time_steps", "count", "steps", told=lambda layer: layer.input.shape[1]),
    Attribute("input_size", "count", "features of a step", told=lambda layer: layer.input.shape[2]),
    Attribute("cell_size", "count", "features of the state", told=lambda layer: layer.inputs[1].shape[1]),
    Attribute("direction", "word", "forward or reverse", "forward"),
    Attribute("out_sequence", "words", "the outputs in order"),
    Attribute("activations", "words", "of the gates, the candidate, and for an LSTM the cell state"),
    Attribute("threshold", "float", "bound of the sums before an activation", "none", form="float"),
)
WEIGHTS = Constant("weights", "[gates * C,I + C]", "gates one below the other; columns of the input, then of the state")
layer_type(
    "BasicLSTM",
    summary="A long short-term memory with input, candidate, forget and output gate.",
    use="common",
    pattern=PatternKind.OPAQUE,
    inputs="x, h0, c0",
    outputs="of Y, H, C",
    attributes=(
        *COMMON,
        Attribute("forget_bias", "float", "added to the forget gate", "0", form="float"),
        Attribute("cell_clip", "float", "bound of the cell state", "none", form="float"),
    ),
    constants=(WEIGHTS, Constant("biases", "[4C]", "added to the sums")),
    float=lstm,
    quantised=quantised_lstm,
)
layer_type(
    "GRUv1",
    "GRUv3",
    summary="A gated recurrent unit with reset, update and candidate gate.",
    use="common",
    pattern=PatternKind.OPAQUE,
    inputs="x, h0",
    outputs="of H, Hn",
    attributes=COMMON,
    constants=(WEIGHTS, Constant("biases", "[3C] or, of GRUv1, [4C]", "added to the sums")),
    float=gru,
    quantised=quantised_gru,
)
layer_type(
    "RNN",
    summary="A recurrence of one activation.",
    use="rare",
    pattern=PatternKind.OPAQUE,
    inputs="x, h0",
    outputs="sequence, last",
    attributes=COMMON,
    constants=(WEIGHTS, Constant("biases", "[C]", "added to the sums")),
    float=rnn,
    quantised=quantised_rnn,
)
