"""Make a function of each region that other compilers take.

Before: a typed module with annotations (`AnnotateTarget`, `MergeCompilerRegions`).
After: regions are functions of the module with the attributes `Compiler`, `global_symbol` (their name, which is that of the
module, the compiler, the function and a number), `Primitive` and `Inline`; annotations are gone. Constants are part of functions
with `bind_constants`, arguments without. A global function `relay.ext.COMPILER.optimize` is asked what becomes of each.
"""

from __future__ import annotations

import re

from compass_runtime.packed import get_global_func
from compassc.ir.errors import ExpressionError
from compassc.relay.bind import bind
from compassc.relay.expr import Call, Constant, Expr, Function, GlobalVar, Tuple, TupleGetItem, Var
from compassc.relay.infer.errors import error
from compassc.relay.module import MAIN, BaseFunc, IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes import infer_type
from compassc.relay.passes._annotated import (
    BEGIN,
    DEFAULT,
    END,
    Region,
    RegionSet,
    annotation,
    compiler_of,
    is_closed,
)
from compassc.relay.passes._functions import changed, rewrite_functions
from compassc.relay.types import TupleType
from compassc.relay.visit import children, depth_first, post_order, rewrite, with_children

NAME = "PartitionGraph"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule, mod_name: str | None = "default", bind_constants: bool = True) -> IRModule:
    plain = rewrite_functions(rewrite_functions(module, _split), _without_default)
    prefix = f"tvmgen_{mod_name}" if mod_name else "tvmgen"
    functions: dict[GlobalVar, BaseFunc] = dict(plain.functions.items())
    for v, f in plain.functions.items():
        if isinstance(f, Function) and not is_closed(f):
            functions[v] = _Partition(f, plain, prefix, v.name_hint, bind_constants).function(functions)
    return infer_type.run(changed(plain, functions))


def _split(before: Expr, after: Expr) -> Expr:
    """Ends of tuples as tuples of ends; values that only go through a region stay outside."""
    if op_name(after) != END:
        return after
    assert isinstance(after, Call)
    e, compiler = after.args[0], compiler_of(after)

    def ended(e: Expr) -> Expr:
        if isinstance(e, Call) and op_name(e) == BEGIN:
            return e.args[0]
        return Tuple([ended(f) for f in e.fields]) if isinstance(e, Tuple) else annotation(END, e, compiler)

    return ended(e) if isinstance(e, Tuple) and compiler != DEFAULT else after


def _without_default(before: Expr, after: Expr) -> Expr:
    if isinstance(after, Call) and op_name(after) in (BEGIN, END) and compiler_of(after) == DEFAULT:
        return after.args[0]
    return after


class _Partition:
    """A function with its regions. By identity: what takes the place of an expression (`made`), the value of an end."""

    def __init__(self, f: Function, module: IRModule, prefix: str, name: str, bind_constants: bool) -> None:
        self.f, self.module, self.bind_constants = f, module, bind_constants
        self.prefix, self.name = prefix, name
        self.regions = RegionSet(f)
        self.made: dict[int, Expr] = {}

    def function(self, functions: dict[GlobalVar, BaseFunc]) -> Function:
        """The function after it; those of its regions are added to `functions`."""
        whole: list[Expr] = [self.f]
        for e in depth_first(whole, self._waits_for):
            if id(e) in self.made:
                continue
            region = self.regions.region_of(e)
            if op_name(e) == END and region is not None:
                self._call(region, functions)
            elif is_closed(e):
                self.made[id(e)] = e
            else:
                self.made[id(e)] = with_children(e, [self._made(c) for c in children(e)])
        made = self.made[id(self.f)]
        assert isinstance(made, Function), "a function stays one"
        return made

    def _waits_for(self, e: Expr) -> list[Expr]:
        region = self.regions.region_of(e) if op_name(e) == END else None
        if region is not None:
            return [b.args[0] for b in region.begins if isinstance(b, Call)]
        return [] if is_closed(e) and e is not self.f else list(children(e))

    def _made(self, e: Expr) -> Expr:
        if id(e) not in self.made:
            raise error(e, "a region waits for what waits for it", help="annotate it as two regions")
        return self.made[id(e)]

    def _call(self, region: Region, functions: dict[GlobalVar, BaseFunc]) -> None:
        """Make the function of a region, and what stands for its ends."""
        inputs: dict[int, tuple[Expr, Var]] = {}
        params: dict[int, Var] = {}
        for b in region.begins:
            assert isinstance(b, Call)
            value = self._made(b.args[0])
            named = Var(f"{region.compiler}_{region.number}_i{len(inputs)}", b.checked_type)
            params[id(b)] = inputs.setdefault(id(value), (value, named))[1]
        results = {id(e.args[0]): e.args[0] for e in region.ends if isinstance(e, Call)}
        whole = Tuple(list(results.values()))
        body = rewrite(
            whole, lambda before, after: params.get(id(before), after), lambda e: id(e) in params or is_closed(e)
        )
        assert isinstance(body, Tuple)
        kind = TupleType([e.checked_type for e in results.values()])
        single = len(results) == 1
        bound = {v: e for e, v in inputs.values() if self.bind_constants and _is_known(e)}
        given = [(e, v) for e, v in inputs.values() if v not in bound]
        function = Function(
            [v for _, v in given], body.fields[0] if single else body, kind.fields[0] if single else kind
        )
        name = re.sub(r"\W", "_", f"{self.prefix}_{region.compiler}_{self.name}_{region.number}", flags=re.ASCII)
        var = GlobalVar(name)
        if any(v.name_hint == name for v in functions):
            raise ExpressionError(f"the module has a function {name} already", "give another mod_name")
        functions[var] = self._finished(bind(function, bound) if bound else function, region.compiler, name)
        made = Call(var, [e for e, _ in given], None, (), getattr(region.ends[0], "span", None))
        for e in region.ends:
            assert isinstance(e, Call)
            self.made[id(e)] = made if single else TupleGetItem(made, list(results).index(id(e.args[0])))

    def _finished(self, f: Expr, compiler: str, name: str) -> Function:
        assert isinstance(f, Function)
        hook = get_global_func(f"relay.ext.{compiler}.optimize", allow_missing=True)
        if hook is not None:
            f = hook(infer_type.run(changed(self.module, {GlobalVar(MAIN): f})))[MAIN]
            assert isinstance(f, Function)
        return f.with_attr({"global_symbol": name, "Primitive": 1, "Compiler": compiler, "Inline": 1})


def _is_known(e: Expr) -> bool:
    return all(isinstance(x, (Constant, Tuple)) for x in post_order(e))
