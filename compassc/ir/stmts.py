"""Immutable statements, functions and modules of the IR.

A function body is a tuple of statements. `Let` defines a variable for the rest of its block, `Assign` gives it a new
value; nothing else changes a scalar or vector variable except `SetElement`.
"""

from __future__ import annotations

from typing import Any

from compass_core.errors import Span

from .exprs import Buffer, Expr, Node, Var, _is, _set

Body = tuple["Stmt", ...]


class Stmt(Node):
    """A statement, with the place in the kernel it came from."""

    __slots__ = ("span",)
    span: Span | None

    def map(self, expr, body) -> Stmt:
        """The statement with `expr` applied to its expressions and `body` to its nested bodies."""
        return self

    def exprs(self) -> tuple[Expr, ...]:
        return ()

    def bodies(self) -> tuple[Body, ...]:
        return ()


def _mapped(old: Any, expr) -> Any:
    """What `expr` makes of an expression field: None, a Buffer, expressions or one; the same object if nothing changes."""
    if old is None:
        return None
    if type(old) is Buffer:
        return old.map(expr)
    if type(old) is tuple:
        new = tuple([expr(e) for e in old])
        return old if all(map(_is, new, old)) else new
    return expr(old)


def _stmt(name: str, exprs: tuple[str, ...], bodies: tuple[str, ...] = (), others: tuple[str, ...] = (), doc: str = ""):
    """A statement class: constructor arguments are `others`, `exprs`, `bodies`, then `span`.

    Expression fields may hold None or a Buffer (mapped through its own `map`).
    """
    fields = others + exprs + bodies

    def __init__(self, *args, span=None):
        if len(args) != len(fields):
            raise TypeError(f"{name} takes {', '.join(fields)}")
        for field, value in zip(fields, args):
            _set(self, field, value)
        _set(self, "span", span)

    def map_(self, expr, body):
        changed = False
        values = [getattr(self, f) for f in others]
        for field in exprs:
            old = getattr(self, field)
            new = _mapped(old, expr)
            changed |= new is not old
            values.append(new)
        for field in bodies:
            old = getattr(self, field)
            new = body(old)
            changed |= new is not old
            values.append(new)
        return type(self)(*values, span=self.span) if changed else self

    def exprs_(self):
        found = []
        for field in exprs:
            value = getattr(self, field)
            if type(value) is tuple:
                found += value
            elif type(value) is Buffer:
                found.append(value.data)
            elif value is not None:
                found.append(value)
        return tuple(found)

    def bodies_(self):
        return tuple([getattr(self, b) for b in bodies])

    return type(
        name,
        (Stmt,),
        {
            "__slots__": fields,
            "fields": fields,
            "__init__": __init__,
            "__doc__": doc,
            "__module__": __name__,
            "map": map_,
            "exprs": exprs_,
            "bodies": bodies_,
        },
    )


Let = _stmt("Let", ("value",), others=("var",), doc="Define `var` for the rest of the block.")
Assign = _stmt("Assign", ("value",), others=("var",), doc="Give a defined variable or parameter a new value.")
SetElement = _stmt("SetElement", ("index", "value"), others=("var",), doc="`var[index] = value` on a vector variable.")
Store = _stmt(
    "Store", ("buffer", "indices", "value", "mask"), doc="Write an element, or a vector where the last index is a Ramp."
)
Eval = _stmt("Eval", ("value",), doc="Evaluate an expression for its effect.")
Alloc = _stmt("Alloc", (), others=("buffer",), doc="Storage for `buffer` (constant shape), uninitialised.")
AllocConst = _stmt(
    "AllocConst", (), others=("buffer", "data"), doc="A constant table: `data` is its little-endian bytes."
)
DeclBuffer = _stmt("DeclBuffer", ("buffer",), doc="Name a shaped view of a pointer.")
If = _stmt("If", ("cond",), ("then", "orelse"), doc="Conditional; `orelse` may be empty.")
For = _stmt(
    "For",
    ("start", "stop", "step"),
    ("body",),
    others=("var", "kind"),
    doc="`for var in range(start, stop, step)`; kind is serial, vectorized, unrolled or tec.",
)
While = _stmt("While", ("cond",), ("body",), doc="Loop while the scalar condition holds.")
Break = _stmt("Break", (), doc="Leave the innermost loop.")
Return = _stmt("Return", ("value",), doc="Leave the function; value None in void functions.")


class _Program(Node):
    """What is shown as program text."""

    __slots__ = ()

    def script(self) -> str:
        """The text form, which `parse_module` reads."""
        from .printer import print_module

        return print_module(self if isinstance(self, IRModule) else IRModule((self,), self.name, ""))  # type: ignore[attr-defined]

    __str__ = script

    def show(self) -> None:
        """Print the text form."""
        print(self.script())


class PrimFunc(_Program):
    """A function: parameters, body, return type (`void`, a DataType or PointerType) and attributes."""

    __slots__ = ("attrs", "body", "name", "params", "ret_type", "span")
    fields = ("name", "params", "body", "ret_type", "attrs")

    def __init__(
        self,
        name: str,
        params: tuple[Var, ...],
        body: Body,
        ret_type: Any,
        attrs: tuple[tuple[str, object], ...] = (),
        span: Span | None = None,
    ) -> None:
        for field, value in zip(self.fields, (name, params, body, ret_type, attrs)):
            _set(self, field, value)
        _set(self, "span", span)

    def attr(self, name: str, default: object = None) -> Any:
        return dict(self.attrs).get(name, default)

    def replace(self, **changes: Any) -> PrimFunc:
        return PrimFunc(**{f: changes.get(f, getattr(self, f)) for f in (*self.fields, "span")})


class IRModule(_Program):
    """Functions in symbol order, exactly one of them the entry, and the target they are compiled for ("": any)."""

    __slots__ = ("entry", "functions", "target")
    fields = ("functions", "entry", "target")

    def __init__(self, functions: tuple[PrimFunc, ...], entry: str, target: str) -> None:
        _set(self, "functions", tuple(sorted(functions, key=lambda f: f.name)))
        _set(self, "entry", entry)
        _set(self, "target", target)

    def __getitem__(self, name: str) -> PrimFunc:
        for f in self.functions:
            if f.name == name:
                return f
        raise KeyError(name)

    @property
    def entry_func(self) -> PrimFunc:
        return self[self.entry]

    def map_functions(self, fn) -> IRModule:
        functions = tuple([fn(f) for f in self.functions])
        if all(map(_is, functions, self.functions)):
            return self
        return IRModule(functions, self.entry, self.target)
