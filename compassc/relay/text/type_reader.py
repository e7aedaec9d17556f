"""Types and patterns from tokens, and the names that are known where they stand."""

from __future__ import annotations

import re
from typing import TypeVar as TypeVariable

from compassc.relay.attributes import NOTED_DEVICE
from compassc.relay.expr import (
    Constructor,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    Var,
)
from compassc.relay.module import IRModule
from compassc.relay.text.cursor import Cursor
from compassc.relay.text.lexer import Kind, Lexer, Source, Token
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
    TypeVar,
)
from compassc.targets.virtual_device import VirtualDevice

_SCALAR = re.compile(r"(bool|(bfloat|float|u?int)\d+)(x\d+)?")
M = TypeVariable("M")
Metadata = dict[str, list[object]]


class TypeReader(Cursor):
    """What reads types. `module`: whose types and constructors are known beside those of the text."""

    def __init__(self, source: Source, lexer: Lexer, module: IRModule, metadata: Metadata) -> None:
        super().__init__(source, lexer.tokens)
        self.metadata = metadata
        self.type_names = {v.name_hint: v for v in module.type_definitions}
        self.constructors: dict[str, Constructor] = {
            c.name_hint: c for d in module.type_definitions.values() for c in d.constructors
        }
        self.devices: dict[int, VirtualDevice] = {}
        """The devices that are noted of variables, by their identity."""
        self.scopes: list[dict[str, Var]] = [{}]
        self.type_scopes: list[dict[str, TypeVar]] = []

    # ------------------------------------------------------------------------------------------------------------- types

    def read_type(self) -> Type:
        """A type."""
        with self.nested():
            first = self.token
            with self.placed(first):
                return self._type(first)

    def _type(self, first: Token) -> Type:
        if first.kind is Kind.META:
            return self._of_metadata(IncompleteType)
        if self.accept("("):
            return self._tuple_type()
        if self.accept("fn"):
            return self._function_type()
        if self.accept("ref"):
            self.expect("(")
            inner = self.read_type()
            self.expect(")")
            return RefType(inner)
        name = str(self.expect_kind(Kind.NAME).value)
        if name == "_":
            return IncompleteType()
        if name == "Tensor":
            return self._tensor_type()
        if _SCALAR.fullmatch(name):
            return TensorType((), name)
        return self._named_type(name)

    def _tuple_type(self) -> Type:
        fields: list[Type] = []
        while not self.accept(")"):
            fields.append(self.read_type())
            if len(fields) == 1 and self.accept(")"):
                return fields[0]  # in parentheses
            if not self.is_at(")"):
                self.expect(",")
        return TupleType(fields)

    def _function_type(self) -> Type:
        variables = self.generics()
        self.expect("(")
        args = list(self.listed(")", self.read_type))
        self.expect("->")
        result = self.read_type()
        self.type_scopes.pop()
        return FuncType(args, result, variables)

    def generics(self) -> list[TypeVar]:
        """`[A, B]` where it stands: variables of types in a scope that whoever asks leaves."""
        variables: list[TypeVar] = []
        if self.accept("["):
            variables = [TypeVar(str(t.value)) for t in self.listed("]", lambda: self.expect_kind(Kind.NAME))]
        self.type_scopes.append({v.name_hint: v for v in variables})
        return variables

    def _tensor_type(self) -> Type:
        self.expect("[")
        self.expect("(")
        shape = list(self.listed(")", self._dim))
        self.expect(",")
        dtype = str(self.expect_kind(Kind.NAME).value)
        self.accept(",")
        self.expect("]")
        return TensorType(shape, dtype)

    def _dim(self) -> Dim:
        if self.accept("?"):
            return Open()
        token = self.take()
        if token.kind is Kind.META:
            self.at -= 1
            return self._of_metadata(SizeVar)
        extent = int(self.whole(token))
        if extent < 0:
            raise self.error("an extent is no less than 0", token)
        return extent

    def _named_type(self, name: str) -> Type:
        args: list[Type] = []
        for scope in reversed(self.type_scopes):
            if name in scope:
                return scope[name]
        if self.accept("["):
            args = list(self.listed("]", self.read_type))
        return TypeCall(self.type_names.setdefault(name, GlobalTypeVar(name)), args)

    # ---------------------------------------------------------------------------------------------------------- patterns

    def pattern(self) -> Pattern:
        """A pattern, whose variables are known from here on."""
        with self.nested():
            first = self.token
            if self.accept("("):
                return PatternTuple(list(self.listed(")", self.pattern)), self.span(first))
            if first.kind is Kind.LOCAL:
                v = self.variable()
                return PatternVar(v, self.span(first))
            name = str(self.expect_kind(Kind.NAME).value)
            if name == "_":
                return PatternWildcard(self.span(first))
            constructor = self.constructors.get(name)
            if constructor is None:
                raise self.error(f"there is no constructor {name}", first, help="define its type before")
            fields = list(self.listed(")", self.pattern)) if self.accept("(") else []
            return PatternConstructor(constructor, fields, self.span(first))

    def variable(self) -> Var:
        """The definition of a variable, `%x: T`, in the innermost scope."""
        token = self.expect_kind(Kind.LOCAL)
        device = self._device() if self.accept("{") else None
        annotation = self.read_type() if self.accept(":") else None
        made = Var(str(token.value), annotation, self.span(token))
        self.scopes[-1][made.name_hint] = made
        if device is not None:
            self.devices[id(made)] = device
        return made

    def _device(self) -> VirtualDevice:
        """What is noted of a variable in braces: its device."""
        word = self.expect_kind(Kind.NAME)
        if word.value != NOTED_DEVICE:
            raise self.error(f"'{word.value}' is nothing that is noted of a variable", word)
        self.expect("=")
        found = self._of_metadata(VirtualDevice)
        self.expect("}")
        return found

    # ---------------------------------------------------------------------------------------------------------- metadata

    def from_metadata(self) -> object:
        """What a reference stands for."""
        token = self.expect_kind(Kind.META)
        key, index = token.value
        kept = self.metadata.get(key, [])
        if not 0 <= index < len(kept):
            raise self.error(f"the metadata has {len(kept)} objects {key}, and no number {index}", token)
        return kept[index]

    def _of_metadata(self, kind: type[M]) -> M:
        token = self.token
        found = self.from_metadata()
        if not isinstance(found, kind):
            raise self.error(f"a {type(found).__name__} cannot stand here", token)
        return found
