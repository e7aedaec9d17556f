"""Say where each value of a program is computed, and copy where devices differ.

Before: a typed module, in which `on_device` and `device_copy` say something of some values.
After: functions have the attributes `param_virtual_devices` and `result_virtual_device`; `device_copy` stands where a value is
wanted on another device than it is on; `on_device`, with its result on the device, too, stands around values of lets and around
arguments that are elsewhere than their call. What nothing is said of is where it is used, and else on the default device of the
configuration. A second run changes nothing. Kernels stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compassc.relay.analysis.wellformed import ON_DEVICE
from compassc.relay.attributes import PARAM_DEVICES, RESULT_DEVICE, Attrs
from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Constructor, Expr, Function, GlobalVar, Let, TupleGetItem, Var
from compassc.relay.module import BaseFunc, IRModule
from compassc.relay.operators import Op, op_name
from compassc.relay.passes import infer_type
from compassc.relay.passes._device_domains import DEVICE_COPY, Domains, IncompatibleDevices
from compassc.relay.passes._functions import changed
from compassc.relay.visit import children, is_primitive, post_order, rewrite, with_children
from compassc.targets.compilation import CompilationConfig
from compassc.targets.virtual_device import VirtualDevice

NAME = "PlanDevices"
LEVEL = 0
REQUIRED = ("InferType",)
_ANYWHERE = (Op, Constructor, GlobalVar, Var, Function)
"""What is not wrapped: it is everywhere, or says itself where it is."""


def run(module: IRModule, config: CompilationConfig) -> IRModule:
    module = infer_type.run(_each(module, _settled))
    try:
        domains = Domains(module, config)
    except IncompatibleDevices:
        module = infer_type.run(_each(module, _unshared))
        domains = Domains(module, config)
    functions = [f for f in module.functions.values() if isinstance(f, Function)]
    for f in functions:
        for e in reversed(list(post_order(f, is_primitive))):
            _default(domains, e)
    return infer_type.run(_each(module, _Placed(domains).function))


def _each(module: IRModule, fn: Callable[[Function], Function]) -> IRModule:
    functions: dict[GlobalVar, BaseFunc] = {
        v: fn(f) if isinstance(f, Function) and not is_primitive(f) else f for v, f in module.functions.items()
    }
    return changed(module, functions)


def on(e: Expr, device: VirtualDevice) -> Expr:
    """An expression that is on a device, and its result, too."""
    if isinstance(e, _ANYWHERE):
        return e
    return call(ON_DEVICE, e, virtual_device=device, constrain_result=True, constrain_body=True)


def _settled(f: Function) -> Function:
    """The function with annotations that are meant for results, too: at the top of functions and of values of lets; of tuples they
    are of the item."""

    def fn(before: Expr, after: Expr) -> Expr:
        if isinstance(after, Function) and not is_primitive(after):
            return after.replace(body=_with_result(after.body))
        if isinstance(after, Let):
            return after.replace(value=_with_result(after.value))
        if isinstance(after, TupleGetItem) and op_name(after.tuple_value) == ON_DEVICE:
            assert isinstance(after.tuple_value, Call)
            return after.tuple_value.replace(args=(after.replace(tuple_value=after.tuple_value.args[0]),))
        return after

    made = rewrite(f, fn, is_primitive)
    assert isinstance(made, Function), "a function stays one"
    return made


def _unshared(f: Function) -> Function:
    """The function in which each use of a constant, and of an annotated value, has one of its own: uses may be on several
    devices."""

    def own(e: Expr) -> Expr:
        free = (
            op_name(e) == ON_DEVICE and isinstance(e, Call) and e.attrs is not None and not e.attrs["constrain_result"]
        )
        return e.replace() if free or isinstance(e, Constant) else e

    def fn(before: Expr, after: Expr) -> Expr:
        parts = children(after)
        return with_children(after, [own(c) for c in parts]) if parts and not is_primitive(after) else after

    made = rewrite(f, fn, is_primitive)
    assert isinstance(made, Function), "a function stays one"
    return made


def _with_result(e: Expr) -> Expr:
    if op_name(e) != ON_DEVICE or not isinstance(e, Call) or not isinstance(e.attrs, Attrs):
        return e
    return e.replace(attrs=e.attrs.changed(constrain_result=True)) if e.attrs["constrain_body"] else e


def _default(domains: Domains, e: Expr) -> None:
    """Say where a function, a call or the value of a let is, of which nothing is said."""
    if isinstance(e, Function):
        domains.settle(domains.of(e))
    elif isinstance(e, Call):
        domains.settle(domains.callee(e))
    elif isinstance(e, Let):
        domains.settle(domains.of(e.var), domains.device(e))


class _Placed:
    """Functions with copies and annotations."""

    def __init__(self, domains: Domains) -> None:
        self.domains = domains
        self._made: dict[int, Expr] = {}

    def function(self, f: Function) -> Function:
        """The function, and those within it."""
        for e in post_order(f, is_primitive):
            self._made[id(e)] = e if is_primitive(e) else self._one(e)
        made = self._made[id(f)]
        assert isinstance(made, Function), "a function stays one"
        return made

    def _child(self, e: Expr, around: VirtualDevice, wanted: VirtualDevice | None = None) -> Expr:
        """A part of what is on the device `around`, on the device `wanted`, by default the same."""
        made, own = self._made[id(e)], self.domains.device(e)
        wanted = around if wanted is None else wanted
        if isinstance(e, (Op, Constructor)):
            return made
        if own != around:
            made = on(made, own)
        if own != wanted:
            made = call(DEVICE_COPY, made, src_virtual_device=own, dst_virtual_device=wanted)
            made = on(made, wanted) if wanted != around else made
        return made

    def _one(self, e: Expr) -> Expr:
        own = self.domains.device(e)
        if isinstance(e, Function):
            return self._function(e)
        if isinstance(e, Call):
            return self._call(e, own)
        if isinstance(e, Let):
            value = on(self._child(e.value, self.domains.device(e.value)), self.domains.device(e.var))
            return with_children(e, [e.var, value, self._child(e.body, own)])
        return with_children(e, [self._child(c, own) for c in children(e)])

    def _function(self, e: Function) -> Function:
        domain = self.domains.of(e)
        result = self.domains.known(domain)
        params = tuple([self.domains.known(p) for p in domain.parts[:-1]])
        made = e.replace(body=self._child(e.body, result))
        return made.with_attr({PARAM_DEVICES: params, RESULT_DEVICE: result})

    def _call(self, e: Call, own: VirtualDevice) -> Expr:
        domain = self.domains.callee(e)
        wanted: Sequence[VirtualDevice] = [self.domains.known(p) for p in domain.parts[:-1]]
        if op_name(e) in (ON_DEVICE, DEVICE_COPY):
            return self._child(e.args[0], own)
        args = [self._child(a, own, w) for a, w in zip(e.args, wanted, strict=True)]
        return with_children(e, [self._child(e.op, self.domains.device(e.op)), *args])
