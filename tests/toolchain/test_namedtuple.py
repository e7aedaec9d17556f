"""`compass_core.namedtuple` makes the classes that `typing` makes."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import typing
from functools import partial
from typing import Any

import pytest

from compass_core.namedtuple import NamedTuple
from tests import sources


class Kept(NamedTuple):
    """Text."""

    x: int
    more: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return self.x + len(self.more)

    def __bool__(self) -> bool:
        return self.x > 0


class Theirs(typing.NamedTuple):
    """Text."""

    x: int
    more: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return self.x + len(self.more)

    def __bool__(self) -> bool:
        return self.x > 0


def outcome(action: Any) -> object:
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - what is raised is compared
        return type(error), str(error)


CALLS = {
    "by place": lambda cls: cls(1, (2,)),
    "by name": lambda cls: cls(more=(1,), x=3),
    "by default": lambda cls: cls(0),
    "too few": lambda cls: cls(),
    "too many": lambda cls: cls(1, 2, 3),
    "unknown": lambda cls: cls(1, y=2),
    "twice": lambda cls: cls(1, x=2),
    "replaced": lambda cls: cls(1)._replace(x=4),
    "replaced by none": lambda cls: cls(1)._replace(y=4),
    "made": lambda cls: cls._make([5, (6,)]),
    "made of too few": lambda cls: cls._make([5]),
    "derived": lambda cls: type("Derived", (cls,), {})(7)._replace(more=(1,)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_objects_are_those_of_typing(call):
    def facts(cls: Any) -> object:
        made = call(cls)
        same = [
            made == tuple(made),
            hash(made) == hash(tuple(made)),
            copy.deepcopy(made) == made,
            bool(made),
            made.size,
        ]
        return tuple(made), repr(made), same, made._asdict(), made.x, outcome(lambda: setattr(made, "x", 1))

    ours, theirs = (str(outcome(partial(facts, cls))) for cls in (Kept, Theirs))
    assert ours.replace("Kept", "Theirs") == theirs


def test_classes_are_those_of_typing():
    for name in ("_fields", "_field_defaults", "__match_args__", "__doc__", "__module__", "__slots__"):
        assert getattr(Kept, name) == getattr(Theirs, name), name
    assert [str(p.default) for p in inspect.signature(Kept).parameters.values()] == [
        str(p.default) for p in inspect.signature(Theirs).parameters.values()
    ]
    assert inspect.getdoc(Kept.x) == inspect.getdoc(Theirs.x)
    assert pickle.loads(pickle.dumps(Kept(1))) == Kept(1) and type(pickle.loads(pickle.dumps(Kept(1)))) is Kept
    with pytest.raises(TypeError, match="behind one that has one"):
        type(NamedTuple)("Odd", (NamedTuple,), {"__annotations__": {"x": "int", "y": "int"}, "x": 1})


def test_constructors_are_compiled_when_they_are_looked_up():
    class Value(NamedTuple):
        x: int

    assert not inspect.isfunction(getattr(vars(Value)["__new__"], "__func__", None))
    assert Value(1) == (1,)
    assert inspect.isfunction(vars(Value)["__new__"].__func__)


def test_all_sources_take_it():
    """Python's own costs a program's start a fifth of a millisecond per class."""
    wrong = [
        f"{path}:{node.lineno}"
        for path in sources.paths()
        if path.name != "namedtuple.py"
        for node in sources.nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        if any(name.name == "NamedTuple" for name in node.names)
    ]
    assert not wrong
