"""Post-training quantisation of programs: `with qconfig(...): module = quantize(module, params, dataset)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compassc.pass_manager.context import Pass, PassContext, Sequential
from compassc.relay.backend.build import bind_main
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.passes import infer_type, make
from compassc.relay.passes._functions import on_functions
from compassc.relay.quantize.annotate import QAnnotateContext, QAnnotateExpr, register_annotate_function
from compassc.relay.quantize.calibrate import Numbers, Sample, calibrated
from compassc.relay.quantize.config import QAnnotateKind, QConfig, current_qconfig, kind2str, qconfig
from compassc.relay.quantize.conversions import partition_conversions
from compassc.relay.quantize.forward import Value, forward, plain
from compassc.relay.quantize.partition import QPartitionExpr, parted, unfinished
from compassc.relay.quantize.realize import realized
from compassc.relay.transform import FoldScaleAxis

__all__ = [
    "QAnnotateContext",
    "QAnnotateExpr",
    "QAnnotateKind",
    "QConfig",
    "QPartitionExpr",
    "annotate",
    "calibrate",
    "current_qconfig",
    "kind2str",
    "partition",
    "partition_conversions",
    "prerequisite_optimize",
    "qconfig",
    "quantize",
    "realize",
    "register_annotate_function",
]
PASSES = ("QuantizePartition", "QuantizeAnnotate", "QuantizeCalibrate", "QuantizeRealize")
_LEVEL = 1
_Rewrite = Callable[[Call, Sequence[Value]], "Value | None"]


def _pass(name: str, rule: Callable[[], _Rewrite], result: Callable[[Value], Expr] = plain) -> Pass:
    """A pass on all functions; `rule()` is what one function is rewritten by, `result` what its value becomes."""

    def one(f: Function, module: IRModule) -> Function:
        return forward(f, rule(), result)

    return Pass(lambda module: on_functions(infer_type.run(module), one), name, _LEVEL, ("InferType",))


def partition() -> Pass:
    """Note where kernels end, so that integers of few bits go from one to the next."""
    return _pass(PASSES[0], lambda: parted, unfinished)


def annotate() -> Pass:
    """Put simulated quantisation, whose scales are open, in front of operators that compute with integers."""
    return _pass(PASSES[1], lambda: QAnnotateContext().annotated)


def calibrate(dataset: Sequence[Sample] | None = None) -> Pass:
    """Find the scales. `dataset`: arrays by the names of the parameters of `main`."""
    return Pass(lambda module: calibrated(infer_type.run(module), dataset), PASSES[2], _LEVEL)


def realize() -> Pass:
    """Compute in integers what is simulated in floats."""
    return _pass(PASSES[3], lambda: realized)


def prerequisite_optimize(mod: IRModule, params: Mapping[str, Numbers] | None = None) -> IRModule:
    """The module with parameters bound, normalisations as products and sums, scales folded into weights, and constants computed."""
    names = ("SimplifyInference", "FoldConstant")
    steps = [*map(make, names), FoldScaleAxis(), make("CanonicalizeOps"), make("FoldConstant")]
    with PassContext(opt_level=3):
        optimized: IRModule = Sequential(steps)(bind_main(mod, params or {}))
    return optimized


def quantize(
    mod: IRModule, params: Mapping[str, Numbers] | None = None, dataset: Sequence[Sample] | None = None
) -> IRModule:
    """The module in integers, by the current `qconfig`: inputs and results stay floats.

    `params`: arrays for parameters of `main`, by name. `dataset`: samples, arrays by the names of the other parameters, for
    `calibrate_mode` "kl_divergence" and "percentile". ExpressionError where settings do not fit the program.
    """
    config = current_qconfig()
    steps = [partition(), annotate(), calibrate(dataset), make("InferType")]
    steps += [] if config.do_simulation else [realize()]
    with PassContext(opt_level=3, required_pass=list(PASSES)):
        made: IRModule = Sequential([*steps, make("FoldConstant")])(prerequisite_optimize(mod, params))
    if config.partition_conversions == "disabled":
        return made
    dtypes = frozenset({config.dtype_input, config.dtype_weight, config.dtype_activation})
    return partition_conversions(made, dtypes, config.partition_conversions == "fully_integral")
