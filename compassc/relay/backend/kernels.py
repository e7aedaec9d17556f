"""Kernels: the tensor expressions of a fused function, scheduled and built."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Generic, TypeVar

import numpy as np

from compass_core.dataclass import dataclass
from compass_runtime.module import Module
from compass_runtime.packed import get_global_func
from compassc import services, te
from compassc.ir import IRModule as KernelModule
from compassc.ir.exprs import Expr as KernelExpr
from compassc.operators.implementations import HOSTS, implementations_for
from compassc.relay.backend.referenced import referenced, tensors_of
from compassc.relay.contrib import load
from compassc.relay.equal import structural_equal, structural_hash
from compassc.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from compassc.relay.infer.errors import error
from compassc.relay.operators import Op
from compassc.relay.ops.declare import NoExpression
from compassc.relay.strategy import OpImplementation, select_implementation
from compassc.relay.tuned import knobs_of, schedule_of
from compassc.relay.types import TupleType
from compassc.relay.visit import post_order
from compassc.targets import Target, build, lowered
from compassc.te.schedule.schedule import Schedule
from compassc.te.tensor import PlaceholderOp, Tensor

LONGEST_NAME = 80
MOST_CONSTANTS = 64
"""How many numbers of a constant are written into a kernel."""


Made = TypeVar("Made")
"""What is made of each kernel: for programs its module."""


class Kernels(Generic[Made]):
    """The kernels of a program: equal functions are one kernel. `build`: the module of a function and its name."""

    def __init__(self, build: Callable[[Function, str], Made], prefix: str) -> None:
        self.build, self.prefix = build, prefix
        self.modules: dict[str, Made] = {}
        self._known: dict[int, list[tuple[Function, str]]] = {}

    def name_of(self, f: Function) -> str:
        """The name of the kernel of a function, which is built when it is met first. One for another compiler has its own."""
        symbol = f.attrs.get("global_symbol") if f.attrs.get("Compiler") else None
        if symbol is not None:
            name = str(symbol)
            if name not in self.modules:
                self.modules[name] = self.build(f, name)
            return name
        key = structural_hash(f)
        for known, name in self._known.get(key, ()):
            if structural_equal(known, f):
                return name
        name = kernel_name(f, self.prefix, self.modules)
        self.modules[name] = self.build(f, name)
        self._known.setdefault(key, []).append((f, name))
        return name


def kernel_name(f: Function, prefix: str, taken: Container[str]) -> str:
    """The name of the kernel of a function: that of its operators, with a number where it is taken."""
    called = [e.op.name for e in post_order(f) if isinstance(e, Call) and isinstance(e.op, Op)]
    name = "_".join(["fused", *called])
    if len(name) > LONGEST_NAME:
        name = f"{name[:LONGEST_NAME]}_{structural_hash(f) & (1 << 64) - 1:x}_"
    name = prefix + name.replace(".", "_")
    number, found = 0, name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def prefix_of(mod_name: str) -> str:
    """What names of kernels of a module begin with."""
    return f"tvmgen_{mod_name}_" if mod_name else "tvmgen_"


@dataclass(frozen=True)
class Scheduled:
    """A fused function as tensor expressions: inputs, results, and the schedule that computes these."""

    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    schedule: Schedule

    @property
    def args(self) -> list[Tensor]:
        """The parameters of the kernel."""
        return [*self.inputs, *self.outputs]


def scheduled(f: Function, target: Target) -> Scheduled:
    """The tensor expressions of a fused function, and their schedule: that of the implementation that was chosen for its most
    complex call, else the default one."""
    inputs, outputs, anchor = expressed(f, target)
    return Scheduled(inputs, outputs, _chosen_schedule(outputs, anchor, target))


def _chosen_schedule(outputs: Sequence[Tensor], anchor: Chosen | None, target: Target) -> Schedule:
    if anchor is not None and anchor.implementation is not None and anchor.implementation.schedule is not None:
        return anchor.implementation.schedule(anchor.call.attrs, outputs, target)
    knobs = knobs_of(anchor.call, target) if anchor is not None else {}
    made: Schedule = services.default_schedule(outputs, target, **knobs)
    return made


def lower_kernel(f: Function, target: Target, name: str) -> KernelModule:
    """The module of loops of a fused function: inputs first, then results."""
    return lowered(*_searched(f, target, name), target, name)


def build_kernel(f: Function, target: Target, name: str) -> Module:
    """The module of a fused function: inputs first, then results."""
    return build(*_searched(f, target, name), target, name)


def _searched(f: Function, target: Target, name: str) -> tuple[Schedule | KernelModule, list[Tensor]]:
    """The schedule on record for all of a fused function, or its module there, else that of `scheduled`; and its parameters."""
    inputs, outputs, anchor = expressed(f, target)
    args = [*inputs, *outputs]
    found = schedule_of(args, target, name) or _chosen_schedule(outputs, anchor, target)
    if isinstance(found, KernelModule):
        found = found.replace(functions=(found.entry_func.replace(name=name),), entry=name)
    return found, args


def expressed(f: Function, target: Target) -> tuple[list[Tensor], list[Tensor], Chosen | None]:
    """The parameters of a fused function, its results, and its most complex call, if it has calls."""
    chosen: list[Chosen] = []
    with implementations_for(target.kind.name):
        inputs, outputs = expressions(f, target, chosen)
    return inputs, outputs, max(chosen, key=lambda c: c.pattern, default=None)


def build_external(f: Function) -> Module:
    """The module of a function for another compiler, by the global function `relay.ext.COMPILER`. CompassError where there is
    none."""
    compiler = str(f.attrs["Compiler"])
    if not f.attrs.get("global_symbol"):
        raise error(
            f, "External function has not been attached a name yet.", help="give it the attribute global_symbol"
        )
    load(compiler)
    generator = get_global_func(f"relay.ext.{compiler}", allow_missing=True)
    if generator is None:
        raise error(
            f,
            f"Failed to find the external codegen tool for relay.ext.{compiler}",
            help=f'register it: tvm.register_func("relay.ext.{compiler}", function)',
        )
    made = generator.body(f.without_attr("Compiler"))
    if not isinstance(made, Module):
        raise error(f, f"relay.ext.{compiler} gave a {type(made).__name__}, not a module")
    return made


@dataclass(frozen=True)
class Chosen:
    """How a call is computed: the pattern of its operator, and what its strategy chose, if it has one."""

    pattern: int
    implementation: OpImplementation | None
    call: Call


def expressions(f: Function, target: Target, chosen: list[Chosen]) -> tuple[list[Tensor], list[Tensor]]:
    """Placeholders for the parameters of a fused function, and the tensors of its result. How calls are computed is added to
    `chosen`."""
    given = [
        [
            te.placeholder(t.concrete_shape, t.dtype, name=p.name_hint or "placeholder")
            for t in tensors_of(p.checked_type)
        ]
        for p in f.params
    ]
    inputs = [t for tensors in given for t in tensors]
    outputs: list[Tensor] = []
    for t in results_of(f, given, target, chosen):
        alias = isinstance(t.op, PlaceholderOp) or any(t is o for o in outputs)
        outputs.append(_copied(t) if alias else t)
    return inputs, outputs


def results_of(f: Function, given: Sequence[list[Tensor]], target: Target, chosen: list[Chosen] | None) -> list[Tensor]:
    """The tensors of the result of a fused function of the tensors of each parameter. Without `chosen` no strategies are asked."""
    values = {id(p): tensors for p, tensors in zip(f.params, given, strict=True)}
    for e in post_order(f.body):
        if id(e) not in values:
            values[id(e)] = _value(e, values, target, chosen)
    return values[id(f.body)]


def _value(e: Expr, values: dict[int, list[Tensor]], target: Target, chosen: list[Chosen] | None) -> list[Tensor]:
    if isinstance(e, Op):
        return []
    if isinstance(e, Constant) and not e.data.shape:
        number = e.array.item()
        return [te.compute((), lambda *i: te.const(number, e.data.dtype), name="constant")]
    if isinstance(e, Constant) and e.array.size <= MOST_CONSTANTS:
        return [_constants(e)]
    if isinstance(e, Tuple):
        return [t for field in e.fields for t in values[id(field)]]
    if isinstance(e, TupleGetItem):
        t = e.tuple_value.checked_type
        assert isinstance(t, TupleType)
        before = sum(len(tensors_of(f)) for f in t.fields[: e.index])
        return values[id(e.tuple_value)][before : before + len(tensors_of(t.fields[e.index]))]
    if isinstance(e, Call) and isinstance(e.op, Op):
        return call_results(e, e.op, [t for a in e.args for t in values[id(a)]], target, chosen)
    what = "a nested function" if isinstance(e, Function) else f"a {type(e).__name__}"
    raise error(e, f"a fused function cannot contain {what}", help="let FuseOps make fused functions")


def call_results(e: Call, op: Op, args: Sequence[Tensor], target: Target, chosen: list[Chosen] | None) -> list[Tensor]:
    """The tensors of the result of a call of an operator; how it is computed is added to `chosen`, if that is given: without, its
    strategy is not asked, which may be made of this expression itself."""
    pattern = int(op.get_attr("TOpPattern") or 0)
    if chosen is not None and op.get_attr("FTVMStrategy") is not None:
        implementation, outputs = select_implementation(op, e.attrs, args, e.checked_type, target)
        chosen.append(Chosen(pattern, implementation, e))
        return outputs
    if chosen is not None:
        chosen.append(Chosen(pattern, None, e))
    host = op.reference is not None and target.kind.name in HOSTS
    if op.compute is None and not host:
        raise error(
            e,
            f"operator {op.name} has no tensor expression, so that no kernel can be made of it",
            help=f"register one with relay.op.register_compute('{op.name}', ...), or run the debug executor",
        )
    if op.compute is not None:
        try:
            return list(op.compute(e.attrs, args, e.checked_type))
        except NoExpression:
            if not host:
                raise
    return referenced(op, e.attrs, [a.checked_type for a in e.args], e.checked_type, args)


def _constants(e: Constant) -> Tensor:
    """A few numbers by a chain of choices."""
    places = list(np.ndindex(e.array.shape))

    def element(*index: te.Var) -> KernelExpr:
        found = te.const(0, e.data.dtype)
        for place in places:
            here = te.all(*(i == p for i, p in zip(index, place, strict=True)))
            found = te.Select(here, te.const(e.array[place].item(), e.data.dtype), found)
        return found

    made: Tensor = te.compute(e.array.shape, element, name="constants", tag="injective")
    return made


def _copied(t: Tensor) -> Tensor:
    made: Tensor = te.compute(t.shape, lambda *i: t[i] if i else t[()], name="copied", tag="injective")
    return made
