"""Writes docs/onnx.md, the table of supported ONNX operators, from the declarations."""

from __future__ import annotations

from typing import Any

from compass_core.namedtuple import NamedTuple
from compassc.importers.onnx.backend_tests import NO_KERNEL, NOT_PASSED
from compassc.importers.onnx.declare import CONSTANT_ONLY, REFUSED, Operator, operators
from compassc.importers.onnx.versions import OLDER

COLUMNS = ("operator", "since", "status", "remark")


class OperatorSupport(NamedTuple):
    """One operator. `since`: the opsets from which on its declarations hold, or "" when ONNX defines it by others."""

    operator: str
    since: str
    status: str
    remark: str


class Schema(NamedTuple):
    """What the installed package onnx says of an operator."""

    by_others: bool
    first: int
    """The opset that brought it."""


def _schemas() -> dict[tuple[str, str], Schema]:
    """The operators of the installed package onnx, not the deprecated ones."""
    from onnx import defs

    found: dict[tuple[str, str], Schema] = {}
    package: Any = defs
    first: dict[str, int] = {}
    for schema in package.get_all_schemas_with_history():
        first[schema.name] = min(schema.since_version, first.get(schema.name, schema.since_version))
    for schema in package.get_all_schemas():
        domain = "" if schema.domain == "ai.onnx" else schema.domain
        if not schema.deprecated and domain == "":
            by_others = bool(schema.has_function or schema.has_context_dependent_function)
            found[domain, schema.name] = Schema(by_others, first[schema.name])
    return found


NO_SCHEMA = Schema(False, 1)


def _row(key: tuple[str, str], declared: list[Operator], schema: Schema) -> OperatorSupport:
    name = key[1]
    if key in CONSTANT_ONLY or name == "Constant":
        return OperatorSupport(name, "", "constants", "computed at import")
    if declared:
        since = ", ".join(str(max(o.since, schema.first)) for o in declared)
        newest = declared[-1]
        fixed = [f"`{i.name}`" for i in newest.inputs if i.constant]
        remarks = [newest.partly] if newest.partly else []
        remarks += [f"known at import: {', '.join(fixed)}"] if fixed else []
        return OperatorSupport(name, since, "partly" if newest.partly else "supported", "; ".join(remarks))
    if name in OLDER and OLDER[name][-1].operator:
        return OperatorSupport(name, "", "supported", f"as {OLDER[name][-1].operator}")
    if key in REFUSED:
        return OperatorSupport(name, "", "refused", REFUSED[key])
    if schema.by_others:
        return OperatorSupport(name, "", "supported", "as ONNX defines it by other operators")
    return OperatorSupport(name, "", "refused", "the operator is not known here")


def rows() -> list[OperatorSupport]:
    """All operators of the default domain by name, then those of other domains that are known here."""
    declared, schemas = operators(), _schemas()
    own = sorted({*schemas, *(k for k in declared if not k[0]), *(("", n) for n in OLDER)}, key=lambda k: k[1].lower())
    others = sorted(k for k in declared if k[0])
    found = [_row(key, declared.get(key, []), schemas.get(key, NO_SCHEMA)) for key in own]
    return found + [_row(k, declared[k], NO_SCHEMA)._replace(operator=f"{k[0]}.{k[1]}") for k in others]


HEAD = """\
# ONNX

`compassc import model.onnx -o model.txt` makes a graph of an ONNX model, `compassc build model.onnx` an aipu.bin. It needs
the package `onnx`: `pip install "compassc[onnx]"`.

- Opsets 7 to the newest that the installed package knows; older models are converted by it.
- Shapes are static. A first dimension that the model leaves open is 1, others are given: `--shape image=1x3x224x224`, or a
  dimension by its name in the model, `--shape sequence=128`, which inputs share.
- What does not depend on inputs is computed at import, so most arithmetic on shapes is gone. `If` with a known condition is
  its branch, `Loop` and `Scan` with a known number of steps are unrolled; functions and operators that ONNX defines by
  others are replaced by these.
- Inputs and outputs keep the model's order of axes; images inside have their channels last, and a Transpose stands only
  where somebody needs another order than the one there is.
- int64 becomes int32, uint64 uint32, float64 float32, bool uint8. Nodes that compute with 64-bit whole numbers are a warning;
  `compass-run --check overflow` finds results that do not fit.
- Whole numbers are computed exactly, or a warning names the node (ReduceL2, Shrink and powers of real exponents go through
  float32). Results beyond 32 bits are limited to the type; those beyond fewer bits wrap around.
- Activations, normalisations and biases that are spelled out become one layer; batch normalisation and activations go
  into the convolution before them.
- Quantised models (QuantizeLinear and DequantizeLinear around operators, or QLinear operators) become quantised layers:
  convolutions, matrix products, sums, products, maxima, and what only moves elements. Other operators are computed in
  floats between DeQuantize and Quantize.
- Dynamically quantised models (DynamicQuantizeLinear, MatMulInteger, ConvInteger, DynamicQuantizeMatMul) find their scales at
  run time here, too, with floats in between; the float model, quantised with `--calibrate`, is faster.
- An LSTM with peepholes is its steps, one by one.
- A ConvTranspose whose `output_shape` (or `auto_pad`) asks for more than the filters reach has the rest behind each axis,
  as in ONNX Runtime. With SAME_UPPER or SAME_LOWER alone its sizes are the input's times the strides, as ONNX says;
  ONNX Runtime ends where the filters do.
- Pools with SAME_UPPER or SAME_LOWER have the pads of ONNX's text, which counts dilations; ONNX Runtime does not. Means whose
  windows would leave out two elements or more with them are refused, write `pads` instead.
- NaN passes through as in ONNX but where a target computes with its max and min, which give the other operand: of NaN Relu,
  PRelu, Elu, Selu, Celu and HardSigmoid make 0, Clip its lower limit, Max, Min, ReduceMax, ReduceMin, MaxPool and
  GlobalMaxPool one of the other numbers, or an infinity where there is none; LpNormalization divides what is beside NaN by its
  smallest norm. Outputs that must show NaN need an IsNaN of what comes before. ArgMax and ArgMin give the place of the first NaN (the last one with
  select_last_index), as NumPy does; ONNX Runtime where it is the first element. TopK takes NaN for infinity. GridSample takes
  it for the lowest coordinate; NonMaxSuppression leaves out scores that are NaN.
- QuantizeLinear with known scales multiplies with their reciprocals, and rounds what has the zero point added, as Quantize
  layers do: halves go to the other neighbour where the zero point is odd. Casts to floats of 8 bits make their lowest
  number of NaN, but without `saturate`.
- Sums do not keep the sign of zero.
- Limits that a Clip is not given are the largest floats, as until opset 11, and with both of them, or with 0 below, infinities stay.
  Programs of Relay have the limits of the model's opset.
- Asin beyond -1 and 1 is 2147483647; Atanh there and of 1 is the largest float, of -1 the lowest, as layers of these types
  have it. Programs of Relay give NaN and infinities.
- Inner tensors may be outputs instead of the model's own, which cuts off what comes behind them: `--output-tensor NAME`.
- Weights that are NaN or infinite are a warning with the name of the layer.
- What is not supported is named at once, with the nodes and reasons, and nothing is written.

`compassc import --operators` prints this table, which is made by `make docs` from the declarations in
`compassc/importers/onnx/operators`. "known at import" are inputs that must be constants of the model (or follow from
them).

`compassc.onnx_backend` has ONNX's backend interface (`prepare`, `run_model`, `run_node`, `supports_device`); its devices are
targets, and `REFERENCE` for the NumPy references of layers. Inputs that must be known are taken from what is given there.

| operator | since opset | status | remark |
|---|---|---|---|
"""


TESTS = """
## ONNX's own tests

`make test-onnx` runs the node tests of the package onnx that have static shapes and tensors of numbers: by the references
of layers, and on the simulator (`DEVICE=X2_1204`), where 97% of those that are not about floats of 8 and 4 bits must pass
(97.3% of 1,727 did at last). These do not pass:

| tests | reason |
|---|---|
"""

ON_TARGETS = """
Further tests pass by the references, but are refused when they are built for a target, with the layers' names:

"""


def page() -> str:
    """The Markdown page."""
    lines = [f"| {r.operator} | {r.since} | {r.status} | {r.remark} |" for r in rows()]
    tests = [f"| {', '.join(f'`{n}`' for n in names)} | {why} |" for why, names in NOT_PASSED.items()]
    kernels = [f"- {why}" for why in NO_KERNEL]
    return "\n".join([HEAD + "\n".join(lines), TESTS + "\n".join(tests), ON_TARGETS + "\n".join(kernels)]) + "\n"
