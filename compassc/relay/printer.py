"""The text of expressions, types, patterns and modules. A call that stands as an argument is a line of its own, `%0 = ...;`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from compass_core.errors import Span
from compassc.ir.names import NamePool
from compassc.ir.rules import method, table
from compassc.relay.attributes import NOTED_DEVICE, PARAM_DEVICES, RESULT_DEVICE, Attrs, DictAttrs
from compassc.relay.equal import structural_equal
from compassc.relay.expr import (
    Annotate,
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
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
)
from compassc.relay.module import IRModule, K, Named, V
from compassc.relay.operators import Op
from compassc.relay.steps import Steps, run
from compassc.relay.text import literals
from compassc.relay.text.metadata import Metadata
from compassc.relay.types import (
    FuncType,
    GlobalTypeVar,
    Open,
    RefType,
    SizeVar,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeRelation,
    TypeVar,
)
from compassc.relay.visit import children, post_order
from compassc.targets.virtual_device import VirtualDevice

VERSION_LINE = '#[version = "0.0.5"]'
_OMITTED = "/* The objects that meta[...] refers to are left out; astext(show_meta_data=True) shows them. */"


def text(given: object) -> str:
    """The text of an expression, a type, a pattern, a clause or a module, without its version and metadata."""
    return Printer().final(given)


def astext(given: object, show_meta_data: bool = True, annotate: Annotate | None = None) -> str:
    """The text with a line that tells its version and, where it refers to metadata, that section or a remark. `annotate`
    gives what follows expressions, in place of their types."""
    printer = Printer(annotate)
    lines = [VERSION_LINE, printer.final(given)]
    if printer.metadata.entries:
        lines += ["", printer.metadata.section() if show_meta_data else _OMITTED]
    return "\n".join(lines)


_IN, _OUT = "\x01", "\x02"
"""Stand around the lines that are set in by a level, until the whole text is laid out."""


def indented(block: str) -> str:
    """A block of lines in braces' depth."""
    return f"{_IN}{block}{_OUT}"


def _laid_out(text: str) -> str:
    """The text with its lines set in."""
    depth, lines = 0, []
    for line in text.split("\n"):
        depth += line.count(_IN)
        lines.append("  " * depth + line.strip(_IN + _OUT) if line else line)
        depth -= line.count(_OUT)
    return "\n".join(lines)


def _listed(texts: list[str]) -> str:
    """A tuple of texts."""
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _sorted(given: Named[K, V]) -> list[tuple[str, V]]:
    return sorted(((v.name_hint, value) for v, value in given.items()), key=lambda pair: pair[0])


def _numbered(name: str, number: int) -> str:
    return f"{name}{number}"


class Printer:
    """One job: names, numbers and metadata are unique in it."""

    def __init__(self, annotate: Annotate | None = None) -> None:
        self.annotate = annotate
        self.metadata = Metadata()
        self.names = NamePool(variant=_numbered)
        self.variables: dict[int, str] = {}
        """The names of variables and of variables of types."""
        self.known: dict[int, str] = {}
        """What stands for an expression that has been printed."""
        self.types: dict[int, str] = {}
        self.described: set[int] = set()
        self.uses: Counter[int] = Counter()
        self.scopes: list[list[str]] = []
        self.numbers = 0
        self.kept: list[object] = []
        """Keeps what is printed alive, as others are told apart by `id`."""

    def final(self, given: object) -> str:
        """The text of any of them."""
        return _laid_out(self._final(given))

    def _final(self, given: object) -> str:
        if isinstance(given, TupleWrapper):
            given = given.tuple_value
        if isinstance(given, Expr):
            return self.expression(given)
        if isinstance(given, Type):
            return self.type(given)
        if isinstance(given, Pattern):
            return run(self._pattern(given))
        if isinstance(given, Clause):
            self._count(given.rhs)
            return run(self._clause(given))
        if isinstance(given, IRModule):
            return self.module(given)
        raise TypeError(f"a {type(given).__name__} has no text")

    def module(self, given: IRModule) -> str:
        """The definitions of a module, data types first, each group in the order of names."""
        blocks = [self.type(t) for _, t in _sorted(given.type_definitions)]
        if given.attrs:
            blocks.insert(0, f"attributes {{{', '.join(self._attributes(given.attrs))}}}")
        for name, function in _sorted(given.functions):
            head = f"def {self.global_name(name)}"
            if isinstance(function, Function):
                self.known.clear()
                self._count(function)
                blocks.append(run(self.function(function, head)))
            else:
                blocks.append(f"{head} = {self.metadata.reference(function)}")
        return "\n\n".join(blocks) + "\n" * bool(blocks)

    def expression(self, root: Expr) -> str:
        """An expression as a scope."""
        self._count(root)
        return run(self._scope(root))

    def _count(self, root: Expr) -> None:
        self.uses = Counter(id(c) for e in post_order(root) for c in children(e))

    # ---------------------------------------------------------------------------------------------------------- scopes

    def _scope(self, root: Expr) -> Steps[str]:
        """An expression, below the lines of what it is made of."""
        self.scopes.append([])
        last: str = yield self._expr(root, True)
        return "\n".join([*self.scopes.pop(), last])

    def _block(self, root: Expr) -> Steps[str]:
        inner: str = yield self._scope(root)
        return f"{{\n{indented(inner)}\n}}"

    def _expr(self, e: Expr, inline: bool = False) -> Steps[str]:
        """What stands for an expression: its number after a line of its own, or where `inline`, and nothing else needs it,
        its text."""
        found = self.known.get(id(e))
        if found is not None:
            return found
        self.kept.append(e)
        if isinstance(e, Var):
            declared = self.declared(e)
            self.scopes[-1].append(f"free_var {declared};")
            return self.variables[id(e)]
        if isinstance(e, _ATOMS):
            self.known[id(e)] = atom = self._atom(e)
            return atom + self._info(e)
        inline = inline and self.uses[id(e)] <= 1
        form: str = yield _FORMS[type(e)](self, e)
        if isinstance(e, Let) and not inline:
            form = f"(\n{indented(form)}\n)"
        form += self._info(e)
        if inline:
            self.known[id(e)] = form
            return form
        number = self.known[id(e)] = f"%{self.numbers}"
        self.numbers += 1
        self.scopes[-1].append(f"{number} = {form};")
        return number

    def _atom(self, e: Expr) -> str:
        if isinstance(e, GlobalVar):
            return self.global_name(e.name_hint)
        if isinstance(e, Op):
            return e.name
        if isinstance(e, Constructor):
            return literals.name(e.name_hint, "C")
        assert isinstance(e, Constant)
        return literals.scalar(e.array) or self.metadata.reference(e)

    @staticmethod
    def global_name(name: str) -> str:
        """`@name`; in quotes where names do not have its characters."""
        return f"@{name}" if literals.is_name(name) else f'@"{name}"'

    def _info(self, e: Expr) -> str:
        """The remark after an expression: its type and place."""
        if self.annotate is not None:
            return self.annotate(e) or ""
        if not isinstance(e, _DESCRIBED) or id(e) in self.described:
            return ""
        self.described.add(id(e))
        span = e.span
        typed = [f"ty={self.type(e.checked_type_)}"] if e.checked_type_ is not None else []
        placed = [f"span={_place(span)}"] if span is not None else []
        known = f" /* {' '.join(typed + placed)} */" if typed or placed else ""
        more = f" /* {_place(span)} */" if span is not None and isinstance(e, (Tuple, TupleGetItem)) else ""
        return known + more

    # ----------------------------------------------------------------------------------------------------------- names

    def declared(self, v: Var, device: VirtualDevice | None = None) -> str:
        """A variable where it is defined: its name, its device where one is said, and its type."""
        name = self.variables.get(id(v))
        if name is None:
            name = self.variables[id(v)] = "%" + self.names.take(literals.name(v.name_hint, "v"))
        self.known[id(v)] = name
        annotation = f": {self.type(v.type_annotation)}" if v.type_annotation is not None else ""
        said = device is not None and device != VirtualDevice()
        where = f" {{{NOTED_DEVICE}={self.metadata.reference(device)}}}" if said else ""
        return f"{name}{where}{annotation}{self._info(v)}"

    def _type_variable(self, v: TypeVar) -> str:
        if id(v) not in self.variables:
            self.kept.append(v)
            self.variables[id(v)] = self.names.take(literals.name(v.name_hint, "t"))
        return self.variables[id(v)]

    def _generics(self, variables: Iterable[TypeVar]) -> str:
        names = [self._type_variable(v) for v in variables]
        return f"[{', '.join(names)}]" if names else ""

    # ----------------------------------------------------------------------------------------------------- expressions

    def function(self, e: Function, head: str) -> Steps[str]:
        """A function after its head, `fn ` or `def @name`."""
        generics = self._generics(e.type_params)
        devices = dict(zip(map(id, e.params), e.attrs.get(PARAM_DEVICES, ())))
        params = [self.declared(p, devices.get(id(p), VirtualDevice())) for p in e.params]
        shown = {NOTED_DEVICE if k == RESULT_DEVICE else k: v for k, v in e.attrs.items() if k != PARAM_DEVICES}
        params += self._attributes(DictAttrs(shown) if devices or RESULT_DEVICE in e.attrs else e.attrs)
        result = f" -> {self.type(e.ret_type)}" if e.ret_type is not None else ""
        body: str = yield self._block(e.body)
        return f"{head}{generics}({', '.join(params)}){result} {body}"

    def _function(self, e: Function) -> Steps[str]:
        return self.function(e, "fn ")

    def _call(self, e: Call) -> Steps[str]:
        args: list[str] = []
        for a in e.args:
            args.append((yield self._expr(a)))
        args += self._call_attributes(e)
        op: str = yield self._expr(e.op)
        if isinstance(e.op, Constructor) and not e.op.inputs:
            return op
        return f"{op}({', '.join(args)})"

    def _let(self, e: Let) -> Steps[str]:
        """A chain of definitions, each of which opens a scope for what follows it."""
        lines: list[str] = []
        body: Expr = e
        while isinstance(body, Let) and (body is e or (self.uses[id(body)] <= 1 and id(body) not in self.known)):
            if body is not e:
                self.scopes.append([])
            declared = self.declared(body.var)
            value: str = yield self._expr(body.value, not isinstance(body.value, Let))
            if body is not e:
                lines += self.scopes.pop()
            lines.append(f"let {declared} = {value};")
            body = body.body
        last: str = yield self._scope(body)
        return "\n".join([*lines, last])

    def _if(self, e: If) -> Steps[str]:
        cond: str = yield self._expr(e.cond)
        true: str = yield self._block(e.true_branch)
        false: str = yield self._block(e.false_branch)
        return f"if ({cond}) {true} else {false}"

    def _tuple(self, e: Tuple) -> Steps[str]:
        fields: list[str] = []
        for part in e.fields:
            fields.append((yield self._expr(part)))
        return _listed(fields)

    def _item(self, e: TupleGetItem) -> Steps[str]:
        whole: str = yield self._expr(e.tuple_value)
        return f"({whole}).{e.index}" if isinstance(e.tuple_value, Constant) else f"{whole}.{e.index}"

    def _ref_create(self, e: RefCreate) -> Steps[str]:
        value: str = yield self._expr(e.value)
        return f"ref({value})"

    def _ref_read(self, e: RefRead) -> Steps[str]:
        ref: str = yield self._expr(e.ref)
        return f"ref_read({ref})"

    def _ref_write(self, e: RefWrite) -> Steps[str]:
        ref: str = yield self._expr(e.ref)
        value: str = yield self._expr(e.value)
        return f"ref_write({ref}, {value})"

    def _match(self, e: Match) -> Steps[str]:
        data: str = yield self._expr(e.data)
        clauses: list[str] = []
        for clause in e.clauses:
            clauses.append((yield self._clause(clause)) + ",")
        word = "match" if e.complete else "match?"
        inner = f"\n{indented(chr(10).join(clauses))}\n" if clauses else ""
        return f"{word} ({data}) {{{inner}}}"

    def _clause(self, clause: Clause) -> Steps[str]:
        pattern: str = yield self._pattern(clause.lhs)
        body: str = yield self._block(clause.rhs)
        return f"{pattern} => {body}"

    def _pattern(self, p: Pattern) -> Steps[str]:
        if isinstance(p, PatternWildcard):
            return "_"
        if isinstance(p, PatternVar):
            return self.declared(p.var)
        assert isinstance(p, (PatternConstructor, PatternTuple))
        fields: list[str] = []
        for part in p.patterns:
            fields.append((yield self._pattern(part)))
        if isinstance(p, PatternTuple):
            return _listed(fields)
        name = literals.name(p.constructor.name_hint, "C")
        return f"{name}({', '.join(fields)})" if fields else name

    # ------------------------------------------------------------------------------------------------------ attributes

    def _call_attributes(self, e: Call) -> list[str]:
        if e.attrs is None:
            return []
        if isinstance(e.op, Op):
            if e.op.record is not e.attrs.record:
                return [self.metadata.reference(e.attrs)]
            return self._attributes(changed_fields(e.attrs))
        return [*self._attributes(changed_fields(e.attrs)), f'attrs_type_key="{e.attrs.record.key}"']

    def _attributes(self, values: Mapping[str, object]) -> list[str]:
        """`key=value` of each; values without a text, and keys that are no names, are metadata."""
        if not all(literals.is_name(part) for key in values for part in key.split(".")):
            return [self.metadata.reference(values)]
        return [f"{key}={literals.attribute(v) or self.metadata.reference(v)}" for key, v in values.items()]

    # ----------------------------------------------------------------------------------------------------------- types

    def type(self, t: Type) -> str:
        """The text of a type."""
        found = self.types.get(id(t))
        return found if found is not None else str(run(self._type(t)))

    def _type(self, t: Type) -> Steps[str]:
        found = self.types.get(id(t))
        if found is None:
            self.kept.append(t)
            found = yield self._type_form(t)
            self.types[id(t)] = found
        return found

    def _types(self, types: Iterable[Type]) -> Steps[list[str]]:
        texts: list[str] = []
        for t in types:
            texts.append((yield self._type(t)))
        return texts

    def _type_form(self, t: Type) -> Steps[str]:
        if isinstance(t, TensorType):
            return t.dtype if not t.shape else f"Tensor[{_listed([self._dim(d) for d in t.shape])}, {t.dtype}]"
        if isinstance(t, TypeVar):
            return self._type_variable(t)
        if isinstance(t, GlobalTypeVar):
            return literals.name(t.name_hint, "T")
        if isinstance(t, TypeData):
            definition: str = yield self._definition(t)
            return definition
        if isinstance(t, FuncType):
            generics = self._generics(t.type_params)
            args = yield self._types(t.arg_types)
            result = yield self._type(t.ret_type)
            return f"fn {generics}({', '.join(args)}) -> {result}"
        if isinstance(t, RefType):
            return f"ref({(yield self._type(t.value))})"
        if isinstance(t, TupleType):
            return _listed((yield self._types(t.fields)))
        if isinstance(t, TypeCall):
            name = yield self._type(t.func)
            args = yield self._types(t.args)
            return f"{name}[{', '.join(args)}]"
        if isinstance(t, TypeRelation):
            args = yield self._types(t.args)
            return f"{getattr(t.func, '__name__', 'relation')}({', '.join(args)})"
        return self.metadata.reference(t)

    def _dim(self, dim: int | Open | SizeVar) -> str:
        return self.metadata.reference(dim) if isinstance(dim, SizeVar) else str(dim)

    def _definition(self, t: TypeData) -> Steps[str]:
        head = f"{literals.name(t.header.name_hint, 'T')}{self._generics(t.type_vars)}"
        if not t.constructors:
            return f"extern type {head}"
        lines: list[str] = []
        for c in t.constructors:
            inputs = yield self._types(c.inputs)
            given = f"({', '.join(inputs)})" if inputs else ""
            lines.append(f"  {literals.name(c.name_hint, 'C')}{given},")
        return "\n".join([f"type {head} {{", *lines, "}"])


def changed_fields(attrs: Attrs) -> dict[str, object]:
    """The fields of a record that do not have their default, or have none."""
    defaults = attrs.record.fields
    return {k: v for k, v in attrs.items() if not structural_equal(v, defaults[k])}


def _place(span: Span) -> str:
    """A place in a remark, which it must not end."""
    return _MARKS.sub(" ", f"{span}".replace("*/", "* /").replace("/*", "/ *"))


_MARKS = re.compile(f"[{_IN}{_OUT}\n]")
_ATOMS = (GlobalVar, Constant, Op, Constructor)
"""What is never a line of its own."""
_DESCRIBED = (Constant, Call, Var, Function, Tuple, TupleGetItem)
"""What has a remark with its type and place."""
_FORMS: Mapping[type, Callable[[Printer, Expr], Steps[str]]] = table(
    method(Function, Printer._function),
    method(Call, Printer._call),
    method(Let, Printer._let),
    method(If, Printer._if),
    method(Tuple, Printer._tuple),
    method(TupleGetItem, Printer._item),
    method(RefCreate, Printer._ref_create),
    method(RefRead, Printer._ref_read),
    method(RefWrite, Printer._ref_write),
    method(Match, Printer._match),
)
