"""Statements of a kernel in the making."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from inspect import signature
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

from compass_core.bounded import Bounded
from compass_core.errors import Span, together
from compass_core.errors.excerpts import portable_name
from compassc.build.recorder import Recorder, argument, call_text, once, shown, types_of
from compassc.build.values import EFFECT, Expression, Pointer, Value, pointer_of, recorded, variable_within, whole_range
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, VOID, DataType, PointerType, dtype, pointer_type
from compassc.ir.visit import placed, walk_stmts
from compassc.language.dispatch import parsing
from compassc.language.functions import Macro
from compassc.language.parser.folding import without_needless
from compassc.language.parser.values import ZERO, PointerValue, index_expr
from compassc.language.parser.values import Value as Plain
from compassc.ops.core import convert

_PACKAGE = Path(__file__).parents[1]


class Line:
    """A line of a kernel's text with the statements that it stands for; the last of them has the lines below it, in its
    first and its second block.

    `make`: the statements, when somebody asks for them. `variables`: those that it uses or changes. `changed`: those that
    it defines or changes. `only_defines`: whether it does nothing else. `place`: of statements that have none of their own.
    """

    __slots__ = ("body", "changed", "defined", "inner", "make", "orelse", "place", "text", "variables", "written")

    def __init__(
        self,
        text: str,
        place: Span,
        make: Callable[[], S.Body],
        variables: Sequence[E.Var],
        changed: tuple[E.Var, ...] = (),
        only_defines: bool = False,
    ) -> None:
        self.text, self.place, self.make, self.variables, self.changed = text, place, make, variables, changed
        self.body: list[Line] | tuple[()] = ()
        self.orelse: list[Line] | tuple[()] = ()
        self.inner: tuple[E.Var, ...] | None = None
        """What the lines below it use, once they stay as they are."""
        self.defined: E.Var | None = changed[0] if only_defines and EFFECT not in {*variables} else None
        """The variable that it defines, if it does nothing else."""

    def opened(self) -> list[Line]:
        """Its first block, to be filled."""
        self.body = block = list[Line]()
        return block

    def settle(self) -> None:
        """From here on the lines below it stay as they are: what is known of them is kept."""
        used: list[E.Var] = []
        for block in (self.body, self.orelse):
            _collect(block, used)
        self.inner = tuple(used)
        self.written: dict[int, list[str]] = {}
        """Its lines of text by their depth."""

    def all(self) -> Iterator[Line]:
        """The line and those below it."""
        yield self
        for inner in chain(self.body, self.orelse):
            yield from inner.all()

    def made(self) -> S.Body:
        """Its statements, with their blocks."""
        *first, last = (placed(s if s.span is not None else s.at(self.place)) for s in self.make())
        if not (self.body or self.orelse):  # a macro's blocks are its own
            return *first, last
        if isinstance(last, (S.For, S.While)):
            last = last.replace(body=made(self.body))
        elif isinstance(last, S.IfThenElse):
            last = last.replace(then_case=made(self.body), else_case=made(self.orelse))
        return *first, last

    def write(self, lines: list[str], depth: int, placed: bool = False) -> None:
        """Adds its text, and that of the lines below it; `placed`: with the line of Python that made each as a comment."""
        if self.inner is not None and not placed:
            if depth not in self.written:
                self.written[depth] = found = list[str]()
                self._write(found, depth, placed)
            lines += self.written[depth]
        else:
            self._write(lines, depth, placed)

    def _write(self, lines: list[str], depth: int, placed: bool) -> None:
        comment = f"  # {portable_name(self.place.file)}:{self.place.line}" if placed else ""
        lines.append("    " * depth + self.text + comment)
        for inner in self.body:
            inner.write(lines, depth + 1, placed)
        if self.orelse:
            lines.append("    " * depth + "else:")
            for inner in self.orelse:
                inner.write(lines, depth + 1, placed)


def _node(p: Pointer) -> E.Pointer:
    return E.Pointer(p.elem, p.base, p.offset)


def made(lines: Sequence[Line]) -> S.Body:
    return tuple(s for line in lines for s in line.made())


class Inside(dict[str, bool]):
    """Whether code is of files whose names begin so, by the name of its file."""

    def __init__(self, *beginnings: str) -> None:
        super().__init__()
        self.beginnings = beginnings

    def __missing__(self, file: str) -> bool:
        self[file] = found = file.startswith(self.beginnings)
        return found


class Builder(Recorder):
    """A kernel in the making: parameters and statements, each at the place where the last one was made, or at the end of
    the block that a `with` opened. Names are unique in the kernel."""

    inside: ClassVar[Inside] = Inside(
        *(str(_PACKAGE / part) for part in ("build", "language", "ops")), contextlib.__file__
    )
    """Of code that makes statements for others: the place of a statement is outside."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.parameters: list[tuple[E.Var, Any]] = []
        super().__init__()
        self._names: set[str] = set()
        self._counts: Counter[str] = Counter()

    # -- names and variables

    def name(self, hint: str) -> str:
        """A name that nothing in the kernel has, nor a function that it has called: the hint, or with a number."""
        found = hint
        while found in self._names or found in self.called:
            self._counts[hint] += 1
            found = f"{hint}{self._counts[hint]}"
        self._names.add(found)
        return found

    def fresh(self, prefix: str) -> str:
        """A new name that ends in a number."""
        self._counts[prefix] += 1
        return self.name(f"{prefix}{self._counts[prefix]}")

    def parameter(self, hint: str, kind: DataType | PointerType, argument: object) -> E.Var:
        """A new parameter, with the argument of its calls."""
        var = self.made_variable(self.fresh(hint), kind)
        self.parameters.append((var, argument))
        return var

    def made_variable(self, name: str, kind: DataType | PointerType) -> E.Var:
        """The variable of a name that is new in the kernel."""
        return E.Var(name, kind)

    def define(self, variable: Value, value: Expression) -> Value:
        """The statement that defines a variable which was made before."""
        found, var = recorded(value), self._variable(variable, value)
        self.add(f"{var.name} = {found.source}", lambda: (S.Let(var, found.expr),), found.variables, (var,), True)
        return variable

    def _variable(self, variable: Value, value: Expression) -> E.Var:
        var = variable.expr
        assert isinstance(var, E.Var) and variable.dtype is value.dtype, f"{variable} is no {value.dtype}"
        return var

    def variable(self, hint: str, kind: DataType, low: int | None = None, high: int | None = None) -> Value:
        """A variable that is to be defined."""
        least, most = whole_range(kind)
        known = least if low is None else low, most if high is None else high
        return variable_within(self.made_variable(self.name(hint), kind), known)

    def assign(self, variable: Value, value: Expression) -> None:
        """Gives a variable another value, of any size."""
        found, var = recorded(value), self._variable(variable, value)
        variable.forget()
        used = (var, *found.variables)
        self.add(f"{var.name} = {found.source}", lambda: (S.Assign(var, found.expr),), used, (var,))

    def hold(self, address: Any, hint: str) -> Pointer:
        """A pointer variable with an address."""
        return self.define_pointer(self.pointer_variable(hint, address.elem, address.scope), address)

    def pointer_variable(self, hint: str, elem: DataType | str, scope: str) -> Pointer:
        """A pointer variable that is to be defined."""
        return pointer_of(self.made_variable(self.name(hint), pointer_type(dtype(elem), scope)))

    def define_pointer(self, pointer: Pointer, address: Any) -> Pointer:
        """The statement that defines a pointer variable which was made before."""
        found: Pointer = address
        (var,) = pointer.variables
        self.add(f"{var.name} = {found.source}", lambda: (S.Let(var, _node(found)),), found.variables, (var,), True)
        return pointer

    def move(self, pointer: Pointer, address: Any) -> None:
        """Has a pointer variable point to another address."""
        found: Pointer = address
        (var,) = pointer.variables
        used = (var, *found.variables)
        self.add(f"{var.name} = {found.source}", lambda: (S.Assign(var, _node(found)),), used, (var,))

    def alloc(self, size: int, kind: str, hint: str, scope: str = "lsram") -> Pointer:
        """An array of so many elements."""
        name, element = self.name(hint), dtype(kind)
        data, var = (self.made_variable(n, pointer_type(element, scope)) for n in (f"{name}_buf", name))
        text = f'{name} = S.alloc({size}, "{kind}", scope="{scope}")'

        def made() -> S.Body:
            buffer = E.Buffer(data, element, (E.IntImm(INT32, size),))
            return S.Alloc(buffer), S.Let(var, E.Pointer(element, data, ZERO))

        self.add(text, made, (data,), (var,))
        return pointer_of(var)

    def events(self, *hints: str) -> list[Value]:
        """Events of the TEC, one for each name."""
        names = [self.name(hint) for hint in hints]
        found = tuple(self.made_variable(name, INT32) for name in names)
        text = f"{', '.join(names)} = S.alloc_events({len(names)})"
        self.add(text, lambda: tuple(S.Let(var, E.Call("alloc_event", (), INT32)) for var in found), (), found)
        return [Value(var, var.name) for var in found]

    # -- statements

    def add(
        self,
        text: str,
        make: Callable[[], S.Body],
        variables: Sequence[E.Var],
        changed: tuple[E.Var, ...] = (),
        only_defines: bool = False,
    ) -> Line:
        """A line at the end of the present block."""
        line = Line(text, self._place(), make, variables, changed, only_defines)
        self.lines.append(line)
        return line

    def _place(self) -> Span:
        """The line of Python that asks for a statement."""
        frame, inside = sys._getframe(2), self.inside
        while inside[frame.f_code.co_filename] and (outer := frame.f_back) is not None:
            frame = outer
        return _span(frame.f_code.co_filename, frame.f_lineno)

    def statement(self, text: str, made: Callable[[], S.Stmt], variables: Sequence[E.Var]) -> None:
        self.add(text, lambda: (made(),), variables)

    def store(self, target: object, index: object, value: object) -> None:
        from compassc.language.parser.access import resolve

        variables: list[E.Var] = []
        key = ("[]=", *types_of((target, index, value), variables))
        text = f"{shown(target)}[{argument(index)}] = {argument(value)}"
        self._result(
            key, lambda: resolve(target, index).store(value), text, variables, lambda value: whole_range(value.dtype)
        )

    def macro(self, macro: Macro, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """The statements of a macro, which may change its arguments. What is known of their ranges must hold behind it."""
        bound = _signature(macro.py_func).bind(*args, **kwargs)
        bound.apply_defaults()
        arguments = list(bound.arguments.values())
        variables: list[E.Var] = []
        key = (macro, *types_of(arguments, variables))
        made = once(lambda: expanded(macro, bound.arguments))
        if key not in _CHANGED:
            every = {s.var for s in walk_stmts(made()) if isinstance(s, (S.Assign, S.SetElement))}
            _CHANGED[key] = tuple(isinstance(x, Value) and x.expr in every for x in arguments)
        changed = tuple(x.expr for x, changes in zip(arguments, _CHANGED[key], strict=True) if changes)
        self.called[macro.__name__] = macro.py_func.__module__
        self.add(call_text(macro.__name__, args, kwargs), made, variables, changed)

    def paste(self, macro: Macro, *arguments: object) -> None:
        self.macro(macro, arguments, {})

    @contextmanager
    def apart(self) -> Iterator[list[Line]]:
        """A block whose lines are taken by whoever opened it: see `splice`."""
        outer, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = outer

    def splice(self, lines: Sequence[Line]) -> None:
        """Lines that were made apart, here."""
        self.lines.extend(lines)

    @contextmanager
    def for_range(
        self, start: object, stop: object, step: object = 1, name: str | Value = "i", kind: str = "range"
    ) -> Iterator[Value]:
        """A loop, with its variable, or one that was made before. `kind`: `range`, `unroll` and the others of the language."""
        from compassc.language.parser.loops import KINDS, bound_types

        variables: list[E.Var] = []
        key = ("for", *types_of((start, stop), variables))
        t = _LOOPS.get(key) or bound_types(start, stop)[0]
        _LOOPS[key] = t
        types_of((step,), variables)
        var = self.made_variable(self.name(name), t) if isinstance(name, str) else name.variables[0]
        plain = type(step) is int and step == 1
        bounds = ", ".join(map(argument, (start, stop) if plain else (start, stop, step)))
        text = f"for {var.name} in {'' if kind == 'range' else 'S.'}{kind}({bounds}):"

        def made() -> S.Body:
            _, low, high = bound_types(start, stop)
            return (S.For(var, KINDS[kind], low, high, convert(index_expr(step, "loop step"), t), ()),)

        line = self.add(text, made, variables, (var,))
        with self._within(line.opened()):
            yield Value.lazy(t, var, var.name, (var,), whole_range(t))

    @contextmanager
    def while_loop(self, condition: Expression) -> Iterator[None]:
        """A loop that runs as long as a condition holds; variables in it may be assigned others within the loop."""
        found = recorded(condition)
        line = self.add(f"while {found.source}:", lambda: (S.While(found.expr, ()),), found.variables)
        with self._within(line.opened()):
            yield

    @contextmanager
    def when(self, condition: Expression) -> Iterator[None]:
        """What happens where a condition holds."""
        found = recorded(condition)
        line = self.add(f"if {found.source}:", lambda: (S.IfThenElse(found.expr, (), ()),), found.variables)
        with self._within(line.opened()):
            yield

    @contextmanager
    def otherwise(self) -> Iterator[None]:
        """What happens where the condition of the `when` just before it does not hold."""
        last = self.lines[-1]
        assert last.text.startswith("if ") and not last.orelse
        last.orelse = block = list[Line]()
        with self._within(block):
            yield

    @contextmanager
    def _within(self, block: list[Line]) -> Iterator[None]:
        outer, self.lines = self.lines, block
        try:
            yield
        finally:
            self.lines = outer

    # -- the whole

    def finish(self, needed: Collection[E.Var] = ()) -> None:
        """Drops definitions that nothing uses, and parameters but those that are `needed`."""
        uses = swept(self.lines, needed)
        self.parameters = [(v, a) for v, a in self.parameters if uses[v]]

    def prim_func(self, name: str) -> S.PrimFunc:
        """The kernel as a function of the IR."""
        return self.maker(name)()

    def maker(self, name: str) -> Callable[[], S.PrimFunc]:
        """The same when somebody asks for it, which nobody does of a kernel that was compiled before."""
        parameters, place = tuple(v for v, _ in self.parameters), self._place()

        def function() -> S.PrimFunc:
            with self.active():
                return S.PrimFunc(name, parameters, made(self.lines), VOID, (), place)

        return function

    def written(self, placed: bool = False) -> list[str]:
        """The statements as lines of a kernel file, without the indentation of a function's body; `placed`: with the
        places of this package that made them."""
        found: list[str] = []
        for line in self.lines:
            line.write(found, 0, placed)
        return found


_signature = cache(signature)
_CHANGED: Bounded[tuple[object, ...], tuple[bool, ...]] = Bounded(1 << 12)
"""Which arguments macros change, by macro and types of arguments."""
_LOOPS: Bounded[tuple[object, ...], DataType] = Bounded(1 << 12)
"""Types of loops' variables, by those of the bounds."""
_span = lru_cache(1 << 14)(Span)


def swept(lines: list[Line], needed: Iterable[E.Var] = ()) -> Counter[E.Var]:
    """Drops the definitions of variables that nothing uses and nobody needs; gives how often variables are used."""
    used = [*needed]
    _collect(lines, used)
    uses = Counter(used)
    while _swept(lines, uses):
        pass
    return uses


def _collect(lines: Iterable[Line], used: list[E.Var]) -> None:
    """Adds the variables of lines and of those below them."""
    for line in lines:
        used += line.variables
        if line.inner is not None:
            used += line.inner
            continue
        for block in (line.body, line.orelse):
            if block:
                _collect(block, used)


def _swept(lines: list[Line], uses: Counter[E.Var]) -> bool:
    """Drops the lines whose variables nothing uses; whether there were any."""
    found = False
    for i in reversed(range(len(lines))):
        line = lines[i]
        for block in (line.body, line.orelse) if line.inner is None else ():
            if block:
                found |= _swept(block, uses)
        var = line.defined
        if var is not None and not uses[var]:
            uses.subtract(line.variables)
            del lines[i]
            found = True
    return found


def invariant(lines: Sequence[Line], changing: Collection[Value | Pointer]) -> tuple[list[Line], list[Line]]:
    """(definitions that are the same in every turn of a loop over `lines`, the other lines); `changing` are its
    variables."""
    every = [inner for line in lines for inner in line.all()]
    often = Counter(v for line in every for v in line.changed)
    varying = {v.variables[0] for v in changing} | often.keys()
    shared: list[Line] = []
    for line in lines:
        var = line.defined
        if var is not None and often[var] == 1 and varying.isdisjoint(line.variables):
            shared.append(line)
            varying.discard(var)
    return shared, [line for line in lines if line not in shared]


def expanded(macro: Macro, arguments: Mapping[str, object]) -> S.Body:
    """The statements of a macro, as the parser makes them, by its arguments' names."""
    from compassc.language.parser.function import FunctionParser
    from compassc.language.parser.module import ModuleParser

    source: Any = SimpleNamespace(py_func=macro.py_func, params=[], __name__=macro.__name__)
    module = ModuleParser(source, macro.__name__)
    function = FunctionParser(source, macro.__name__, module.errors, module.chain)
    module.functions.append(function)
    for name, value in arguments.items():
        function.scope.bind(name, _unrecorded(value))
    with parsing(module):
        function.block(function.node.body)
    if module.errors:
        raise together(module.errors)
    return without_needless((*function.hoisted, *function.out), function.made, function.addressed)


def _unrecorded(x: object) -> Any:
    """An argument as the parser has it."""
    if isinstance(x, Value):
        return Plain(x.expr)
    if isinstance(x, Pointer):
        p: Any = x
        return PointerValue(p.elem, p.base, p.offset, p.blocked)
    return x
