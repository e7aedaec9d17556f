"""`compass_core.dataclass` makes the classes that `dataclasses` makes."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import pickle
from dataclasses import field, fields, replace
from functools import partial
from typing import Any, ClassVar

import pytest

from compass_core.dataclass import dataclass
from tests import sources


class Point:
    x: int
    kind: ClassVar[str] = "point"
    tags: list[str] = field(default_factory=list)
    note: str = field(default="", compare=False, repr=False)
    size: int = field(init=False, default=7)
    seen: list[int] = field(init=False, default_factory=list)
    key: int = field(default=0, hash=False, kw_only=True)


class Unhashed:
    x: int = 0


class WithoutFields:
    pass


class Own:
    x: int
    y: int

    def __init__(self, x: int) -> None:
        self.x, self.y = x, -x

    def __repr__(self) -> str:
        return "mine"

    def __hash__(self) -> int:
        return 5


class Compared:
    x: int

    def __eq__(self, other: object) -> bool:
        return True


class After:
    x: list[object]
    y: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", len(self.x))


FORMS: list[dict[str, Any]] = [{}, {"frozen": True}, {"eq": False}, {"frozen": True, "eq": False, "repr": False}]
CLASSES = [Point, Unhashed, WithoutFields, Own, Compared, After]


def pair(cls: type, form: dict[str, Any]) -> list[Any]:
    """A class made by Python's decorator, and by ours."""
    return [
        decorator(**form)(type(cls.__name__, (), dict(vars(cls)) | {"__doc__": "Text."}))
        for decorator in (dataclasses.dataclass, dataclass)
    ]


def outcome(action: Any) -> object:
    try:
        return action()
    except Exception as error:  # noqa: BLE001 - what is raised is compared
        return type(error), str(error)


VALUES: list[dict[str, Any]] = [
    {"x": [1]},
    {"x": "ab", "tags": ["t"], "note": "n", "key": 3},
    {},
    {"x": [1], "size": 2},
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("cls", CLASSES)
def test_objects_are_those_of_dataclasses(cls: type, form: dict[str, Any]):
    def facts(made_class: Any, values: dict[str, Any]) -> list[object]:
        a, b = made_class(**values), made_class(**values)
        changed = [outcome(lambda n=n: setattr(a, n, a.x)) for n in ("x", "other")]
        removed = [outcome(lambda n=n: delattr(a, n)) for n in ("x", "other")]
        a = made_class(**values)
        printed = outcome(lambda: repr(a) if "__repr__" in vars(made_class) else "")
        compared = [a == b, a != b, a == 1, a == replace_of(a)]
        hashed = outcome(lambda: hash(a) == hash(b)) if made_class.__hash__ is not object.__hash__ else "identity"
        return [vars(a), printed, compared, hashed, changed, removed, outcome(lambda: dataclasses.asdict(a))]

    def replace_of(a: Any) -> object:
        return outcome(lambda: replace(a, x="other"))

    theirs, ours = pair(cls, form)
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert ours.__match_args__ == theirs.__match_args__
    assert [f.name for f in fields(ours)] == [f.name for f in fields(theirs)]
    for values in VALUES:
        assert outcome(partial(facts, ours, values)) == outcome(partial(facts, theirs, values))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_classes_are_inherited(form: dict[str, Any]):
    def facts(decorator: Any) -> list[object]:
        base = decorator(**form)(type("Base", (), {"__annotations__": {"x": "int"}, "__doc__": "B"}))
        plain = type("Plain", (base,), {"more": 3})
        derived = decorator(**form)(type("Derived", (base,), {"__annotations__": {"y": "int"}, "y": 4, "__doc__": "D"}))
        objects = [plain(1), derived(1), derived(1, y=2), base(x=1)]
        return [
            *map(vars, objects),
            [a == b for a in objects for b in objects],
            [outcome(lambda a=a, n=n: setattr(a, n, 1)) for a in objects for n in "xyz"],
            [str(inspect.signature(c)) for c in (base, plain, derived)],
            [c.__init__.__qualname__ for c in (plain, derived)],
        ]

    assert facts(dataclass) == facts(dataclasses.dataclass)


@dataclass(frozen=True)
class Kept:
    x: object
    more: tuple[int, ...] = ()


def test_objects_are_pickled_and_print_themselves_within_themselves():
    assert pickle.loads(pickle.dumps(Kept("a", (1,)))) == Kept("a", (1,))
    inner: list[object] = []
    inner.append(Kept(inner))
    assert repr(inner[0]) == "Kept(x=[...], more=())"  # as a list prints itself
    itself = Kept(0)
    object.__setattr__(itself, "x", itself)
    assert repr(itself) == "Kept(x=..., more=())"


def test_methods_are_compiled_when_they_are_looked_up():
    @dataclass(frozen=True)
    class Value:
        x: int

    kinds = {name: type(vars(Value)[name]).__name__ for name in ("__init__", "__eq__", "__hash__", "__repr__")}
    assert set(kinds.values()) == {"_Later"}
    value = Value(1)
    assert inspect.isfunction(vars(Value)["__init__"])
    assert type(vars(Value)["__hash__"]).__name__ == "_Later"
    assert {value: 2}[Value(1)] == 2
    assert inspect.isfunction(vars(Value)["__hash__"])
    assert inspect.isfunction(vars(Value)["__eq__"])


def test_a_frozen_class_does_not_say_how_it_is_assigned_to():
    with pytest.raises(TypeError, match="frozen"):

        @dataclass(frozen=True)
        class Odd:
            x: int

            def __setattr__(self, name: str, value: object) -> None:
                raise AssertionError


def test_all_sources_take_it():
    """Python's own costs a program's start half a millisecond per class."""
    wrong = [
        f"{path}:{node.lineno}"
        for path in sources.paths()
        if path.name != "dataclass.py"
        for node in sources.nodes(path)
        if isinstance(node, ast.ImportFrom) and node.module == "dataclasses"
        if any(name.name == "dataclass" for name in node.names)
    ]
    assert not wrong
