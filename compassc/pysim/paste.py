"""Macros in PySim: the body is pasted where the macro is called, with the arguments in the place of the parameters.

The pasted body is a function of its own inside the caller, so that the debugger shows it in the macro's file with the
macro's names; the caller's variables it assigns are `nonlocal`. A `return` becomes a tuple, which the caller returns.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn, Protocol

from compass_core.errors import CompassError
from compass_core.reading import pyast

from ..language.source import definition, file_of
from .code import GeneratedCode, Pasted

if TYPE_CHECKING:
    from compassc.pysim.values import PyVar

    from ..language.functions import Macro
    from .bools import Bools


class Rewriting(Protocol):
    """The code that a macro is pasted into, while it is rewritten (`assign.Rewrite`)."""

    seen: dict[str, object]
    variables: set[str]
    made: GeneratedCode
    macro: Macro | None
    active: tuple[Macro, ...]
    bools: Bools

    def inner(self, seen: dict[str, object], variables: set[str], macro: Macro | None) -> Rewriting:
        """The rewriting of a body in this code."""

    def statements(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        """A block of statements, rewritten."""

    def constant(self, value: object, at: ast.AST) -> ast.expr:
        """An object as a constant of the code, to be called."""

    def kept(self, value: object, at: ast.AST) -> ast.expr:
        """A value of Python in the code."""


class _NoVariable:
    """In the place of a parameter that is assigned though its argument is no variable."""

    def __init__(self, macro: str) -> None:
        self.macro = macro

    def __getitem__(self, name: str) -> object:
        raise CompassError(
            f"macro {self.macro} assigns to its parameter {name!r}, but the argument is no variable of the caller",
            code="type-change",
            help="pass a variable, or assign to a new name in the macro",
        )

    def __setitem__(self, name: str, _value: PyVar) -> None:
        self[name]


def _undefined(name: str) -> NoReturn:
    raise NameError(f"name {name!r} is not defined where the macro was decorated")


def pasted(caller: Rewriting, macro: Macro, call: ast.Expr) -> list[ast.stmt] | None:
    """The statements of a call of a macro; None when its arguments are only known when it runs."""
    assert isinstance(call.value, ast.Call)
    try:
        node, file = pyast.copied(definition(macro.py_func)), file_of(macro.py_func)
        arguments = _arguments(caller, macro, call.value)
    except CompassError:  # no source
        return None
    if arguments is None:
        return None
    names = _Names(caller, macro, node, arguments)
    body = [names.visit(statement) for statement in node.body]
    inner = caller.inner(
        {k: v for k, v in caller.seen.items() if k not in names.own},
        caller.variables | names.own,
        macro if macro.hygienic else caller.macro,
    )
    inner.active = (*caller.active, macro)
    caller.made.addressed |= addressed(body)
    inner.bools.learn(body)
    body = inner.statements(body)
    name = f".{macro.__name__} {len(caller.made.pasted)}"
    written = {parameter: ast.unparse(e) for parameter, e in arguments.items()}
    caller.made.pasted[name] = Pasted(macro.__name__, file, node.lineno - call.lineno, written)
    for statement in body:
        ast.increment_lineno(statement, call.lineno - node.lineno)
    if names.assigned:
        body.insert(0, ast.Nonlocal(sorted(names.assigned)))
    return [ast.fix_missing_locations(ast.copy_location(s, call)) for s in _called(name, body, names.returns, caller)]


def _called(name: str, body: list[ast.stmt], returns: bool, caller: Rewriting) -> Iterable[ast.stmt]:
    """The definition of a pasted body, its call, and the caller's return if it returned."""
    made: ast.FunctionDef = pyast.parse("def f(): pass").body[0]
    made.name, made.body = name, body
    yield made
    yield ast.Assign([ast.Name(name, ast.Store())], ast.Call(ast.Name(name, ast.Load()), [], []))
    if returns:
        result: ast.expr = ast.Name(name, ast.Load())
        test = ast.Compare(result, [ast.IsNot()], [ast.Constant(None)])
        value = result if caller.active else ast.Subscript(result, ast.Constant(0), ast.Load())
        yield ast.If(test, [ast.Return(value)], [])
    yield ast.Delete([ast.Name(name, ast.Del())])


def _arguments(caller: Rewriting, macro: Macro, call: ast.Call) -> dict[str, ast.expr] | None:
    """The expression that each parameter stands for."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    try:
        bound = inspect.signature(macro.py_func).bind(*call.args, **{str(k.arg): k.value for k in call.keywords})
    except TypeError:
        return None  # the call itself raises the error
    given = dict(bound.arguments)
    bound.apply_defaults()
    return {name: _expression(caller, name in given, value, call) for name, value in bound.arguments.items()}


def _expression(caller: Rewriting, is_given: bool, value: object, at: ast.AST) -> ast.expr:
    """The argument of a parameter: what is written in the call, all of `*args` or `**kwargs`, or a default value."""
    if not is_given:
        return caller.kept(value, at)
    if isinstance(value, tuple):
        return ast.Tuple(list(value), ast.Load())
    if isinstance(value, dict):
        return ast.Dict([ast.Constant(k) for k in value], list(value.values()))
    assert isinstance(value, ast.expr)
    return value


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    return {n.id for root in nodes for n in ast.walk(root) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def addressed(body: list[ast.stmt]) -> set[str]:
    """The variables whose address is taken in a block."""
    found = [n.value for n in pyast.walk(body) if isinstance(n, ast.Attribute) and n.attr == "addr"]
    return {n.id for n in found if isinstance(n, ast.Name)}


class _Names(ast.NodeTransformer):
    """The names of a macro's body as they are where it is pasted.

    `own`: the names of its variables; `assigned`: the variables of the caller that it assigns.
    """

    def __init__(self, caller: Rewriting, macro: Macro, node: ast.FunctionDef, arguments: dict[str, ast.expr]) -> None:
        self.caller, self.macro, self.arguments = caller, macro, arguments
        stored = _stored(node.body)
        shared = set() if macro.hygienic else stored & caller.variables
        foreign = {n.id for a in arguments.values() for n in ast.walk(a) if isinstance(n, ast.Name)}
        self.renamed = {name: _other(name, foreign, stored) for name in stored - set(arguments) - shared}
        self.own = set(self.renamed.values())
        self.assigned = shared - set(arguments)
        self.captured = macro.captured if macro.hygienic else getattr(caller.macro, "captured", None)
        self.returns = False

    def visit_Name(self, node: ast.Name) -> ast.expr:
        name = node.id
        if name in self.arguments:
            return self._argument(node, self.arguments[name])
        if name in self.renamed:
            node.id = self.renamed[name]
            return node
        if self.captured is None or (not self.macro.hygienic and name in self.caller.variables):
            return node
        if name not in self.captured and not hasattr(builtins, name):
            call = ast.Call(self.caller.constant(_undefined, node), [ast.Constant(name)], [])
            return ast.fix_missing_locations(ast.copy_location(call, node))
        found = self.captured[name] if name in self.captured else getattr(builtins, name)
        return self.caller.kept(found, node)

    def _argument(self, node: ast.Name, given: ast.expr) -> ast.expr:
        """The argument in the place of its parameter."""
        if isinstance(node.ctx, ast.Store):
            if isinstance(given, ast.Name) and given.id in self.caller.variables:
                self.assigned.add(given.id)
                node.id = given.id
                return node
            nothing = self.caller.constant(_NoVariable(self.macro.__name__), node)
            at = ast.copy_location(ast.Constant(node.id), node)
            return ast.copy_location(ast.Subscript(nothing, at, ast.Store()), node)
        found = pyast.copied(given)
        for part in ast.walk(found):
            ast.copy_location(part, node)
        return found

    def visit_Return(self, node: ast.Return) -> ast.Return:
        self.generic_visit(node)
        self.returns = True
        value = node.value or ast.copy_location(ast.Constant(None), node)
        node.value = ast.copy_location(ast.Tuple([value], ast.Load()), node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        """Parameters of a lambda are its own."""
        own = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
        arguments, renamed = self.arguments, self.renamed
        self.arguments = {k: v for k, v in arguments.items() if k not in own}
        self.renamed = {**renamed, **{name: name for name in own}}
        self.generic_visit(node)
        self.arguments, self.renamed = arguments, renamed
        return node


def _other(name: str, foreign: set[str], stored: set[str]) -> str:
    """A name for a variable of a macro that no argument uses: its own if possible."""
    candidates = itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1)))
    return next(c for c in candidates if c not in foreign and (c == name or c not in stored))
