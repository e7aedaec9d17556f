"""Regions of the NPU in integers: what they are given on samples is observed, and their graphs of layers are quantised by it.

A quantised region takes and gives integers. Its body says what they mean (`qnn.dequantize`, the calls, `qnn.quantize`); what runs is
the graph of layers that two of its attributes name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray as Array

from compass_core.dataclass import dataclass
from compassc.graph import Graph, Tensor, files
from compassc.quantizer.model import Outcome, quantize_model
from compassc.quantizer.settings import Settings
from compassc.relay.attributes import DictAttrs
from compassc.relay.backend.executors import create_executor
from compassc.relay.backend.layers import graph_of
from compassc.relay.backend.regions import PREBUILT, is_region
from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, Function, GlobalVar, Tuple, TupleGetItem, Var
from compassc.relay.module import MAIN, BaseFunc, IRModule
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import changed, constant
from compassc.relay.passes.defuse_ops import with_arguments
from compassc.relay.types import TensorType, TupleType, Type
from compassc.relay.visit import rewrite

Sample = Mapping[str, Array[np.generic]]


@dataclass(frozen=True)
class Observed:
    """A region, the name of its function (`global_symbol`, else regionN by the order of calls), and what it is given: an array for
    each parameter, sample by sample."""

    region: Function
    name: str
    given: list[Sequence[Array[np.generic]]]


@dataclass(frozen=True)
class QuantizedRegion:
    """A region in integers: its name, its float graph of layers, and what the quantiser made of it."""

    name: str
    graph: Graph
    outcome: Outcome


def region_of(e: Expr) -> Function | None:
    """The region that an expression calls; None where it calls none."""
    return e.op if isinstance(e, Call) and isinstance(e.op, Function) and is_region(e.op) else None


def _is_function(e: Expr) -> bool:
    return isinstance(e, Function)


def _main(module: IRModule) -> Function:
    main = module[MAIN]
    assert isinstance(main, Function)
    return main


def observe(module: IRModule, samples: Iterable[Sample]) -> list[Observed]:
    """The regions of `main` in the order of their calls, with what each is given on samples, which the host computes in floats.
    `samples`: arrays by the names of the parameters of `main`."""
    main = _main(module)
    asked: list[tuple[Function, Sequence[Expr]]] = []

    def inlined(before: Expr, after: Expr) -> Expr:
        region = region_of(before)
        if region is None:
            return after
        assert isinstance(after, Call)
        asked.append((region, after.args))
        return with_arguments(region, after.args)

    rewrite(main.body, inlined, _is_function)
    probe = Function(main.params, Tuple([a for _, args in asked for a in args]))
    functions: dict[GlobalVar, BaseFunc] = {v: f for v, f in module.functions.items() if v.name_hint != MAIN}
    run = create_executor("graph", changed(module, {**functions, GlobalVar(MAIN): probe})).evaluate()
    found = [Observed(f, str(f.attrs.get("global_symbol", f"region{n}")), []) for n, (f, _) in enumerate(asked)]
    for sample in samples:
        values = iter(run(**sample))
        for one, (_, args) in zip(found, asked, strict=True):
            one.given.append([next(values).numpy() for _ in args])
    return found


def quantize_regions(
    module: IRModule,
    observed: Sequence[Observed],
    settings: Callable[[Graph], Settings | str],
    place: Callable[[str], Path],
) -> tuple[IRModule, list[QuantizedRegion]]:
    """The module with the regions of `main` in integers, and what became of each.

    `observed`: what `observe` gives for this module. `settings`: those of the quantiser for a graph. `place`: the file of the quantised
    graph of a region of a name; its weights are beside it. CompassError as of `quantize_model`.
    """
    main = _main(module)
    made: list[QuantizedRegion] = []
    new: dict[int, _Integers] = {}
    for one in observed:
        graph = graph_of(one.region, one.name)
        names = [t.name for t in graph.inputs]
        outcome = quantize_model(
            graph, [dict(zip(names, arrays, strict=True)) for arrays in one.given], settings(graph)
        )
        path = place(one.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        files.save(outcome.graph, path)
        new[id(one.region)] = _Integers(one.region, outcome.graph, path)
        made.append(QuantizedRegion(one.name, graph, outcome))

    def replaced(before: Expr, after: Expr) -> Expr:
        if (region := region_of(before)) is not None:
            assert isinstance(after, Call)
            return new[id(region)].called(after)
        if isinstance(after, TupleGetItem) and isinstance(after.tuple_value, Tuple):
            return after.tuple_value.fields[after.index]
        return after

    functions: dict[GlobalVar, BaseFunc] = dict(module.functions)
    functions[module.get_global_var(MAIN)] = main.replace(body=rewrite(main.body, replaced, _is_function))
    return infer_type.run(changed(module, functions)), made


class _Integers:
    """A region whose parameters and results are those of a quantised graph."""

    def __init__(self, region: Function, graph: Graph, path: Path) -> None:
        self.inputs, self.outputs = graph.inputs, graph.outputs
        params = [
            Var(p.name_hint, TensorType(t.shape, t.dtype)) for p, t in zip(region.params, self.inputs, strict=True)
        ]
        reals = [_real(p, t) for p, t in zip(params, self.inputs, strict=True)]
        body = with_arguments(region, reals)
        kinds = [TensorType(t.shape, t.dtype) for t in self.outputs]
        if isinstance(region.ret_type, TupleType):
            fields = [body.fields[i] if isinstance(body, Tuple) else TupleGetItem(body, i) for i in range(len(kinds))]
            made: Expr = Tuple([_number(e, t) for e, t in zip(fields, self.outputs, strict=True)])
            kind: Type = TupleType(kinds)
        else:
            made, kind = _number(body, self.outputs[0]), kinds[0]
        self.function = region.replace(
            params=tuple(params), body=made, ret_type=kind, attrs=DictAttrs({**region.attrs, PREBUILT: str(path)})
        )

    def called(self, e: Call) -> Expr:
        """A call that takes and gives reals, as the one of the region in floats."""
        made = Call(self.function, [_number(a, t) for a, t in zip(e.args, self.inputs, strict=True)], None, (), e.span)
        if not isinstance(self.function.ret_type, TupleType):
            return _real(made, self.outputs[0])
        return Tuple([_real(TupleGetItem(made, i), t) for i, t in enumerate(self.outputs)])


def _parameters(t: Tensor) -> tuple[Expr, Expr]:
    """Scale and zero point as the operators of `qnn` take them."""
    scale, zero = t.scalar_scale, t.scalar_zero
    return constant(np.float32(1 / scale)), constant(np.int32(-zero))


def _number(e: Expr, t: Tensor) -> Expr:
    """Reals as the integers of a tensor; as they are where it holds reals."""
    return call("qnn.quantize", e, *_parameters(t), axis=-1, out_dtype=t.dtype) if t.is_integer else e


def _real(e: Expr, t: Tensor) -> Expr:
    """What the integers of a tensor mean."""
    return call("qnn.dequantize", e, *_parameters(t), axis=-1, out_dtype="float32") if t.is_integer else e
