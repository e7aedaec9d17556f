"""On which device each value of a program is: sets of values that share one, joined over the whole module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from compass_core.dataclass import dataclass
from compassc.relay.analysis.wellformed import ON_DEVICE
from compassc.relay.attributes import PARAM_DEVICES, RESULT_DEVICE, Attrs
from compassc.relay.errors import DiagnosticError
from compassc.relay.expr import (
    Call,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
)
from compassc.relay.module import IRModule
from compassc.relay.operators import Op, op_name
from compassc.relay.types import FuncType
from compassc.relay.visit import is_primitive, post_order
from compassc.targets.compilation import CompilationConfig
from compassc.targets.virtual_device import UNCONSTRAINED, VirtualDevice

DEVICE_COPY = "device_copy"
ON_HOST = {"vm.shape_of", "vm.shape_func"}
"""Operators whose results are values of shapes: these are the host's."""


@dataclass(eq=False)
class Domain:
    """The values that share a device; of functions, those of its parameters and its result."""

    device: VirtualDevice | None = None
    parts: list[Domain] = field(default_factory=list)
    """Of a function: its parameters, then its result."""
    above: Domain | None = None

    def find(self) -> Domain:
        """What stands for all domains that are one with this."""
        root = self
        while root.above is not None:
            root = root.above
        return root

    @property
    def result(self) -> Domain:
        """Of a function: that of its result, whatever functions it gives in between."""
        root = self.find()
        while root.parts:
            root = root.parts[-1].find()
        return root


class IncompatibleDevices(DiagnosticError):
    """A value that is on two devices."""


def join(a: Domain, b: Domain, where: Expr) -> None:
    """Make two domains one; of a function and a tensor, all that the function takes and gives is where the tensor is.
    IncompatibleDevices where both are known and differ."""
    todo = [(a, b)]
    while todo:
        x, y = (d.find() for d in todo.pop())
        if x is y:
            continue
        if bool(x.parts) != bool(y.parts):
            whole, one = (x, y) if x.parts else (y, x)
            todo += [(part, one) for part in whole.parts]
            continue
        if x.device is not None and y.device is not None and x.device != y.device:
            raise IncompatibleDevices(
                f"Incompatible virtual devices: {x.device} and {y.device}",
                getattr(where, "span", None) or where.made_at_,
                code="relay-device",
                help="copy between them: device_copy(data, source, destination)",
            )
        todo += zip(x.parts, y.parts, strict=True)
        y.above = x
        x.device = x.device if x.device is not None else y.device


class Domains:
    """The domain of each expression of a typed module, after everything that is said of devices was taken in."""

    def __init__(self, module: IRModule, config: CompilationConfig) -> None:
        self.config = config
        self._of: dict[int, Domain] = {}
        self._kept: list[Expr] = []
        self.callees: dict[int, Domain] = {}
        self._functions = {v.name_hint: f for v, f in module.functions.items() if isinstance(f, Function)}
        for f in self._functions.values():
            for e in post_order(f, is_primitive):
                self._take(e)

    def of(self, e: Expr) -> Domain:
        """The domain of an expression."""
        if isinstance(e, GlobalVar) and e.name_hint in self._functions:
            e = self._functions[e.name_hint]
        if id(e) not in self._of:
            self._kept.append(e)
            t = e.checked_type_ if not isinstance(e, (Op, Constructor)) else None
            self._of[id(e)] = function_domain(len(t.arg_types)) if isinstance(t, FuncType) else Domain()
        return self._of[id(e)].find()

    def device(self, e: Expr) -> VirtualDevice:
        """Where the value of an expression is; of a function, where its result is."""
        return self.known(self.of(e))

    def known(self, domain: Domain) -> VirtualDevice:
        """Where what is in a domain is, of functions their results: that of the default where nothing says it."""
        found = domain.result.device
        return found if found is not None else self.config.default_primitive_virtual_device

    def settle(self, domain: Domain, device: VirtualDevice | None = None) -> None:
        """Say where the results of a function are, unless that is known: at a device, by default that of the configuration. Parameters
        of which nothing is said are where the result is."""
        result = domain.result
        if result.device is None:
            result.device = device if device is not None else self.config.default_primitive_virtual_device
        for part in domain.find().parts[:-1]:
            self.settle(part, result.device)

    def said(self, device: object) -> Domain:
        """The domain of a device that an annotation says; a new one where it says none."""
        if not isinstance(device, VirtualDevice) or device.device_type_int == UNCONSTRAINED:
            return Domain()
        return Domain(self.config.canonical(device))

    # ------------------------------------------------------------------------------------------------------------ rules

    def _all(self, where: Expr, parts: Sequence[Expr]) -> None:
        for part in parts:
            join(self.of(where), self.of(part), where)

    def _take(self, e: Expr) -> None:
        if isinstance(e, Function):
            self._function(e)
        elif isinstance(e, Call):
            self._call(e)
        elif isinstance(e, Tuple):
            self._all(e, e.fields)
        elif isinstance(e, TupleGetItem):
            join(self.of(e).result, self.of(e.tuple_value), e)
        elif isinstance(e, Let):
            join(self.of(e.var), self.of(e.value), e)
            self._all(e, [e.body])
        elif isinstance(e, If):
            join(self.of(e).result, self.of(e.cond), e)
            self._all(e, [e.true_branch, e.false_branch])
        elif isinstance(e, Match):
            join(self.of(e).result, self.of(e.data), e)
            for clause in e.clauses:
                self._pattern(e.data, clause.lhs)
                self._all(e, [clause.rhs])
        elif isinstance(e, RefCreate):
            self._all(e, [e.value])
        elif isinstance(e, RefRead):
            self._all(e, [e.ref])
        elif isinstance(e, RefWrite):
            self._all(e, [e.ref, e.value])

    def _pattern(self, data: Expr, pattern: Pattern) -> None:
        if isinstance(pattern, PatternVar):
            join(self.of(pattern.var).result, self.of(data).result, data)
        elif isinstance(pattern, (PatternTuple, PatternConstructor)):
            for p in pattern.patterns:
                self._pattern(data, p)

    def _function(self, f: Function) -> None:
        own = self.of(f)
        params, result = f.attrs.get(PARAM_DEVICES, ()), f.attrs.get(RESULT_DEVICE)
        for part, device in zip(own.parts[:-1], params):
            join(part, self.said(device), f)
        join(own.result, self.said(result), f)
        if is_primitive(f):
            for part in own.parts[:-1]:
                join(own.result, part, f)
            return
        for p, part in zip(f.params, own.parts[:-1], strict=True):
            join(part, self.of(p), p)
        join(own.parts[-1], self.of(f.body), f.body)

    def callee(self, e: Call) -> Domain:
        """The domain of what a call calls: for operators one for each call."""
        if not isinstance(e.op, (Op, Constructor)):
            return self.of(e.op)
        if id(e) not in self.callees:
            self._kept.append(e)
            self.callees[id(e)] = self._operator(e)
        return self.callees[id(e)].find()

    def _operator(self, e: Call) -> Domain:
        name, attrs = op_name(e), e.attrs
        if name == ON_DEVICE and isinstance(attrs, Attrs):
            device = attrs["virtual_device"]
            ends = [self.said(device if attrs[n] else None) for n in ("constrain_body", "constrain_result")]
            return Domain(parts=ends)
        if name == DEVICE_COPY and isinstance(attrs, Attrs):
            return Domain(parts=[self.said(attrs["src_virtual_device"]), self.said(attrs["dst_virtual_device"])])
        if name in ON_HOST:
            return Domain(parts=[*[Domain() for _ in e.args], Domain(self.config.host_virtual_device)])
        one = Domain()
        return Domain(parts=[one] * (len(e.args) + 1))

    def _call(self, e: Call) -> None:
        own = self.callee(e)
        for part, a in zip(own.parts[:-1], e.args, strict=True):
            join(part, self.of(a), a)
        join(own.parts[-1], self.of(e), e)


def function_domain(params: int) -> Domain:
    """The domain of a function of which nothing is said."""
    return Domain(parts=[Domain() for _ in range(params + 1)])
