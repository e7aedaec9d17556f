"""Unification: two types that must be the same, of which parts may not be known yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compassc.relay.type_visit import everywhere, substituted, with_parts
from compassc.relay.types import (
    Dim,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    Open,
    RefType,
    SizeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
)


class Mismatch(Exception):
    """Two types that cannot be one. `message`: what of them conflicts."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Unifier:
    """What is known of holes (`IncompleteType`) and symbolic extents. `changed`: called with each hole that becomes known,
    or another hole, or whose type changes."""

    def __init__(self, changed: Callable[[IncompleteType], None] = lambda hole: None) -> None:
        self._bound: dict[int, Type] = {}
        self._kept: list[IncompleteType] = []
        self._sizes: dict[SizeVar, int] = {}
        self._changed = changed

    def find(self, t: Type) -> Type:
        """What is known of a type at its top: a hole only where nothing is."""
        while type(t) is IncompleteType and (known := self._bound.get(id(t))) is not None:
            t = known
        return t

    def resolved(self, t: Type) -> Type:
        """The type with all that is known."""
        t = self.find(t)
        if type(t) is TensorType:
            if self._sizes and any(d in self._sizes for d in t.shape if isinstance(d, SizeVar)):
                return TensorType([self._size(d) for d in t.shape], t.dtype, t.span)
            return t
        return with_parts(t, self.resolved)

    def unify(self, a: Type, b: Type, keep_b: bool = False) -> Type:
        """The type that both are. Of tensors an extent that is open in one is open in both: holes that were found to be the
        other become open, too, but with `keep_b` that of `b`. Mismatch where they cannot be the same."""
        known_a, known_b = self.find(a), self.find(b)
        if known_a is known_b:
            return known_a
        if isinstance(known_a, IncompleteType):
            return self._bind(known_a, known_b)
        if isinstance(known_b, IncompleteType):
            return self._bind(known_b, known_a)
        rule = _RULES.get(type(known_a))
        if type(known_a) is not type(known_b) or rule is None:
            raise Mismatch(f"{known_a} is not {known_b}")
        made = rule(self, known_a, known_b)
        self._rebind(a, known_a, made)
        if not keep_b:
            self._rebind(b, known_b, made)
        return made

    def instantiated(self, f: FuncType, given: Sequence[Type] = ()) -> tuple[FuncType, list[Type]]:
        """A function type without type parameters, for which it has the given types and then holes, and these types."""
        if not f.type_params:
            return f, []
        args = [*given, *[IncompleteType(v.kind) for v in f.type_params[len(given) :]]]
        by = {id(v): t for v, t in zip(f.type_params, args)}
        return FuncType(
            [substituted(self.resolved(t), by) for t in f.arg_types],
            substituted(self.resolved(f.ret_type), by),
            (),
            [substituted(c, by) for c in f.type_constraints],
        ), args

    def _bind(self, hole: IncompleteType, t: Type) -> Type:
        if any(part is hole for part in everywhere(self.resolved(t))):
            raise Mismatch(f"a type would contain itself: {self.resolved(t)}")
        self._bound[id(hole)] = t
        self._kept.append(hole)
        self._changed(hole)
        return t

    def _rebind(self, given: Type, known: Type, made: Type) -> None:
        """The hole through which a type was found has another type now."""
        if made is known:
            return
        while isinstance(given, IncompleteType):
            hole, given = given, self._bound[id(given)]
            if given is known:
                self._bound[id(hole)] = made
                self._changed(hole)

    def _size(self, d: Dim) -> Dim:
        return self._sizes.get(d, d) if isinstance(d, SizeVar) else d

    def _dim(self, a: Dim, b: Dim) -> Dim | None:
        """The extent that both are; None where they conflict."""
        a, b = self._size(a), self._size(b)
        if a is b or (isinstance(a, int) and a == b):
            return a
        if isinstance(a, Open) or isinstance(b, Open):
            return a if isinstance(a, Open) else b
        for symbol, size in ((a, b), (b, a)):
            if isinstance(symbol, SizeVar) and isinstance(size, int):
                self._sizes[symbol] = size
                return size
        return None

    def tensors(self, a: TensorType, b: TensorType) -> Type:
        """The tensor type that both are."""
        if a.dtype != b.dtype:
            raise Mismatch(f"elements of {a.dtype} are not elements of {b.dtype}")
        if len(a.shape) != len(b.shape):
            raise Mismatch(f"tensors of {len(a.shape)} axes are not tensors of {len(b.shape)}")
        if a.shape == b.shape and not self._sizes:
            return a
        made = [self._dim(x, y) for x, y in zip(a.shape, b.shape)]
        conflicts = [
            f"dimension {i} conflicts: {x} does not match {y}"
            for i, (d, x, y) in enumerate(zip(made, a.shape, b.shape))
            if d is None
        ]
        if conflicts:
            raise Mismatch("; ".join(conflicts))
        found = [d for d in made if d is not None]
        for t in (a, b):
            if all(x is y for x, y in zip(found, t.shape)):
                return t
        return TensorType(found, a.dtype, a.span)

    def _all(self, what: str, a: Sequence[Type], b: Sequence[Type]) -> list[Type]:
        if len(a) != len(b):
            raise Mismatch(f"{what} differ in number: {len(a)} and {len(b)}")
        return [self.unify(x, y) for x, y in zip(a, b)]

    def tuples(self, a: TupleType, b: TupleType) -> Type:
        """The tuple type that both are."""
        made = self._all("fields of tuples", a.fields, b.fields)
        return a if _same(made, a.fields) else TupleType(made, a.span)

    def references(self, a: RefType, b: RefType) -> Type:
        """The type of cells that both are."""
        made = self.unify(a.value, b.value)
        return a if made is a.value else RefType(made)

    def applications(self, a: TypeCall, b: TypeCall) -> Type:
        """The application of a definition that both are."""
        if a.func is not b.func and a.func != b.func:
            raise Mismatch(f"{a.func} is not {b.func}")
        made = self._all("arguments of types", a.args, b.args)
        return a if _same(made, a.args) else TypeCall(a.func, made)

    def functions(self, a: FuncType, b: FuncType) -> Type:
        """The function type that both are: type parameters by place, holes where one has fewer."""
        if len(a.type_params) < len(b.type_params):
            a, b = b, a
        by: dict[int, Type] = {id(v): w for v, w in zip(b.type_params, a.type_params)}
        more, params = a.type_params[len(b.type_params) :], a.type_params[: len(b.type_params)]
        if more:
            extra: dict[int, Type] = {id(v): IncompleteType(v.kind) for v in more}
            a = FuncType([substituted(t, extra) for t in a.arg_types], substituted(a.ret_type, extra), params)
        if by:
            b = FuncType([substituted(t, by) for t in b.arg_types], substituted(b.ret_type, by), params)
        args = self._all("arguments of functions", a.arg_types, b.arg_types)
        result = self.unify(a.ret_type, b.ret_type)
        if _same(args, a.arg_types) and result is a.ret_type:
            return a
        return FuncType(args, result, params, a.type_constraints, a.span)

    def names(self, a: Type, b: Type) -> Type:
        """The name of a definition, which is itself only."""
        if a == b:
            return a
        raise Mismatch(f"{a} is not {b}")


def _same(made: Sequence[Type], known: Sequence[Type]) -> bool:
    return all(x is y for x, y in zip(made, known))


_RULES: dict[type, Callable[..., Type]] = {
    TensorType: Unifier.tensors,
    TupleType: Unifier.tuples,
    RefType: Unifier.references,
    TypeCall: Unifier.applications,
    FuncType: Unifier.functions,
    GlobalTypeVar: Unifier.names,
}
"""How types of a class are unified. A type variable, which is not here, is itself only."""
