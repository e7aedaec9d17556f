"""docs/tflite.md: what is done with each operator of TFLite, from the declarations."""

from __future__ import annotations

from compass_core.namedtuple import NamedTuple
from compassc.importers.tflite.declare import MOVES, QUANTISED, TABLE, TABLED
from compassc.importers.tflite.source import names_of, package

COLUMNS = ("operator", "status", "quantised", "remark")
INTEGERS, MOVED, TABLES, FLOATS = "integers", "as it is", "table", "floats"
PLACEHOLDERS = ("CUSTOM", "DELEGATE", "PLACEHOLDER_FOR_GREATER_OP_CODES")


class OperatorSupport(NamedTuple):
    """One operator. `quantised`: how it is computed where its tensors are quantised, "" when it is refused."""

    operator: str
    status: str
    quantised: str
    remark: str


def rows() -> list[OperatorSupport]:
    """The operators of the installed package tflite by name, those of StableHLO left out, then custom ones."""
    package()
    listed = TABLE.operators()
    builtin = {n for n in names_of("BuiltinOperator").values() if not n.startswith("STABLEHLO")} - set(PLACEHOLDERS)
    names = [*sorted(builtin), *sorted(name for _, name in {**listed, **TABLE.refused} if name not in builtin)]
    return [_row(name) for name in names]


def _row(name: str) -> OperatorSupport:
    declared = TABLE.listed.get(("", name))
    if declared is None:
        return OperatorSupport(name, "refused", "", TABLE.refused.get(("", name), "the operator is not known here"))
    operator = declared[-1]
    fixed = [f"`{i.name}`" for i in operator.inputs if i.constant]
    remarks = [operator.partly] if operator.partly else []
    remarks += [f"known at import: {', '.join(fixed)}"] if fixed else []
    return OperatorSupport(name, "partly" if operator.partly else "supported", _quantised(name), "; ".join(remarks))


def _quantised(name: str) -> str:
    if name in QUANTISED:
        return INTEGERS
    return MOVED if name in MOVES else TABLES if name in TABLED else FLOATS


HEAD = """\
# TFLite

`compassc import model.tflite -o model.txt` makes a graph of a TFLite model, `compassc build model.tflite` an aipu.bin. It
needs the packages `tflite` and `flatbuffers`: `pip install "compassc[tflite]"`.

- The main graph of the file is imported, with the graphs that it runs: IF with a known condition is its branch, of a computed
  one both branches are computed and chosen from; WHILE with a known number of steps is unrolled.
- Variables, and what SVDF keeps, are [states](models.md#states): models in Python and `compass-run` keep them from run to run. One without
  a first value begins as 0.
- Shapes are static: a first dimension that the model leaves open is 1, others are
  given (`--shape image=1x224x224x3`).
- What does not depend on inputs is computed at import: weights in float16 or with scales, and arithmetic on shapes.
- Activations at the end of operators, and the patterns that [ONNX](onnx.md) models have, are fused in the same way.
- What a model says of the shapes and types of its tensors is held against what the importer makes; a contradiction is
  refused. So is an option that is not known here, and a damaged file.
- Inner tensors may be outputs instead of the model's own, which cuts off what comes behind them: `--output-tensor NAME`.
- What is not supported is named at once, with the operators and reasons, and nothing is written.

## Quantised models

Tensors of int8, uint8 and int16 with a scale become quantised tensors of the graph, with the same integers. The column
"quantised" tells how an operator is computed then:

| | |
|---|---|
| integers | a layer of integers, with the weights and biases of the model |
| as it is | elements are moved; where scales differ they are rescaled in floats |
| table | a table with an entry for each integer of 8 bits; 16 bits are computed in floats |
| floats | between the layers DeQuantize and Quantize |

Runtimes of TFLite round in ways of their own, which differ from operator to operator and between their versions. LiteRT 2.3
keeps the high word of a product with a multiplier of 31 bits, halves up, and shifts it, which rounds again: halves up in CONV_2D,
FULLY_CONNECTED and QUANTIZE of 8 bits, away from zero in others. Here factors have 15 bits and halves go to the even integer. So a result may be a
level off. Measured against TFLite's rules, with scales and zero points drawn
at random (60 models of each; `tests/importers/test_tflite_rounding.py` draws some):

| operators | at most | of the elements |
|---|---|---|
| CONV_2D, DEPTHWISE_CONV_2D, FULLY_CONNECTED | 1 level | 0.3% |
| MUL | 1 level | 0.6% |
| ADD, SUB | 1 level | 0.1% |
| QUANTIZE of integers | 1 level | 7% |
| AVERAGE_POOL_2D | 1 level | 14% |
| tables (HARD_SWISH by LiteRT's arithmetic of 16 bits), MAXIMUM, MINIMUM, RESIZE_NEAREST_NEIGHBOR, what only moves | equal | |
| CONV_2D of 16 bits | equal | |
| ADD of 16 bits | 1 level | 0.5% |

Other operators are computed in floats, and differ by a level where TFLite computes them in integers: of the tests' models
LEAKY_RELU, PRELU, RESIZE_BILINEAR in 10% of the elements, TRANSPOSE_CONV in 1%. With 16 bits runtimes are coarser than floats: LiteRT's
multipliers of TRANSPOSE_CONV have 15 bits (up to 27 levels of 65,536), its parts of RESIZE_BILINEAR 10 bits (up to 200), its tables of
LOGISTIC and TANH are up to 11 levels off.

[Programs of Relay](relay.md#quantised-models) give TFLite's numbers to the bit.

A table has the function's values correctly rounded, but that of HARD_SWISH. Models with weights of 8 bits and activations in floats are computed
in floats, while runtimes round the activations to 8 bits on the way.

## Operators

`compassc import --operators --framework tflite` prints this table, which is made by `make docs` from the declarations in
`compassc/importers/tflite/operators`. "known at import" are inputs that must be constants of the model, or follow from
them. Operators of StableHLO are refused.

| operator | status | quantised | remark |
|---|---|---|---|
"""


def page() -> str:
    """The Markdown page."""
    return HEAD + "\n".join(f"| {r.operator} | {r.status} | {r.quantised} | {r.remark} |" for r in rows()) + "\n"
