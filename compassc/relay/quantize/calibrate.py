"""Scales of numbers that are quantised: of weights by their values, of the others one for all, or by what samples give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray as Array

from compassc.ir.errors import ExpressionError
from compassc.quantizer import strategies
from compassc.quantizer.statistics import NotFinite, Record
from compassc.relay.backend.executors import create_executor
from compassc.relay.expr import Call, Constant, Expr, Function, GlobalVar, Tuple
from compassc.relay.module import MAIN, BaseFunc, IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import changed, rewritten, scalar
from compassc.relay.quantize.annotate import SIMULATED
from compassc.relay.quantize.config import QAnnotateKind, QConfig, current_qconfig
from compassc.relay.visit import is_primitive, post_order, rewrite

Numbers = Array[np.generic]
Sample = Mapping[str, Numbers]
STRATEGIES = {"kl_divergence": "kld", "percentile": "99.999percentile"}
"""How the range of values is chosen from their histogram, in the words of `compassc.quantizer.strategies`."""


def calibrated(module: IRModule, dataset: Sequence[Sample] | None = None) -> IRModule:
    """The module whose `main` knows the scale and the bounds of each number that is quantised."""
    config = current_qconfig()
    main = module[MAIN]
    assert isinstance(main, Function)
    asked = [e for e in post_order(main, is_primitive) if op_name(e) == SIMULATED and isinstance(e, Call)]
    weights = [e for e in asked if _kind(e) == QAnnotateKind.WEIGHT]
    others = [e for e in asked if _kind(e) != QAnnotateKind.WEIGHT]
    largest = {id(e): _of_weight(e, config.weight_scale) for e in weights}
    largest.update(zip(map(id, others), _of_inputs(module, others, dataset, config), strict=True))

    def known(before: Expr, after: Expr) -> Expr:
        if id(before) not in largest:
            return after
        assert isinstance(after, Call)
        return after.replace(args=(after.args[0], *_parameters(after, largest[id(before)], config)))

    functions: dict[GlobalVar, BaseFunc] = {**module.functions, module.get_global_var(MAIN): rewritten(main, known)}
    return changed(module, functions)


def _kind(e: Call) -> QAnnotateKind:
    assert e.attrs is not None
    return QAnnotateKind(e.attrs.get_int("kind"))


def _parameters(e: Call, largest: float, config: QConfig) -> Sequence[Expr]:
    """The step between numbers, and their bounds."""
    assert e.attrs is not None
    steps = 2 ** (config.get_nbit_by_kind(_kind(e)) - bool(e.attrs["sign"]))
    low = -(steps - 1) if e.attrs["sign"] else 0
    return [scalar(v, "float32") for v in (largest / steps, low, steps - 1)]


def _of_weight(e: Call, how: str) -> float:
    assert isinstance(e.args[0], Constant)
    largest = float(np.abs(e.args[0].array).max(initial=0.0))
    if not np.isfinite(largest):
        raise ExpressionError("a weight is infinite or no number", "it has no scale: leave its operator in floats")
    if largest == 0:
        return 1.0
    return float(2.0 ** np.ceil(np.log2(largest))) if how == "power2" else largest


def _of_inputs(
    module: IRModule, asked: Sequence[Call], dataset: Sequence[Sample] | None, config: QConfig
) -> Sequence[float]:
    if config.calibrate_mode == "global_scale":
        return [config.global_scale] * len(asked)
    samples = list(dataset or ())
    if not samples:
        raise ExpressionError(
            f"calibrate_mode {config.calibrate_mode!r} looks at samples, and there are none",
            "give dataset=[{name: array}], or calibrate_mode='global_scale'",
        )
    strategy = strategies.parse(STRATEGIES[config.calibrate_mode])
    ranges = [
        strategy.range(r, config.get_nbit_by_kind(_kind(e)), True)
        for e, r in zip(asked, collect_stats(module, asked, samples, config.calibrate_chunk_by), strict=True)
    ]
    return [max(-low, high) or 1.0 for low, high in ranges]


def collect_stats(module: IRModule, asked: Sequence[Call], samples: Sequence[Sample], chunk: int = -1) -> list[Record]:
    """What the program in floats gives each call of `simulated_quantize` in its `main` on samples: `chunk` calls at a time, all for -1."""
    records = [Record() for _ in asked]
    size = chunk if chunk > 0 else max(len(asked), 1)
    for begin in range(0, len(asked), size):
        run = _floats(module, asked[begin : begin + size])
        for sample in samples:
            for record, value in zip(records[begin : begin + size], run(sample), strict=True):
                try:
                    record.observe(value, histogram=True)
                except NotFinite as found:
                    raise ExpressionError(f"a sample leads to {found}", "leave it out of the data set") from None
    return records


def _floats(module: IRModule, asked: Sequence[Call]) -> Callable[[Sample], Iterator[Numbers]]:
    """What computes the data of calls, in floats."""
    main = module[MAIN]
    assert isinstance(main, Function)

    def without(before: Expr, after: Expr) -> Expr:
        assert not isinstance(before, Call) or isinstance(after, Call)
        return after.args[0] if op_name(before) == SIMULATED and isinstance(after, Call) else after

    body = rewrite(Tuple([e.args[0] for e in asked]), without, is_primitive)
    functions: dict[GlobalVar, BaseFunc] = {v: f for v, f in module.functions.items() if v.name_hint != MAIN}
    functions[GlobalVar(MAIN)] = Function(main.params, body)
    run = create_executor("graph", changed(module, functions)).evaluate()
    names = {p.name_hint for p in main.params}

    def values(sample: Sample) -> Iterator[Numbers]:
        missing = sorted(names - set(sample))
        if missing:
            raise ExpressionError(f"a sample lacks '{missing[0]}'", f"give arrays for {', '.join(sorted(names))}")
        return (v.numpy() for v in run(**{n: np.asarray(sample[n]) for n in names}))

    return values
