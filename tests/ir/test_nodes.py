"""Laws of node classes, over all that are declared."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest

from compass_core.errors import CompassError, Span
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, dtype, pointer_type
from compassc.ir.equal import structural_equal
from compassc.ir.forms import FORMS
from compassc.ir.node import Field, Node, Statements, derived, field, node
from compassc.ir.printer import Printer, print_module
from compassc.ir.text import parse_module
from compassc.ir.visit import rename_vars

_ALL = dict.fromkeys([c for m in (E, S) for c in vars(m).values() if isinstance(c, type)])
CLASSES = [c for c in _ALL if issubclass(c, Node) and c.declared]
EXPRS = [c for c in CLASSES if issubclass(c, E.Expr)]
STMTS = [c for c in CLASSES if issubclass(c, S.Stmt)]
PLACED = [c for c in CLASSES if any(f.name == "span" for f in c.declared)]
X = E.Var("x", INT32)
P = E.Var("p", pointer_type(INT32, "global"))
NAMED: dict[str, Any] = {"op": "add", "base": P, "vector": E.Var("v", dtype("int32x8")), "elems": (X,) * 8}
TYPED: dict[str, Any] = {
    "Expr": X,
    "Expr | None": None,
    "Var": X,
    "Buffer": E.Buffer(P, INT32),
    "Body": Statements((S.Break(),)),
    "Body | None": Statements((S.Break(),)),
    "tuple[Expr, ...]": (X,),
    "tuple[BufferRegion, ...]": (E.BufferRegion(E.Buffer(P, INT32), (X,), (X,)),),
    "tuple[int, ...]": (1,),
    "tuple[Var, ...]": (X,),
    "tuple[PrimFunc, ...]": (),
    "tuple[GraphMember, ...]": (),
    "tuple[tuple[str, object], ...]": (),
    "Notes": (),
    "tuple[str, ...]": ("spatial",),
    "Type": INT32,
    "DataType": INT32,
    "int": 8,
    "float": 1.5,
    "bool": True,
    "bytes": b"1234",
    "str": "text",
    "Span | None": None,
}


def value(cls: type, f: Field) -> Any:
    if cls is E.Ramp and f.name == "base":
        return X
    return NAMED.get(f.name, TYPED[f.annotation])


def sample(cls: type, **changes: Any) -> Any:
    """A node of a class, from its declaration."""
    return cls(**{f.name: value(cls, f) for f in cls.declared} | changes)


@pytest.mark.parametrize("cls", CLASSES)
def test_nodes_keep_what_they_were_given_and_refuse_changes(cls):
    made = sample(cls)
    assert type(made) is cls
    for f in cls.declared:
        if f.normalise is None:
            assert getattr(made, f.name) is value(cls, f)
        with pytest.raises(AttributeError, match="immutable"):
            setattr(made, f.name, None)
        with pytest.raises(AttributeError):
            delattr(made, f.name)
    with pytest.raises(AttributeError):
        made.other = 1
    assert not hasattr(made, "__dict__")


@pytest.mark.parametrize("cls", CLASSES)
def test_replace_and_equality_follow_the_fields(cls):
    made = sample(cls)
    assert structural_equal(made, made.replace(), map_free_vars=True)
    for f in cls.declared:
        other: Any = {"int": 9, "str": "sub", "float": 2.5, "bytes": b"5678"}.get(f.annotation)
        if other is not None:
            changed = made.replace(**{f.name: other})
            assert getattr(changed, f.name) != getattr(made, f.name)
            assert structural_equal(made, changed, True) == ((cls, f.name) in ((E.Var, "name"), (S.Block, "name_hint")))


@pytest.mark.parametrize("cls", PLACED)
def test_a_place_stays_and_does_not_count(cls):
    place = Span("k.py", 3, 5)
    made = sample(cls, span=place)
    assert made.span is place and made.replace().span is place
    assert structural_equal(made, sample(cls))
    assert "span" not in cls.fields
    if cls is not S.PrimFunc:
        bodies = () if issubclass(cls, E.Expr) else ((),)
        mapper: Any = lambda e: E.Var("y", e.dtype)
        assert made.map(mapper, *[lambda b: b for _ in bodies]).span is place


@pytest.mark.parametrize("cls", [*EXPRS, *STMTS])
def test_walks_meet_every_expression_once_and_mapping_changes_it(cls):
    """`children` (`exprs`) are what `map` asks for; the same answers give the same node."""
    made = sample(cls, **{f.name: X for f in cls.declared if f.annotation == "Expr | None"})
    asked: list[E.Expr] = []

    def same(e: E.Expr) -> E.Expr:
        asked.append(e)
        return e

    statement = issubclass(cls, S.Stmt)
    rest: tuple[Any, ...] = (lambda body: body,) if statement else ()
    assert made.map(same, *rest) is made
    visited = made.exprs() if statement else made.children()
    assert tuple(asked) == visited
    if visited:
        fresh = {e: E.Var("new", e.dtype) for e in visited}
        changed = made.map(fresh.__getitem__, *rest)
        assert type(changed) is cls
        assert (changed.exprs() if statement else changed.children()) == tuple([fresh[e] for e in visited])
    if statement:
        assert made.bodies() == tuple(
            getattr(made, f.name) for f in cls.declared if f.annotation in ("Body", "Body | None")
        )


@pytest.mark.parametrize("cls", EXPRS)
def test_flags_are_those_of_children_and_type(cls):
    noisy = E.BufferLoad(E.Buffer(P, INT32), (X,))
    made = sample(cls, **{f.name: noisy for f in cls.declared if f.annotation == "Expr" and f.name not in NAMED})
    for child in made.children():
        if cls is not E.AddressOf:
            assert made.flags & child.flags == child.flags
    assert made.flags & made.dtype.flags == made.dtype.flags


def test_a_node_is_equal_only_to_itself():
    assert sample(E.IntImm) != sample(E.IntImm)
    assert len({sample(E.Var), sample(E.Var)}) == 2


def test_renaming_meets_what_statements_define():
    y = E.Var("y", INT32)
    for cls in (S.Let, S.Assign, S.SetElement, S.For):
        (made,) = rename_vars((sample(cls),), {X: y})
        assert (*S.defined(made), getattr(made, "var", y))[0] is y


@pytest.mark.parametrize("cls", FORMS)
def test_declared_forms_are_the_text(cls):
    """Names and commas of the text are those of the form."""
    printed = Printer()
    if issubclass(cls, S.Stmt):
        printed.body((sample(cls),), 0)
        text = printed.lines[0]
    else:
        text = printed.expr(sample(cls))
    form = FORMS[cls]
    spliced = len(NAMED["elems"]) - 1 if cls is E.VectorLiteral else 0
    assert text.startswith(f"T.{form.name}(") and text.count(",") == len(form.parts) - 1 + spliced


@pytest.mark.parametrize("cls", FORMS)
def test_declared_forms_read_back(cls):
    made = sample(cls)
    body = (made if isinstance(made, S.Stmt) else S.Evaluate(made),)
    module = S.IRModule((S.PrimFunc("k", (X, P, NAMED["vector"]), body, dtype("void")),), "k", "")
    text = print_module(module)
    again = parse_module(text)
    assert structural_equal(again, module) and print_module(again) == text
    cut = re.sub(rf"(T\.{FORMS[cls].name})\(.*\)$", r"\1()", text, flags=re.MULTILINE)
    with pytest.raises(CompassError, match=f"T.{FORMS[cls].name} takes {FORMS[cls].parts[0].name}"):
        parse_module(cut)


def test_declarations_with_mistakes_are_refused():
    class Wrong(E.Expr):
        __slots__ = ()
        items: list[E.Expr]
        dtype: Any = derived(lambda: INT32, init=False)

    Wrong.__annotations__["items"] = "list[Expr]"
    with pytest.raises(TypeError, match=re.escape("Wrong.items: walks do not know fields of type list[Expr]")):
        node()(Wrong)


def test_a_class_may_be_used_first_by_many_threads():
    for _ in range(20):

        class Twin(E.Expr):
            __slots__ = ()
            a: E.Expr
            dtype: Any = derived(lambda: INT32, init=False)

        Twin.__annotations__["a"] = "Expr"
        made: Any = node()(Twin)
        start, seen = threading.Barrier(8), []

        def use(cls: Any = made, start: Any = start, seen: list[Any] = seen) -> None:
            start.wait()
            seen.append(cls(X).map(lambda e: P).children())

        threads = [threading.Thread(target=use) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert seen == [(P,)] * 8


def test_normalised_fields():
    assert E.ConstMask(-1, 4).bits == 15 and E.ConstMask(-1, 4).all_true
    assert type(E.IntImm(INT32, True).value) is int
    made = S.IRModule((sample(S.PrimFunc, name="b"), sample(S.PrimFunc, name="a")), "a", "")
    assert [f.name for f in made.functions] == ["a", "b"]
    assert isinstance(field(default=1), Field)
