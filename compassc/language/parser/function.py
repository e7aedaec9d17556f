"""Statements of a kernel to IR statements: one `FunctionParser` per function that is parsed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError, flat
from compass_core.reading import pyast

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import BOOL, VOID, PointerType
from ...ir.visit import rename_vars
from ...ops.core import convert
from ...ops.typing import check_operator, is_literal
from ..source import node_span
from ..specs import BlockSpec
from . import assign, loops, products, tuples
from .context import Abandoned, FunctionContext
from .flow import leaves
from .folding import without_needless
from .helpers import calls
from .operators import binary
from .outliving import kept_by_turns
from .scope import Poison, PoisonUsed, Undefined
from .skipped import SKIPPED, check_skipped
from .syntax import leaves_loop, unsupported
from .values import PointerValue, Value, is_runtime, kind_name, plain

if TYPE_CHECKING:
    from compassc.language.parser.values import Operators

_REBINDS = ("type-change", "redefined", "buffer-alias")
_WITH = 'a schedulable block is `with S.block("name"):`; anything else has no meaning in a kernel'
_BLOCKS = (ast.If, ast.For, ast.While, ast.With)


class FunctionParser(FunctionContext):
    """Parses one function into a PrimFunc, statement by statement; parsing goes on after a bad one."""

    # -- results

    def parse(self) -> S.PrimFunc:
        """The function; mistakes are in `errors`."""
        self.block(self.node.body)
        attrs: list[tuple[str, object]] = []
        if self.func.is_inline is not None:
            attrs.append(("is_inline", self.func.is_inline))
        if self.shapes:
            attrs.append(("shapes", {self.renamed[v].name: dims for v, dims in self.shapes.items()}))
        span = node_span(self.node, self.file)
        body = (*self.hoisted, *self.out) if self.errors else products.made(self, (*self.hoisted, *self.out))
        body = without_needless(body, self.made, self.addressed)
        body = rename_vars(body, self.renamed)
        self.errors.extend(kept_by_turns(body))
        params = tuple(self.renamed.get(p, p) for p in self.params)
        return S.PrimFunc(self.symbol, params, body, self.func.ret_type, tuple(attrs), span)

    # -- statements

    def block(self, nodes: list[ast.stmt]) -> None:
        """Parse the statements of a block."""
        for node in nodes:
            self.statement(node)

    def statement(self, node: ast.stmt) -> None:
        """Parse a statement; a mistake is recorded and the names it would define are poisoned."""
        outer, self.current = self.current, node
        held, outside, mistakes = self.scope.begin(), self.helpers.begin(), len(self.errors)
        try:
            method = getattr(self, "stmt_" + type(node).__name__, None)
            if method is None:
                raise unsupported(node)
            method(node)
            if not isinstance(node, _BLOCKS):
                self.evaluator.operands = None, ()
                self.helpers.finish()
            if len(self.errors) == mistakes:  # else a statement inside has told of it
                self.scope.check_held()
        except CompassError as error:
            if self.attempts:
                raise Abandoned from None
            for e in flat(error):
                e.span = e.span or self.evaluator.place(node)
                e.notes = (*e.notes, *reversed(self.chain))
                self.errors.append(e)
                if isinstance(e, Undefined):
                    self.scope.reported.add(e.name)
            self._failed(node, error.code in _REBINDS)
        except PoisonUsed:
            self._failed(node)
        finally:
            self.current = outer
            self.helpers.end(outside)
            self.scope.end(held)

    def _failed(self, node: ast.stmt, known: bool = False) -> None:
        """Poison what a wrong statement would define, and look for mistakes in its blocks."""
        self._poison(node, known)
        if not isinstance(node, _BLOCKS):
            return
        first = len(self.errors)
        said = {(e.span, e.message) for e in self.errors}
        for block in (node.body, getattr(node, "orelse", [])):
            self.scope.push()
            for name in ast.walk(getattr(node, "target", None) or ast.Pass()):
                if isinstance(name, ast.Name):
                    self.scope.bind(name.id, Poison)
            self.nested(block)
            self.scope.pop()
        self.errors[first:] = [e for e in self.errors[first:] if (e.span, e.message) not in said]

    def _poison(self, node: ast.stmt, known: bool = False) -> None:
        """Poison the names a statement would define; with `known`, also those that have a value already."""
        targets = [*getattr(node, "targets", []), *([node.target] if isinstance(node, ast.AnnAssign) else [])]
        for target in targets:
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    if known:
                        self.scope.rebind(name.id, Poison)
                    elif self.scope.local(name.id) is None:
                        self.define(name.id, Poison)

    def stmt_Pass(self, node: ast.Pass) -> None:
        """No code."""

    stmt_Nonlocal = stmt_Pass

    def stmt_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        """No code, and no names: those that PySim gets of it are told where they are used."""
        self.scope.imported.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)

    stmt_ImportFrom = stmt_Import

    def stmt_Assign(self, node: ast.Assign) -> None:
        if len(node.targets) > 1:
            tuples.assign_chain(self, node.targets, node.value)
            return
        target = node.targets[0]
        if isinstance(target, (ast.Tuple, ast.List)):
            tuples.assign_tuple(self, target, node.value)
        elif isinstance(target, ast.Subscript):
            value, owner, index = self.evaluator.all((node.value, target.value, target.slice))
            assign.assign_item(self, owner, index, value)
        else:
            assign.assign(self, target, self.evaluator.eval_named(node.value))

    def stmt_AnnAssign(self, node: ast.AnnAssign) -> None:
        raise CompassError(
            "a local variable cannot be annotated",
            code="annotated-local",
            help="write x = S.i32(value) to choose the type",
        )

    def stmt_AugAssign(self, node: ast.AugAssign) -> None:
        symbol = pyast.BINARY[type(node.op)]
        if isinstance(node.target, ast.Name):
            old = self.eval(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            assign.assign(self, node.target, self.combine(symbol, old, self.eval(node.value)))
        elif isinstance(node.target, ast.Subscript):
            load = ast.copy_location(ast.Subscript(node.target.value, node.target.slice, ast.Load()), node.target)
            owner, index, old = self.evaluator.element(load)
            value = self.eval(node.value)
            if calls(value):  # what it changes was read before
                self.helpers.settle()
            assign.assign_item(self, owner, index, self.combine(symbol, old, value))
        else:
            raise CompassError(
                "only names and subscripts can be assigned", code="assign-target", help="use a plain name"
            )

    @staticmethod
    def combine(symbol: str, a: object, b: object) -> Operators:
        made: Operators = binary(symbol, a, b)
        return made

    def stmt_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            name = pyast.dotted(node.value.func)
            if name in SKIPPED and not self.scope.visible(name):
                check_skipped(node.value, self.eval)
                return
        self.evaluator.statement = node.value
        value = self.eval(node.value)
        if isinstance(value, Value):
            if type(value.expr) is E.Call or calls(value):
                self.emit(S.Evaluate, value.expr)
        elif isinstance(value, S.Stmt):
            self.append(value)
        elif not (value is None or isinstance(value, (int, bool, str))):
            raise CompassError(
                f"a statement cannot be just {kind_name(value)}", code="statement-value", help="assign it to a name"
            )

    def stmt_If(self, node: ast.If) -> None:
        cond = plain(self.eval(node.test))
        if not is_runtime(cond):
            self.block(node.body if cond else node.orelse)
            return
        test = self.condition(cond)
        before = self.scope.names()
        with self.scope.inside():
            body = self.nested(node.body)
            other = self.scope.go_back(before)
            orelse = self.nested(node.orelse)
        self.scope.join(before, other, (leaves(body), leaves(orelse)), self.evaluator.place(node))
        self.emit(S.IfThenElse, test, body, orelse)

    def condition(self, value: Value) -> E.Expr:
        """A run-time condition as a scalar bool."""
        if not isinstance(value, Value):
            raise CompassError(
                f"the condition is {kind_name(value)}", code="condition", help="test a pointer with p.is_nullptr"
            )
        if value.dtype.is_vector:
            raise CompassError(
                f"the condition must be a scalar, got {value.dtype}", code="condition", help="use S.vall or S.vany"
            )
        if value.dtype is BOOL:
            return value.expr
        check_operator("!=", value.dtype, None)
        return E.Binary("ne", value.expr, convert(0 if value.dtype.is_integer else 0.0, value.dtype))

    def stmt_While(self, node: ast.While) -> None:
        with self.scope.loop():
            self._while(node)

    def _while(self, node: ast.While) -> None:
        """A `while` statement, whose condition is one of the statements that run again."""
        cond, before = self.apart(lambda: plain(self.eval(node.test)))
        if is_runtime(cond):
            test = self.condition(cond)
            if before:
                leave = self.apart(lambda: self.emit(S.Break))[1]
                before += self.apart(lambda: self.emit(S.IfThenElse, E.Unary("not", test), leave, ()))[1]
                test = E.IntImm(BOOL, 1)
            self.emit(S.While, test, (*before, *self.nested(node.body)))
            return
        if not cond:
            raise CompassError(
                "this loop never runs: its condition is constant", code="constant-loop", help="remove it"
            )
        if not leaves_loop(node.body):
            raise CompassError(
                "this loop has no end: its condition is constant, and no break or return leaves it",
                code="constant-loop",
                help="leave it with `if ...: break`, compare run-time values, or use `for`",
            )
        self.emit(S.While, E.IntImm(BOOL, 1), self.nested(node.body))

    def stmt_For(self, node: ast.For) -> None:
        loops.parse_for(self, node)

    def stmt_Break(self, node: ast.Break) -> None:
        self.emit(S.Break)

    def stmt_Continue(self, node: ast.Continue) -> None:
        self.emit(S.Continue)

    def stmt_Return(self, node: ast.Return) -> None:
        value = self.eval(node.value) if node.value is not None else None
        kind = self.func.ret_type
        if value is None:
            if kind is not VOID:
                raise CompassError(
                    f"{self.func.__name__} returns {kind}; this return has no value",
                    code="return-missing",
                    help=f"return a value of type {kind}",
                )
            self.emit(S.Return, None)
            return
        if kind is VOID:
            raise CompassError(
                f"{self.func.__name__} has no return annotation but returns a value",
                code="return-annotation",
                help="annotate it: def f(...) -> S.i32:",
            )
        self.emit(S.Return, self.returned(value, kind))

    def returned(self, value: Any, kind: Any) -> E.Expr:
        """A returned value as the annotated type."""
        if isinstance(kind, PointerType):
            if not isinstance(value, PointerValue):
                raise CompassError(
                    f"{self.func.__name__} returns {kind}, got {kind_name(value)}",
                    code="return-type",
                    help="change the annotation or the value",
                )
            if value.scope != kind.scope:
                raise CompassError(
                    f"the returned pointer is in {value.scope}, the annotation says {kind.scope}",
                    code="return-scope",
                    help=f'annotate it with S.ptr("{kind.elem}", "{value.scope}")',
                )
            return value.as_ptr(kind.elem).expr
        if is_literal(value):
            return convert(value, kind)
        if not isinstance(value, Value):
            raise CompassError(
                f"{self.func.__name__} returns {kind}, got {kind_name(value)}",
                code="return-type",
                help="change the annotation or the value",
            )
        if value.dtype is not kind and (value.dtype.is_vector or kind.is_vector):
            raise CompassError(
                f"{self.func.__name__} returns {kind}, got {value.dtype}",
                code="return-type",
                help="convert it explicitly",
            )
        return convert(value.expr, kind)

    def stmt_Assert(self, node: ast.Assert) -> None:
        raise CompassError("assert has no form in C", code="syntax", help="write S.assert_(condition, text)")

    def stmt_With(self, node: ast.With) -> None:
        """A schedulable block: it opens a scope, and its axes are names for loop variables."""
        if len(node.items) != 1 or node.items[0].optional_vars is not None:
            raise CompassError("a kernel's `with` has one S.block and no `as`", code="syntax", help=_WITH)
        value = self.eval(node.items[0].context_expr)
        if not isinstance(value, BlockSpec):
            raise CompassError(f"`with` needs S.block(...), got {kind_name(value)}", code="syntax", help=_WITH)
        self.scope.push()
        self.scope.blocks += 1
        self.axes.append([])
        outer, self.out = self.out, [] if self.keeps_blocks else self.out
        try:
            self.block(node.body)
        finally:
            self.scope.blocks -= 1
            self.scope.pop()
            axes, body, self.out = self.axes.pop(), self.out, outer
        if self.keeps_blocks:
            columns: Any = list(zip(*axes)) if axes else [()] * 5
            names, kinds, starts, extents, bindings = columns
            true = E.IntImm(BOOL, 1)
            self.emit(
                S.Block,
                self.block_names.take(value.name or "block"),
                names,
                kinds,
                starts,
                extents,
                bindings,
                true,
                (),
                (),
                (),
                tuple(body),
            )
