"""Which calls of a function run where: those of the NPU become functions of their own (`Compiler`), one for each region.

A value has a depth: how often the way to it goes from one place to the other, at most. Calls of one place at one depth are a
region. What they take from elsewhere is of a smaller depth, so that regions never wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from compassc.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from compassc.relay.operators import Op
from compassc.relay.types import TupleType, Type
from compassc.relay.visit import children, post_order, with_children

COMPILER = "compass"
"""The attribute `Compiler` of functions that are regions of the NPU."""
PREBUILT = "compass.pre_build.ir_txt"
"""The attribute of a region that names the file of its graph of layers; that of others is made of its calls."""


@dataclass(eq=False)
class Region:
    """Calls that run on the NPU together. `taken`: what they take from elsewhere, with the parameter for it, by identity."""

    calls: list[Call] = field(default_factory=list)
    taken: dict[int, tuple[Expr, Var]] = field(default_factory=dict)
    inner: dict[int, Expr] = field(default_factory=dict)


def is_region(f: Function) -> bool:
    """Whether a function runs on the NPU."""
    return f.attrs.get("Compiler") == COMPILER


def has_regions(f: Function) -> bool:
    """Whether it was said of a function which of its calls run on the NPU."""
    return any(isinstance(e, Function) and is_region(e) for e in post_order(f.body))


def is_light(e: Expr) -> bool:
    """Whether an expression computes nothing."""
    return isinstance(e, (Constant, Op, Tuple, TupleGetItem, Var))


def partition(f: Function, on_npu: Callable[[Call], bool]) -> Function:
    """The typed function with the calls of operators of which `on_npu` holds in regions. What such a call takes are tensors,
    and tuples that are written out."""
    return _Partition(f, on_npu).function()


class _Partition:
    """A function with the regions of its calls. By identity of expressions: the depth, the computed values of which a value
    consists (`sources`), and what takes the place of an expression (`made`)."""

    def __init__(self, f: Function, on_npu: Callable[[Call], bool]) -> None:
        self.f = f
        self.order = list(post_order(f.body, _is_closed))
        self.npu = {id(e) for e in self.order if isinstance(e, Call) and isinstance(e.op, Op) and on_npu(e)}
        self.depths: dict[int, int] = {}
        self.sources: dict[int, list[Expr]] = {}
        for e in self.order:
            self._place(e)
        self.regions: dict[int, Region] = {}
        for e in self.order:
            if isinstance(e, Call) and id(e) in self.npu:
                self.regions.setdefault(self.depths[id(e)], Region()).calls.append(e)
        self.asked = self._asked()
        self.made: dict[int, Expr] = {id(e): e for e in self.order if is_light(e) and not self.sources[id(e)]}

    def _place(self, e: Expr) -> None:
        """Find depth and sources of a value."""
        sources = {id(s): s for c in children(e) for s in self.sources.get(id(c), ())}
        light, own = is_light(e), id(e) in self.npu
        self.sources[id(e)] = list(sources.values()) if light else [e]
        steps = [self.depths[i] + (not light and own != (i in self.npu)) for i in sources]
        self.depths[id(e)] = max(steps, default=0)

    def _asked(self) -> set[int]:
        """The calls of regions whose values are used elsewhere."""
        found = {id(s) for s in self.sources[id(self.f.body)]}
        for e in self.order:
            if not is_light(e):
                for s in (s for c in children(e) for s in self.sources[id(c)]):
                    if id(e) not in self.npu or self.depths[id(e)] != self.depths[id(s)]:
                        found.add(id(s))
        return found & self.npu

    def function(self) -> Function:
        """The function after it."""
        for e in sorted(self.order, key=lambda e: self.depths[id(e)]):
            if id(e) in self.made:
                continue
            if id(e) in self.npu:
                self._call(self.regions[self.depths[id(e)]])
            else:
                self.made[id(e)] = self._elsewhere(e)
        return self.f.replace(body=self.made[id(self.f.body)]) if self.regions else self.f

    def _elsewhere(self, e: Expr) -> Expr:
        """An expression outside of regions, of what takes the place of its parts."""
        if isinstance(e, TupleGetItem) and isinstance(whole := self.made[id(e.tuple_value)], Tuple):
            return whole.fields[e.index]
        return e if _is_closed(e) else with_children(e, [self.made[id(c)] for c in children(e)])

    def _call(self, region: Region) -> None:
        """Make the call of a region, and what stands for the values of its calls."""
        for c in region.calls:
            region.inner[id(c)] = with_children(c, [self._argument(a, region) for a in children(c)])
        results = [c for c in region.calls if id(c) in self.asked]
        tensors = [one for c in results for one in _fields(region.inner[id(c)], c.checked_type)]
        single = len(tensors) == 1
        body = tensors[0][0] if single else Tuple([e for e, _ in tensors])
        kind = tensors[0][1] if single else TupleType([t for _, t in tensors])
        attrs = {"Primitive": 1, "Compiler": COMPILER}
        function = Function([v for _, v in region.taken.values()], body, kind, (), attrs)  # type: ignore[arg-type]  # a mapping becomes DictAttrs
        made = Call(function, [self.made[id(e)] for e, _ in region.taken.values()], None, (), region.calls[0].span)
        parts: Iterator[Expr] = iter([made] if single else [TupleGetItem(made, i) for i in range(len(tensors))])
        self.made.update((id(c), made) for c in region.calls)  # no one asks for it but where it is a result
        for c in results:
            t = c.checked_type
            self.made[id(c)] = Tuple([next(parts) for _ in t.fields]) if isinstance(t, TupleType) else next(parts)

    def _argument(self, e: Expr, region: Region) -> Expr:
        """What stands for a value within a region."""
        if isinstance(e, (Op, Constant)):
            return e
        if id(e) in region.inner:
            return region.inner[id(e)]
        if isinstance(e, Tuple):
            return Tuple([self._argument(f, region) for f in e.fields])
        if isinstance(e, TupleGetItem) and isinstance(e.tuple_value, Tuple):
            return self._argument(e.tuple_value.fields[e.index], region)
        if isinstance(e, TupleGetItem) and id(e.tuple_value) in region.inner:
            return TupleGetItem(region.inner[id(e.tuple_value)], e.index)
        if id(e) not in region.taken:
            region.taken[id(e)] = (e, Var(f"p{len(region.taken)}", e.checked_type))
        return region.taken[id(e)][1]


def _is_closed(e: Expr) -> bool:
    return isinstance(e, Function)


def _fields(e: Expr, t: Type) -> list[tuple[Expr, Type]]:
    """The tensors of a value, with their types."""
    return [(TupleGetItem(e, i), f) for i, f in enumerate(t.fields)] if isinstance(t, TupleType) else [(e, t)]
