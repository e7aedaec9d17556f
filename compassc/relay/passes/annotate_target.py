"""Annotate what other compilers take.

Before: a typed module. `targets`: names of compilers, or one; the first that takes a call gets it. One takes calls of operators
of which `target.NAME` holds, and of composite functions whose name begins with `NAME.`; `default` gets the rest.
After: operands of calls have `compiler_begin`, results that are used `compiler_end`. With `include_non_call_ops` tuples,
projections, references and values of `let` are annotated, too, by the one compiler of their parts; parameters and constants among
them count as those of `default`, with `free_inputs` as any. Annotations that were there stay, but those of `default`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compassc.relay.contrib import load
from compassc.relay.expr import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from compassc.relay.module import IRModule
from compassc.relay.operators import Op, op_name
from compassc.relay.passes._annotated import BEGIN, DEFAULT, END, annotation, compiler_of, is_closed
from compassc.relay.passes._functions import on_functions
from compassc.relay.visit import children, rewrite, with_children

NAME = "AnnotateTarget"
LEVEL = 0
REQUIRED = ("InferType",)


def run(
    module: IRModule, targets: str | Sequence[str] = (), include_non_call_ops: bool = True, free_inputs: bool = False
) -> IRModule:
    names = [targets] if isinstance(targets, str) else [str(t) for t in targets]
    for name in names:
        load(name)
    return on_functions(module, lambda f, _: _Annotating(names, include_non_call_ops, free_inputs).function(f))


class _Annotating:
    """A function in the making. `taken`: the compilers of expressions that were made, by identity."""

    def __init__(self, targets: Sequence[str], all_kinds: bool, free_inputs: bool) -> None:
        self.targets, self.all_kinds, self.free_inputs = targets, all_kinds, free_inputs
        self.taken: dict[int, str] = {}
        self._kept: list[Expr] = []

    def function(self, f: Function) -> Function:
        """The function with annotations."""
        made = rewrite(f, self._one, is_closed)
        assert isinstance(made, Function), "a function stays one"
        return made

    def _one(self, before: Expr, after: Expr) -> Expr:
        if is_closed(after):
            return after
        form = _FORMS.get(type(after))
        made = form(self, before, after) if form else after
        if made is not before and before.checked_type_ is not None:
            made = made.typed(before.checked_type)
        self._kept.append(made)  # its identity is a key
        return made

    def _take(self, e: Expr, compiler: str) -> Expr:
        self.taken[id(e)] = compiler
        return e

    def _ended(self, e: Expr) -> Expr:
        """A value with an end, where a compiler takes it."""
        compiler = self.taken.get(id(e))
        return e if compiler is None else self._take(annotation(END, e, compiler), compiler)

    def _call(self, before: Call, after: Call) -> Expr:
        name = op_name(before)
        if name == BEGIN:
            return after
        if name == END:
            inner = after.args[0]
            compiler = self.taken.setdefault(id(inner), compiler_of(after))
            return annotation(END, inner, compiler)
        if isinstance(before.op, Var) and not self.all_kinds:
            return with_children(after, [after.op, *map(self._ended, after.args)])
        compiler = self._compiler(before)
        _, args = self._begun(after.args, compiler)
        return self._take(Call(after.op, args, after.attrs, after.type_args, after.span), compiler)

    def _compiler(self, e: Call) -> str:
        """The first compiler that takes a call; the one it is annotated for goes first."""
        if e.args and op_name(e.args[0]) == BEGIN and compiler_of(e.args[0]) != DEFAULT:
            return compiler_of(e.args[0])
        if isinstance(e.op, Op):
            for t in self.targets:
                takes: Callable[[Expr], bool] | None = e.op.get_attr(f"target.{t}")
                if takes is not None and takes(e):
                    return t
        if isinstance(e.op, Function):
            first, dot, _ = str(e.op.attrs.get("Composite", "")).partition(".")
            if dot and first in self.targets:
                return first
        return DEFAULT

    def _begun(self, args: Sequence[Expr], compiler: str = "") -> tuple[str, list[Expr]]:
        """Operands with beginnings for a compiler, by default the one of all of them, and which one that is."""
        own: set[str] = set()
        begun: list[Expr] = []
        for a in args:
            old = op_name(a) == BEGIN
            inner = a.args[0] if old and isinstance(a, Call) else a
            if old:
                own.add(compiler_of(inner) if op_name(inner) == END else DEFAULT)
                begun.append(a if compiler_of(a) != DEFAULT else inner)
            else:
                if not (self.free_inputs and isinstance(a, (Constant, Var))):
                    own.add(self.taken.get(id(a), DEFAULT))
                begun.append(a if isinstance(a, Call) and not a.args else self._ended(a))
        chosen = compiler or (own.pop() if len(own) == 1 else DEFAULT)
        return chosen, [e if op_name(e) == BEGIN else annotation(BEGIN, e, chosen) for e in begun]

    def _parts(self, before: Expr, after: Expr) -> Expr:
        """A tuple, a projection or a reference: of the one compiler of its parts."""
        if not children(after):
            return after
        if not self.all_kinds:
            return with_children(after, [self._ended(c) for c in children(after)])
        compiler, args = self._begun(children(after))
        return self._take(with_children(after, args), compiler)

    def _let(self, before: Let, after: Let) -> Expr:
        value = after.value
        if not isinstance(value, Function):  # of functions the bodies are annotated
            value = self._begun([value])[1][0] if self.all_kinds else self._ended(value)
        return with_children(after, [after.var, value, self._ended(after.body)])

    def _branches(self, before: If, after: If) -> Expr:
        return with_children(after, [self._ended(c) for c in children(after)])

    def _function(self, before: Function, after: Function) -> Expr:
        return after.replace(body=self._ended(after.body)) if id(after.body) in self.taken else after


_FORMS: Mapping[type, Callable[..., Expr]] = {
    Call: _Annotating._call,
    Function: _Annotating._function,
    If: _Annotating._branches,
    Let: _Annotating._let,
    RefCreate: _Annotating._parts,
    RefRead: _Annotating._parts,
    RefWrite: _Annotating._parts,
    Tuple: _Annotating._parts,
    TupleGetItem: _Annotating._parts,
}
