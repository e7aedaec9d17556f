"""Expressions from tokens. Blocks and arguments may nest as deep as they like: what reads them yields what it waits for
(`relay.steps`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from compass_runtime.ndarray import NDArray
from compassc.relay.attributes import NOTED_DEVICE, PARAM_DEVICES, RECORDS, RESULT_DEVICE, Attrs, DictAttrs
from compassc.relay.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
    const,
)
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.operators import get as operator
from compassc.relay.steps import Steps
from compassc.relay.text.lexer import Kind, Lexer, Number, Source, Token
from compassc.relay.text.type_reader import Metadata, TypeReader
from compassc.targets.virtual_device import VirtualDevice

OPERATORS: Mapping[str, tuple[int, str]] = {
    "*": (12, "multiply"),
    "/": (12, "divide"),
    "+": (10, "add"),
    "-": (10, "subtract"),
    "<": (8, "less"),
    "<=": (8, "less_equal"),
    ">": (8, "greater"),
    ">=": (8, "greater_equal"),
    "==": (7, "equal"),
    "!=": (7, "not_equal"),
}
"""Signs between expressions: how strongly they bind, and their operators."""
TYPE_KEY = "attrs_type_key"
Definition = tuple[Token, Var, Expr]
Given = tuple[list[Expr], dict[str, object], Attrs | None]
"""The arguments of a call: expressions, `key=value`, a record of the metadata."""


class Reader(TypeReader):
    """What reads expressions."""

    def __init__(self, source: Source, lexer: Lexer, module: IRModule, metadata: Metadata) -> None:
        super().__init__(source, lexer, module, metadata)
        self.globals = {v.name_hint: v for v in module.functions}
        self.graph: dict[str, Expr] = {}
        """The numbered expressions of the whole text."""

    # ------------------------------------------------------------------------------------------------------------ blocks

    def expression(self) -> Steps[Expr]:
        """Definitions in a scope of their own, and the expression after them."""
        self.scopes.append({})
        chain: list[Definition] = []
        while True:
            first = self.token
            if self.is_at("let"):
                chain.append((yield self._let()))
            elif self.is_at("free_var"):
                self._free_variable()
            elif first.kind is Kind.GRAPH and self.ahead(1).value == "=" and self.ahead(1).kind is Kind.SIGN:
                yield self._numbered()
            else:
                value: Expr = yield self._binary()
                if not self.accept(";"):
                    break
                chain.append((first, Var("_"), value))
        self.scopes.pop()
        for first, v, defined in reversed(chain):
            value = Let(v, defined, value, self.span(first))
        return value

    def block(self) -> Steps[Expr]:
        """`{ expression }`."""
        self.expect("{")
        made: Expr = yield self.expression()
        self.expect("}")
        return made

    def _let(self) -> Steps[Definition]:
        first = self.take()
        v = self.variable()
        self.expect("=")
        value: Expr = yield self._binary()
        self.expect(";")
        return first, v, value

    def _free_variable(self) -> None:
        """A variable of the whole text that nothing defines."""
        self.take()
        v = self.variable()
        del self.scopes[-1][v.name_hint]
        self.scopes[0][v.name_hint] = v
        self.expect(";")

    def _numbered(self) -> Steps[None]:
        number = str(self.take().value)
        self.take()
        value: Expr = yield self._binary()
        self.expect(";")
        self.graph[number] = value

    # -------------------------------------------------------------------------------------------------------- operators

    def _binary(self) -> Steps[Expr]:
        """Calls with signs between them, by how strongly these bind."""
        first = self.token
        operands: list[Expr] = [(yield self._call())]
        waiting: list[tuple[int, str]] = []
        while self.token.kind is Kind.SIGN and self.token.value in OPERATORS:
            sign = OPERATORS[self.token.value]
            while waiting and waiting[-1][0] >= sign[0]:
                self._join(operands, waiting, first)
            self.take()
            waiting.append(sign)
            operands.append((yield self._call()))
        while waiting:
            self._join(operands, waiting, first)
        return operands[0]

    def _join(self, operands: list[Expr], waiting: list[tuple[int, str]], first: Token) -> None:
        right, left = operands.pop(), operands.pop()
        with self.placed(first):
            operands.append(Call(operator(waiting.pop()[1]), [left, right], span=self.span(first)))

    def _call(self) -> Steps[Expr]:
        first = self.token
        made: Expr = yield self._atom()
        while self.is_at("("):
            self.take()
            given: Given = yield self._arguments()
            with self.placed(first):
                made = self._called(made, given, first)
        if isinstance(made, Constructor) and not made.inputs:
            return Call(made, [], span=self.span(first))
        return made

    def _called(self, callee: Expr, given: Given, first: Token) -> Expr:
        args, values, record = given
        if record is not None and values:
            raise self.error("attributes are given twice", first, help="give the record or its fields")
        attrs = record
        if attrs is None and isinstance(callee, Op):
            if callee.record is not None:
                attrs = callee.record(**values)
            elif values:
                raise self.error(f"{callee.name} has no attribute '{next(iter(values))}'", first)
        elif attrs is None and values:
            key = values.pop(TYPE_KEY, None)
            if key not in RECORDS:
                raise self.error(
                    "attributes of a call that is of no operator need their type",
                    first,
                    help=f'give {TYPE_KEY}="relay.attrs.NAME"',
                )
            attrs = RECORDS[key](**values)
        return Call(callee, args, attrs, span=self.span(first))

    def _arguments(self) -> Steps[Given]:
        """What stands in the parentheses of a call."""
        args: list[Expr] = []
        values: dict[str, object] = {}
        record: Attrs | None = None
        while not self.accept(")"):
            if self._is_attribute():
                key, value = self._attribute()
                values[key] = value
            elif self.token.kind is Kind.META and isinstance(found := self._peeked(), Attrs):
                self.take()
                record = found
            else:
                args.append((yield self.expression()))
            if not self.is_at(")"):
                self.expect(",")
        return args, values, record

    def _peeked(self) -> object:
        """What the reference that is next stands for."""
        found = self.from_metadata()
        self.at -= 1
        return found

    # -------------------------------------------------------------------------------------------------------- attributes

    def _is_attribute(self) -> bool:
        """Whether `key =` is next; keys may have dots."""
        k = 0
        while self.ahead(k).kind in (Kind.NAME, Kind.KEYWORD):
            sign = self.ahead(k + 1)
            if sign.kind is not Kind.SIGN or sign.value not in ("=", "."):
                return False
            if sign.value == "=":
                return True
            k += 2
        return False

    def _attribute(self) -> tuple[str, object]:
        key = str(self.take().value)
        while self.accept("."):
            key += f".{self.take().value}"
        self.expect("=")
        return key, self._value()

    def _value(self) -> object:
        """The value of an attribute."""
        with self.nested():
            token = self.token
            if self.accept("["):
                return tuple(self.listed("]", self._value))
            if self.accept("("):
                values = tuple(self.listed(")", self._value))
                commas = self.tokens[self.at - 2].value == ","
                return values[0] if len(values) == 1 and not commas else values
            if token.kind is Kind.META:
                return self.from_metadata()
            self.take()
            if token.kind is Kind.NUMBER:
                number: Number = token.value
                return number.value
            if token.kind is Kind.STRING:
                return str(token.value)
            if token.kind is Kind.NAME and token.value in ("None", "nullptr"):
                return None
            if token.kind is Kind.NAME:
                return str(token.value)
            self.at -= 1
            raise self.unexpected("the value of an attribute")

    def attributes(self) -> dict[str, object]:
        """`key=value` pairs up to what is none, or one reference to all of them."""
        values: dict[str, object] = {}
        while True:
            if self._is_attribute():
                key, value = self._attribute()
                values[key] = value
            elif self.token.kind is Kind.META and isinstance(found := self._peeked(), DictAttrs):
                self.take()
                values.update(found)
            else:
                return values
            if not self.accept(","):
                return values

    # ------------------------------------------------------------------------------------------------------------- atoms

    def _atom(self) -> Steps[Expr]:
        first = self.token
        read = _WORDS.get(first.value) if first.kind in (Kind.SIGN, Kind.KEYWORD) else _KINDS.get(first.kind)
        if read is None:
            raise self.unexpected("an expression")
        made: Expr = yield read(self)
        if self.is_at(".") and self.ahead(1).kind is Kind.NUMBER:
            self.take()
            return TupleGetItem(made, self.whole(self.take()), self.span(first))
        return made

    def _number(self) -> Steps[Expr]:
        yield from ()
        token = self.take()
        assert isinstance(token.value, Number)
        return Constant(NDArray(token.value.array()), self.span(token))

    def _local(self) -> Steps[Expr]:
        yield from ()
        token = self.take()
        for scope in reversed(self.scopes):
            if token.value in scope:
                return scope[token.value]
        raise self.error(f"%{token.value} has not been previously declared", token, help="free_var %x; declares one")

    def _graph(self) -> Steps[Expr]:
        yield from ()
        token = self.take()
        if token.value not in self.graph:
            raise self.error(f"%{token.value} has not yet been defined", token)
        return self.graph[token.value]

    def _global(self) -> Steps[Expr]:
        yield from ()
        token = self.take()
        name = str(token.value)
        return self.globals.setdefault(name, GlobalVar(name, self.span(token)))

    def _named(self) -> Steps[Expr]:
        """A constructor, or an operator, whose name may have dots."""
        yield from ()
        first = self.take()
        name = str(first.value)
        if name in self.constructors:
            return self.constructors[name]
        while self.is_at(".") and self.ahead(1).kind in (Kind.NAME, Kind.KEYWORD):
            self.take()
            name += f".{self.take().value}"
        with self.placed(first):
            return operator(name)

    def _meta(self) -> Steps[Expr]:
        yield from ()
        token = self.token
        found = self.from_metadata()
        if isinstance(found, Expr):
            return found
        if isinstance(found, np.ndarray) or hasattr(found, "asnumpy"):
            return const(found)
        raise self.error(f"a {type(found).__name__} is no expression", token)

    def _parenthesised(self) -> Steps[Expr]:
        first = self.take()
        fields: list[Expr] = []
        while not self.accept(")"):
            fields.append((yield self.expression()))
            if len(fields) == 1 and self.accept(")"):
                return fields[0]
            if not self.is_at(")"):
                self.expect(",")
        return Tuple(fields, self.span(first))

    def _if(self) -> Steps[Expr]:
        first = self.take()
        self.expect("(")
        cond: Expr = yield self.expression()
        self.expect(")")
        true: Expr = yield self.block()
        self.expect("else")
        false: Expr = yield (self._if() if self.is_at("if") else self.block())
        return If(cond, true, false, self.span(first))

    def _match(self) -> Steps[Expr]:
        first = self.take()
        data: Expr = yield self._atom()
        self.expect("{")
        clauses: list[Clause] = []
        while not self.accept("}"):
            start = self.token
            self.scopes.append({})
            pattern = self.pattern()
            self.expect("=>")
            rhs: Expr = yield self.expression()
            self.scopes.pop()
            clauses.append(Clause(pattern, rhs, self.span(start)))
            if not self.is_at("}"):
                self.expect(",")
        return Match(data, clauses, first.value == "match", self.span(first))

    def _reference(self) -> Steps[Expr]:
        first = self.take()
        self.expect("(")
        parts: list[Expr] = []
        count = 2 if first.value == "ref_write" else 1
        for i in range(count):
            if i:
                self.expect(",")
            parts.append((yield self.expression()))
        self.expect(")")
        span = self.span(first)
        if first.value == "ref":
            return RefCreate(parts[0], span)
        return RefRead(parts[0], span) if count == 1 else RefWrite(parts[0], parts[1], span)

    def _function(self) -> Steps[Expr]:
        first = self.take()
        made: Function = yield self.function(first)
        return made

    def function(self, first: Token) -> Steps[Function]:
        """A function after its first token."""
        variables = self.generics()
        self.expect("(")
        self.scopes.append({})
        params: list[Var] = []
        attrs: dict[str, object] = {}
        while not self.accept(")"):
            if self.token.kind is not Kind.LOCAL:
                attrs = self.attributes()
                self.expect(")")
                break
            params.append(self.variable())
            if not self.is_at(")"):
                self.expect(",")
        result = self.read_type() if self.accept("->") else None
        body: Expr = yield self.block()
        self.scopes.pop()
        self.type_scopes.pop()
        made = Function(params, body, result, variables, DictAttrs(attrs), self.span(first))
        return self._on_devices(made)

    def _on_devices(self, f: Function) -> Function:
        """The function with the devices that are noted of its parameters and its result."""
        devices = tuple([self.devices.get(id(p), VirtualDevice()) for p in f.params])
        result = f.attrs.get(NOTED_DEVICE)
        if not isinstance(result, VirtualDevice):
            known = any(d != VirtualDevice() for d in devices)
            return f.with_attr(PARAM_DEVICES, devices) if known else f
        return f.without_attr(NOTED_DEVICE).with_attr({PARAM_DEVICES: devices, RESULT_DEVICE: result})


_Read = Callable[[Reader], Steps[Expr]]
_KINDS: Mapping[Kind, _Read] = {
    Kind.NUMBER: Reader._number,
    Kind.LOCAL: Reader._local,
    Kind.GRAPH: Reader._graph,
    Kind.GLOBAL: Reader._global,
    Kind.NAME: Reader._named,
    Kind.META: Reader._meta,
}
_WORDS: Mapping[object, _Read] = {
    "(": Reader._parenthesised,
    "{": Reader.block,
    "fn": Reader._function,
    "if": Reader._if,
    "match": Reader._match,
    "match?": Reader._match,
    "ref": Reader._reference,
    "ref_read": Reader._reference,
    "ref_write": Reader._reference,
}
