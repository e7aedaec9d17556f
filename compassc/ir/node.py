"""Declarations of immutable nodes: `@node` makes a class of annotated fields.

    @node(flags=F_LOAD)
    class BufferLoad(PlacedExpr):
        buffer: Buffer
        indices: tuple[Expr, ...]
        mask: Expr | None = None
        dtype: DataType = derived(_type_of_load, init=False)

From the fields come `__slots__`, the constructor, `children`, `map` (`exprs`, `bodies` and `map` of a statement),
`at` where there is a `span`, `replace`, `repr`, structural equality (`equal`), and where `text` gives a form, the text and its reader.

The annotation of a field says how it takes part: `Expr`, `Var`, `Expr | None`, `tuple[Expr, ...]` (or of `BufferRegion`) and `Buffer` are
visited and mapped, `Body` (or None) is a nested block, everything else is a plain value.

Nodes are built often, so the constructor is generated: it fills an object of a class of the same layout that accepts
assignments and then gives it the class that refuses them, at half the cost of `object.__setattr__` per field.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, cast

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda decorator: decorator


_N = TypeVar("_N")
_T = TypeVar("_T")
_REQUIRED: object = object()

ONE, OPTIONAL, MANY, BUFFER, BODY, OPTIONAL_BODY, VALUE = "one optional many buffer body optional-body value".split()
_KINDS = {
    "Expr": ONE,
    "Var": ONE,
    "Expr | None": OPTIONAL,
    "tuple[Expr, ...]": MANY,
    "tuple[BufferRegion, ...]": MANY,
    "Buffer": BUFFER,
    "Body": BODY,
    "Body | None": OPTIONAL_BODY,
}
_BODIES = {BODY: "self.{0}", OPTIONAL_BODY: "self.{0} or ()"}
"""Nested blocks, and how they are walked."""
_NODE_WORDS = ("Expr", "Var", "Buffer", "Body", "Stmt")


class Statements(tuple[Any, ...]):
    """A nested block, which is what fields of it hold: statements in order. Programs that see IR of other forms give it more
    attributes (`compassc.compat.nodes`)."""

    __slots__ = ()


class Field:
    """One field of a node class.

    `kind` is how it takes part in walks; `defines` marks a variable or storage that the node defines or changes, which
    walks leave out; `compared` is False for positions.
    """

    __slots__ = ("annotation", "compared", "default", "defines", "keyword", "kind", "name", "normalise", "rule")

    name: str
    annotation: str
    kind: str

    def __init__(
        self,
        default: object = _REQUIRED,
        keyword: bool = False,
        compared: bool = True,
        defines: bool = False,
        normalise: Callable[..., object] | None = None,
        rule: Callable[..., object] | None = None,
    ) -> None:
        self.default, self.keyword, self.compared = default, keyword, compared
        self.defines, self.normalise, self.rule = defines, normalise, rule

    def named(self, name: str, annotation: str) -> Field:
        self.name, self.annotation = name, annotation
        self.kind = VALUE if self.defines else _KINDS.get(annotation, VALUE)
        return self


def field(
    *,
    default: object = _REQUIRED,
    kw_only: bool = False,
    compare: bool = True,
    defines: bool = False,
    normalise: Callable[..., object] | None = None,
) -> Any:
    """A field with more than a type. `normalise` is a function of fields, by their names, that gives the kept value; or the
    type of the value."""
    return Field(default, kw_only, compare, defines, normalise)


def derived(rule: Callable[..., _T], *, init: Literal[False]) -> _T:
    """A field that follows from others: `rule` is a function of fields, by their names.

    `init=False` tells type checkers that the constructor does not take it.
    """
    return cast(_T, Field(rule=rule))


class Node:
    """Base of all nodes. `fields` names what the node consists of, in the order of the constructor's arguments."""

    packed_object: ClassVar[bool] = True
    """Functions by name take it."""

    __slots__ = ()
    fields: ClassVar[tuple[str, ...]] = ()
    """Names of the fields that count when nodes are compared."""
    declared: ClassVar[tuple[Field, ...]] = ()
    """The constructor's arguments, positions included."""
    defining: ClassVar[tuple[str, ...]] = ()
    """Names of the fields with what a statement defines or changes."""
    has_blocks: ClassVar[bool] = False
    """Whether a statement can have other statements in it."""
    text_form: ClassVar[str] = ""

    def __repr__(self) -> str:
        inner = ", ".join(f"{f}={getattr(self, f)!r}" for f in self.fields)
        return f"{type(self).__name__}({inner})"

    def same_as(self, other: object) -> bool:
        """Whether the other one is this node."""
        return self is other

    def replace(self, **changes: Any) -> Self:
        """The same node with some fields changed."""
        values = {f.name: getattr(self, f.name) for f in self.declared}
        return type(self)(**{**values, **changes})

    def __reduce__(self) -> tuple[object, ...]:
        return restored, (type(self), {f.name: getattr(self, f.name) for f in self.declared})


class Flagged(Node):
    """A node that tells what occurs in it: `flags` is the union over its tree of the `F_*` bits."""

    __slots__ = ()
    _computed: ClassVar[tuple[str, ...]] = ("flags",)
    flags: int


def restored(cls: type[_N], values: dict[str, object]) -> _N:
    """A node that was pickled."""
    return cls(**values)


def _refuse(self: Node, name: str, *value: object) -> None:
    raise AttributeError(f"{type(self).__name__} is immutable")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field, derived))
def node(*, flags: int = 0, text: str = "", abstract: bool = False) -> Callable[[type[_N]], type[_N]]:
    """Make a node class of a class of annotated fields.

    `flags`: what an expression of this class adds to the flags of its children and its type. `text`: its form in IR
    text, such as `T.cast(value, dtype)`; without it printer and reader know the class by themselves. `abstract`: the
    fields are for the classes that inherit them.
    """

    def make(cls: type[_N]) -> type[_N]:
        notes = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 - `inspect` costs more than all the rest
        own = [_field(cls, name, note) for name, note in notes.items()]
        inherited = list(getattr(cls, "_abstract_fields", ()))
        namespace = {
            k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__", *(f.name for f in own))
        }
        namespace["__slots__"] = ()
        base: Any = type(cls)
        if abstract:
            namespace["_abstract_fields"] = (*inherited, *own)
            made: type[_N] = base(cls.__name__, cls.__bases__, namespace)
            return made
        every = [*own, *inherited]
        arguments = [f for f in every if f.rule is None]
        namespace |= {
            "fields": tuple([f.name for f in arguments if f.compared]),
            "declared": tuple(arguments),
            "has_blocks": any(f.kind in _BODIES for f in every),
            "defining": tuple([f.name for f in arguments if f.defines]),
            "text_form": text,
            "__match_args__": tuple([f.name for f in arguments if not f.keyword]),
            "__slots__": _slots(cls, every),
            "__setattr__": _refuse,
            "__delattr__": _refuse,
            "__new__": _first,
        }
        made = base(cls.__name__, cls.__bases__, namespace)
        if hasattr(made, "map"):
            _check(made, every)
        _pending[made] = (every, flags)
        return made

    return make


_lock = Lock()
_pending: dict[type, tuple[list[Field], int]] = {}
"""Classes of which no node was made yet: their fields and their own flags."""


def _first(cls: Any, *args: Any, **keywords: object) -> Any:
    """Make the first node of a class: its methods are generated now, for a run uses some classes only."""
    with _lock:
        if cls in _pending:
            draft = type(cls)(cls.__name__, cls.__bases__, {"__slots__": cls.__slots__})
            methods = _methods(cls, draft, *_pending[cls])
            first = methods.pop("__new__")
            for name, method in methods.items():
                setattr(cls, name, method)
            cls.__new__ = first  # at last: with it other threads use the class
            del _pending[cls]
    return cls(*args, **keywords)


def _field(cls: type, name: str, annotation: str) -> Field:
    given = cls.__dict__.get(name, _REQUIRED)
    return (given if isinstance(given, Field) else Field(given)).named(name, annotation)


def _slots(cls: type, fields: list[Field]) -> tuple[str, ...]:
    own = {f.name for f in fields}
    return (*[f.name for f in fields], *[name for name in getattr(cls, "_computed", ()) if name not in own])


# ------------------------------------------------------------------------------------------------- the generated methods


def _methods(cls: type, draft: type, fields: list[Field], flags: int) -> dict[str, object]:
    names: dict[str, Any] = {"Draft": draft, "Frozen": cls, "Statements": Statements}
    lines = _constructor(cls, fields, flags, names)
    if any(f.name == "span" for f in fields):
        lines += _copy("at", "span", cls)
    walked = [f for f in fields if f.kind is not VALUE]
    if walked and hasattr(cls, "map"):
        visited = [f for f in walked if f.kind not in _BODIES]
        statement = hasattr(cls, "bodies")
        lines += _walk("exprs" if statement else "children", visited)
        lines += _map(fields, statement)
        bodies = [_BODIES[f.kind].format(f.name) for f in walked if f.kind in _BODIES]
        if bodies:
            lines += ["def bodies(self):", f"    return ({', '.join(bodies)},)"]
    found: dict[str, Any] = {}
    exec("\n".join(lines), names, found)  # noqa: S102 - text that the functions below made of declarations
    for name, function in found.items():
        function.__qualname__, function.__module__ = f"{cls.__name__}.{name}", cls.__module__
    return found


def _check(cls: type, fields: list[Field]) -> None:
    """No field of nodes may be taken for a plain value."""
    for f in fields:
        if f.kind is VALUE and not f.defines and any(word in f.annotation for word in _NODE_WORDS):
            raise TypeError(f"{cls.__name__}.{f.name}: walks do not know fields of type {f.annotation}")


def _constructor(cls: type, fields: list[Field], flags: int, names: dict[str, object]) -> list[str]:
    positional = [f for f in fields if f.rule is None and not f.keyword]
    keywords = [f for f in fields if f.keyword]
    parameters = ["cls", *[_parameter(f, names) for f in positional]]
    if keywords:
        parameters += ["*", *[_parameter(f, names) for f in keywords]]
    lines = [f"def __new__({', '.join(parameters)}):", "    self = Draft()"]
    for f in fields:
        value = f.name
        if f.normalise is not None:
            value = _applied(f, f.normalise, names)
        elif f.rule is not None:
            value = f"{f.name} = " + _applied(f, f.rule, names)
        elif f.kind is BODY:
            value = f"{f.name} if type({f.name}) is Statements else Statements({f.name})"
        lines.append(f"    self.{f.name} = {value}")
    if "flags" in getattr(cls, "_computed", ()) and all(f.name != "flags" for f in fields):
        lines += _flags(fields, flags)
    return [*lines, "    self.__class__ = Frozen", "    return self"]


def _copy(name: str, changed: str, cls: Any) -> list[str]:
    """A method that gives the same node with another value of a field that nothing else depends on."""
    lines = [f"def {name}(self, {changed}):", "    new = Draft()"]
    lines += [f"    new.{slot} = {changed if slot == changed else f'self.{slot}'}" for slot in cls.__slots__]
    return [*lines, "    new.__class__ = Frozen", "    return new"]


def _parameter(f: Field, names: dict[str, object]) -> str:
    if f.default is _REQUIRED:
        return f.name
    names[f"default_{f.name}"] = f.default
    return f"{f.name}=default_{f.name}"


def _applied(f: Field, rule: Callable[..., object], names: dict[str, object]) -> str:
    """The call of a rule, whose parameters are fields; a type is called with the field itself."""
    names[f"rule_{f.name}"] = rule
    if isinstance(rule, type):
        return f"rule_{f.name}({f.name})"
    code = rule.__code__
    return f"rule_{f.name}({', '.join(code.co_varnames[: code.co_argcount])})"


def _flags(fields: list[Field], flags: int) -> list[str]:
    """The flags of the type, the children and the class together."""
    always = [f"{f.name}.flags" for f in fields if f.kind is ONE or f.name == "dtype"]
    always += [f"{f.name}.data.flags" for f in fields if f.kind is BUFFER]
    lines = [f"    flags = {' | '.join([str(flags), *always])}"]
    for f in fields:
        if f.kind is MANY or f.kind in _BODIES:
            items = _BODIES[f.kind].format(f.name) if f.kind in _BODIES else f.name
            lines += [f"    for item in {items}:", "        flags |= item.flags"]
        elif f.kind is OPTIONAL:
            lines += [f"    if {f.name} is not None:", f"        flags |= {f.name}.flags"]
    return [*lines, "    self.flags = flags"]


_VISITED = {ONE: "self.{0},", MANY: "*self.{0},", BUFFER: "self.{0}.data,"}


def _walk(name: str, fields: list[Field]) -> list[str]:
    """A method that gives the expressions of a node, in the order of the fields."""
    required, optional = [f for f in fields if f.kind is not OPTIONAL], [f for f in fields if f.kind is OPTIONAL]
    whole = len(required) == 1 and required[0].kind is MANY
    have = (
        f"self.{required[0].name}" if whole else "(" + "".join(_VISITED[f.kind].format(f.name) for f in required) + ")"
    )
    lines = [f"def {name}(self):"]
    if not optional:
        return [*lines, f"    return {have}"]
    lines.append(f"    found = {have}")
    for f in optional:
        lines += [
            f"    {f.name} = self.{f.name}",
            f"    if {f.name} is not None:",
            f"        found = (*found, {f.name})",
        ]
    return [*lines, "    return found"]


_MAPPED = {
    ONE: "fn(self.{0})",
    OPTIONAL: "None if self.{0} is None else fn(self.{0})",
    BUFFER: "self.{0}.map(fn)",
    BODY: "body(self.{0})",
    OPTIONAL_BODY: "body(self.{0} or ()) or None",
}


def _map(fields: list[Field], statement: bool) -> list[str]:
    """A method that gives the node with its expressions mapped; the node itself when nothing changed."""
    lines = ["def map(self, fn, body):" if statement else "def map(self, fn):"]
    walked = [f for f in fields if f.kind is not VALUE]
    if any(f.kind is MANY for f in walked):
        lines.append("    same = True")
    for f in walked:
        lines += _map_many(f.name) if f.kind is MANY else [f"    {f.name} = {_MAPPED[f.kind].format(f.name)}"]
    same = ["same"] * ("    same = True" in lines)
    same += [f"{f.name} is self.{f.name}" for f in walked if f.kind is not MANY]
    arguments = [f"{f.name}=" * f.keyword + _argument(f) for f in fields if f.rule is None]
    return [
        *lines,
        f"    if {' and '.join(same)}:",
        "        return self",
        f"    return Frozen({', '.join(arguments)})",
    ]


def _map_many(name: str) -> list[str]:
    """Map the items of a field. A loop, since most fields have one or two: a comprehension costs as much as three."""
    return [
        f"    {name} = []",
        f"    for item in self.{name}:",
        "        new = fn(item)",
        "        if new is not item:",
        "            same = False",
        f"        {name}.append(new)",
    ]


def _argument(f: Field) -> str:
    """What a mapped node is made of."""
    return f"self.{f.name}" if f.kind is VALUE else f"tuple({f.name})" if f.kind is MANY else f.name
