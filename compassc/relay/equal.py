"""Structural equality: the same program up to the names of local variables. Where it comes from and the types that
inference found do not count; which nodes are shared does."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

import numpy as np

from compass_core.arrays import Array
from compass_runtime.ndarray import NDArray
from compassc.ir.equal import StructuralMismatch
from compassc.ir.equal import structural_equal as kernels_equal
from compassc.ir.equal import structural_hash as kernel_hash
from compassc.ir.node import Node as KernelNode
from compassc.relay.attributes import Attrs, DictAttrs
from compassc.relay.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    Var,
)
from compassc.relay.module import IRModule
from compassc.relay.node import Node
from compassc.relay.operators import Op
from compassc.relay.types import FuncType, GlobalTypeVar, IncompleteType, Open, SizeVar, TensorType, TypeData, TypeVar

Path = tuple["Path | None", str]
"""Where in a program: the way there, and the last step."""


class Role(Enum):
    """What a part is to the whole: used, defined by it, or the type of what it defines."""

    USED = 0
    DEFINED = 1
    ANNOTATION = 2


Parts = list[tuple[str, object, Role]]
"""What a node consists of: the name of each part, the part, its role."""

_SHARED = (Call, Function, Let, If, Match, RefCreate, RefRead, RefWrite)
"""Nodes of which it counts where they are shared; tuples with fields too. Others are compared as trees."""
_FREE = (Var, TypeVar, GlobalVar, GlobalTypeVar, IncompleteType, SizeVar)
"""What equals itself only, unless it is defined on both sides."""
_DEFINED_FIRST: Mapping[type, tuple[str, ...]] = {
    Function: ("type_params", "params"),
    FuncType: ("type_params",),
    Let: ("var",),
    PatternVar: ("var",),
    TypeData: ("type_vars",),
}
"""The fields in which nodes define variables, which come before the others."""


def structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> bool:
    """Whether two expressions, types, patterns, attributes, functions or modules are the same program. Free variables must be
    identical or, with `map_free_vars`, stand at the same places."""
    if isinstance(lhs, TensorType) and isinstance(rhs, TensorType) and len(lhs.shape) == len(rhs.shape):
        if lhs.dtype != rhs.dtype:
            return False
        if all(type(d) is int for d in (*lhs.shape, *rhs.shape)):
            return lhs.shape == rhs.shape
    return _Compared(map_free_vars).difference(lhs, rhs) is None


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """StructuralMismatch (a ValueError) with the place and the texts of what differs first, unless two programs are the
    same."""
    compared = _Compared(map_free_vars)
    path = compared.difference(lhs, rhs)
    if path is not None:
        first, second = (_brief(side) for side in compared.sides)
        raise StructuralMismatch(
            f"not structurally equal at {_written(path)}: {first} and {second}",
            code="structural-equal",
            help="" if map_free_vars else "variables that neither side defines are equal with map_free_vars=True",
        )


def get_first_structural_mismatch(lhs: object, rhs: object, map_free_vars: bool = False) -> tuple[str, str] | None:
    """The place in each of two programs where they differ first; None where they do not."""
    path = _Compared(map_free_vars).difference(lhs, rhs)
    return None if path is None else (_written(path), _written(path))


_BRIEF = 400


def _brief(side: object) -> str:
    text = repr(side)
    return text if len(text) <= _BRIEF else f"{text[:_BRIEF]} ..."


def _written(path: Path | None) -> str:
    steps = []
    while path is not None:
        path, step = path
        steps.append(step)
    return "".join(reversed(steps))


def is_shared(given: object) -> bool:
    """Whether it counts where this node stands in a program more than once."""
    return isinstance(given, _SHARED) or (isinstance(given, Tuple) and len(given.fields) > 0)


def _parts(given: Node) -> Parts:
    """What a node consists of, in the order in which names are defined before they are used."""
    defined = _DEFINED_FIRST.get(type(given), ())
    parts: Parts = [(f".{name}", getattr(given, name), Role.DEFINED) for name in defined]
    if type(given) is Call:
        parts += [(".op", given.op, Role.USED), (".args", given.args, Role.USED), (".attrs", given.attrs, Role.USED)]
        return parts if isinstance(given.op, Op) else [*parts, (".type_args", given.type_args, Role.USED)]
    if type(given) is Constructor:
        return [(".name_hint", given.name_hint, Role.USED), (".belong_to", given.belong_to, Role.USED)]
    if type(given) is Clause:
        return [(".lhs", given.lhs, Role.USED), (".rhs", given.rhs, Role.USED)]
    return parts + [(f".{name}", value, Role.USED) for name, value in given.parts() if name not in defined]


def _items(given: Mapping[str, object]) -> Parts:
    return [(f"[{key!r}]", given[key], Role.USED) for key in sorted(given)]


def _elements(given: Iterable[object], role: Role) -> Parts:
    return [(f"[{i}]", value, role) for i, value in enumerate(given)]


class _Compared:
    """The pairing of two programs, as far as they have been walked."""

    def __init__(self, map_free_vars: bool) -> None:
        self.map_free_vars = map_free_vars
        self.partner: dict[int, object] = {}
        """What each variable and shared node of the left side is on the right."""
        self.back: dict[int, object] = {}
        self.trees: set[tuple[int, int]] = set()
        """Pairs of nodes that have been walked into."""
        self.by_name = False
        """Whether both sides are modules: names say which globals are the same."""
        self.sides: tuple[object, object] = (None, None)

    def difference(self, lhs: object, rhs: object) -> Path | None:
        """Where they differ first, None where they do not."""
        self.by_name = isinstance(lhs, IRModule) and isinstance(rhs, IRModule)
        todo: list[tuple[object, object, Role, Path]] = [(lhs, rhs, Role.USED, (None, "<root>"))]
        while todo:
            a, b, role, path = todo.pop()
            both = self.step(a, b, role)
            if both is None:
                self.sides = (a, b)
                return path
            todo += [(x, y, how, (path, name)) for (name, x, how), (_, y, _) in zip(*map(reversed, both))]
        return None

    def step(self, a: object, b: object, role: Role) -> tuple[Parts, Parts] | None:
        """What is left to compare of two values; None where they differ."""
        if isinstance(a, _FREE):
            return self.variables(a, b, role) if type(a) is type(b) else None
        if isinstance(a, Op) or callable(a) and not isinstance(a, Node):
            return ([], []) if a is b else None
        if isinstance(a, Constant):
            return ([], []) if isinstance(b, Constant) and _same_array(a.array, b.array) else None
        if isinstance(a, Node):
            return self.nodes(a, b, role) if type(a) is type(b) else None
        if isinstance(a, Attrs):
            return (_items(a), _items(b)) if isinstance(b, Attrs) and a.record is b.record else None
        if isinstance(a, (tuple, list)):
            if not isinstance(b, (tuple, list)) or len(a) != len(b):
                return None
            return _elements(a, role), _elements(b, role)
        if isinstance(a, Mapping):
            if not isinstance(b, Mapping) or isinstance(b, Attrs) or set(a) != set(b):
                return None
            return _items(a), _items(b)
        if isinstance(a, IRModule):
            if not self.by_name or not isinstance(b, IRModule) or _names(a) != _names(b):
                return None
            return _module(a), _module(b)
        return ([], []) if _same_value(a, b, self.map_free_vars) else None

    def nodes(self, a: Node, b: Node, role: Role) -> tuple[Parts, Parts] | None:
        if is_shared(a):
            if id(a) in self.partner or id(b) in self.back:
                return ([], []) if self.partner.get(id(a)) is b and self.back.get(id(b)) is a else None
            self.pair(a, b)
        else:
            pair = (id(a), id(b))
            if pair in self.trees:
                return [], []
            self.trees.add(pair)
        left, right = _parts(a), _parts(b)
        if role is Role.ANNOTATION:
            left, right = _annotating(left), _annotating(right)
        return (left, right) if len(left) == len(right) else None

    def pair(self, a: object, b: object) -> None:
        self.partner[id(a)], self.back[id(b)] = b, a

    def variables(self, a: object, b: object, role: Role) -> tuple[Parts, Parts] | None:
        if self.by_name and isinstance(a, (GlobalVar, GlobalTypeVar)):
            return ([], []) if a.name_hint == getattr(b, "name_hint", None) else None
        known = id(a) in self.partner or id(b) in self.back
        if known and self.partner.get(id(a)) is b and self.back.get(id(b)) is a:
            return [], []
        if role is Role.DEFINED:
            if known:
                self.trees.clear()  # a type that stands at several places defines its variables anew at each
        elif known or not (a is b or self.map_free_vars or (role is Role.ANNOTATION and isinstance(a, SizeVar))):
            return None
        self.pair(a, b)
        if isinstance(a, Var) and isinstance(b, Var):
            how = Role.ANNOTATION if role is Role.DEFINED else Role.USED
            part = ".type_annotation"
            return [(part, a.type_annotation, how)], [(part, b.type_annotation, how)]
        return ([], []) if getattr(a, "kind", None) == getattr(b, "kind", None) else None


def _annotating(parts: Parts) -> Parts:
    """The parts of a type that is an annotation."""
    return [(name, part, Role.ANNOTATION if role is Role.USED else role) for name, part, role in parts]


def _names(module: IRModule) -> tuple[set[str], set[str]]:
    return {v.name_hint for v in module.functions}, {v.name_hint for v in module.type_definitions}


def _module(module: IRModule) -> Parts:
    """The parts of a module, by name."""
    types = {v.name_hint: d for v, d in module.type_definitions.items()}
    functions = {v.name_hint: f for v, f in module.functions.items()}
    return [*_items(types), *_items(functions), (".attrs", DictAttrs(module.attrs), Role.USED)]


def _same_array(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def _array(given: object) -> Array | None:
    return np.asarray(given) if isinstance(given, (np.ndarray, NDArray)) else None


def _is_nan(given: object) -> bool:
    return isinstance(given, float) and math.isnan(given)


def _same_value(a: object, b: object, map_free_vars: bool) -> bool:
    """Whether two values that are no nodes are equal."""
    if isinstance(a, Open):
        return isinstance(b, Open)
    if isinstance(a, KernelNode):
        return isinstance(b, KernelNode) and kernels_equal(a, b, map_free_vars)
    first, second = _array(a), _array(b)
    if first is not None or second is not None:
        return first is not None and second is not None and _same_array(first, second)
    return bool(type(b).__module__ != "numpy" and (a == b or (_is_nan(a) and _is_nan(b))))


def structural_hash(given: object, map_free_vars: bool = False) -> int:
    """A number that equal programs share, the same in every process for programs without free types."""
    if isinstance(given, (TypeVar, IncompleteType)) and not map_free_vars:
        return object.__hash__(given)  # equal to itself only
    if isinstance(given, TensorType):
        return _hash_leaf(given)
    return _Hashed().digest(given)


def _crc(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _hash_leaf(given: object) -> int:
    """The hash of what has no parts."""
    if isinstance(given, TensorType):
        return hash((_crc(given.dtype), *[d if type(d) is int else -1 for d in given.shape]))
    if isinstance(given, (str, Op, GlobalVar, GlobalTypeVar)):
        return _crc(given if isinstance(given, str) else given.name if isinstance(given, Op) else type(given).__name__)
    if isinstance(given, Constant):
        array = given.array
        return hash((_crc(array.dtype.name), array.shape, zlib.crc32(array.tobytes())))
    if isinstance(given, (bool, int, float)):
        return 0 if _is_nan(given) else hash(given)
    if isinstance(given, KernelNode):
        return kernel_hash(given, True)
    tensor = _array(given)
    return _crc(type(given).__name__) if tensor is None else hash((tensor.shape, zlib.crc32(tensor.tobytes())))


class _Hashed:
    """The hashes of the nodes of one program. Variables and shared nodes are numbered in the order they are met in."""

    def __init__(self) -> None:
        self.known: dict[int, int] = {}
        self.open: list[tuple[object, Iterator[tuple[str, object, Role]], list[int]]] = []
        self.count = 0

    def digest(self, root: object) -> int:
        """The hash of a program."""
        done = self.enter(root, Role.USED)
        while self.open:
            whole, rest, digests = self.open[-1]
            if done is not None:
                digests.append(done)
            following = next(rest, None)
            if following is not None:
                done = self.enter(following[1], following[2])
            else:
                self.open.pop()
                done = self.finish(whole, digests)
        assert done is not None
        return done

    def enter(self, value: object, role: Role) -> int | None:
        """The hash of a value without parts, or one that is known; None where its parts are to be hashed first."""
        if role is Role.DEFINED and isinstance(value, Var):
            self.known.pop(id(value), None)  # a variable that several functions define is another one in each
        parts = self.parts(value, role)
        if parts is None:
            return self.known[id(value)] if id(value) in self.known else _hash_leaf(value)
        self.open.append((value, iter(parts), [_crc(type(value).__name__)]))
        return None

    def parts(self, value: object, role: Role) -> Parts | None:
        """The parts of a value that is not known yet; None for leaves and what is known."""
        if id(value) in self.known and isinstance(value, Node):
            return None
        if isinstance(value, Var):
            return [("", value.type_annotation, Role.USED)]
        if isinstance(value, (TensorType, Op, Constant, *_FREE)):
            return None
        if isinstance(value, Node):
            return _parts(value)
        if isinstance(value, Mapping):
            return _items(value)
        if isinstance(value, (tuple, list)):
            return _elements(value, role)
        return _module(value) if isinstance(value, IRModule) else None

    def finish(self, whole: object, digests: list[int]) -> int:
        """The hash of a value whose parts are hashed."""
        if is_shared(whole) or isinstance(whole, Var):
            self.count += 1
            digests.append(self.count)
        if isinstance(whole, (tuple, list)):
            digests[0] = len(whole)
        elif isinstance(whole, Mapping):
            digests[0] = _crc("".join(sorted(whole)))
        made = hash(tuple(digests))
        if isinstance(whole, Node):
            self.known[id(whole)] = made
        return made
