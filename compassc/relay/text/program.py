"""Whole texts: modules with their definitions, and single expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compass_core.errors import CompassError
from compassc.ir import PrimFunc
from compassc.ir.text import parse_module as parse_kernels
from compassc.relay.errors import DiagnosticError
from compassc.relay.expr import Constructor, Expr, Function, GlobalVar
from compassc.relay.module import BaseFunc, IRModule
from compassc.relay.steps import run
from compassc.relay.text import metadata
from compassc.relay.text.lexer import CODE, Kind, Lexer, Source, Token
from compassc.relay.text.reader import Reader
from compassc.relay.text.type_reader import Metadata
from compassc.relay.types import GlobalTypeVar, TypeData

VERSION = "0.0.5"


def parse_expr(source: str, source_name: str = "from_string", init_module: IRModule | None = None) -> Expr:
    """The expression of a text, without types; its version line may be missing. DiagnosticError with the place of what is
    wrong."""
    reader = _Program(source, source_name, init_module or IRModule(), None)
    reader.version(needed=False)
    made = run(reader.expression())
    reader.expect_kind(Kind.END)
    return made


def parse_module(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Sequence[object]] | None = None,
) -> IRModule:
    """The module of a text, without types. `init_module` is extended; `init_meta_table`: objects by key, which are counted
    after those of the text's own metadata. DiagnosticError with the place of what is wrong."""
    module = init_module if init_module is not None else IRModule()
    reader = _Program(source, source_name, module, init_meta_table)
    reader.version(needed=True)
    functions, types, attrs = reader.definitions()
    made = module if init_module is not None else IRModule(attrs=attrs)
    for header, definition in types.items():
        made[header] = definition
    for var, function in functions.items():
        made.functions.put(var, function)
    return made


class _Program(Reader):
    """What reads definitions."""

    def __init__(self, text: str, name: str, module: IRModule, table: Mapping[str, Sequence[object]] | None) -> None:
        if not isinstance(text, str):
            raise DiagnosticError(f"a {type(text).__name__} is no text", code=CODE, help="decode bytes first")
        source = Source(text, name)
        lexer = Lexer(source)
        super().__init__(source, lexer, module, _metadata(source, lexer, table))
        self.module = module
        self.functions: dict[GlobalVar, BaseFunc] = {}
        self.types: dict[GlobalTypeVar, TypeData] = {}
        self.attrs: dict[str, object] = {}

    def version(self, needed: bool) -> None:
        """The line with the version."""
        token = self.token
        if token.kind is not Kind.VERSION:
            if needed:
                raise self.unexpected("the version of the text", f'begin with #[version = "{VERSION}"]')
            return
        found = str(self.take().value).split('"')[1]
        if found != VERSION:
            raise self.error(f"version {found} of the text is not known", token, help=f"known: {VERSION}")

    def definitions(self) -> tuple[dict[GlobalVar, BaseFunc], dict[GlobalTypeVar, TypeData], dict[str, object]]:
        """Functions, data types, attributes of the module. Types are known in the whole text."""
        start = self.at
        self._each(self._type_definition)
        self.at = start
        self._each(self._function_definition)
        return self.functions, self.types, self.attrs

    def _each(self, read: Callable[[Token, str], bool]) -> None:
        while self.token.kind is not Kind.END:
            first = self.token
            word = first.value if first.kind is Kind.KEYWORD else ""
            is_attributes = first.kind is Kind.NAME and first.value == "attributes"
            if word not in ("def", "type", "extern") and not is_attributes:
                raise self.unexpected("a definition", "modules are made of def, type and extern type")
            if not read(first, word):
                self._skip()

    def _skip(self) -> None:
        """Go to the next definition. The words that begin one may be names of attributes elsewhere."""
        before = self.take()
        while self.token.kind is not Kind.END:
            is_word = self.token.kind is Kind.KEYWORD and self.token.value in ("def", "type", "extern")
            is_attributes = self.token.value == "attributes" and self.ahead(1).value == "{"
            if (is_word or is_attributes) and before.value not in ("(", ",", ".", "extern"):
                return
            before = self.take()

    # ------------------------------------------------------------------------------------------------------------- types

    def _type_definition(self, first: Token, word: str) -> bool:
        if word not in ("type", "extern"):
            return False
        self.take()
        if word == "extern":
            self.expect("type")
        name_token = self.expect_kind(Kind.NAME)
        name = str(name_token.value)
        header = self.type_names.setdefault(name, GlobalTypeVar(name))
        variables = self.generics()
        constructors: list[Constructor] = []
        if self.accept("{"):
            constructors = list(self.listed("}", lambda: self._constructor(header)))
            if word == "extern" and constructors:
                raise self.error(f"{name} is extern, and has constructors", first, help="leave out extern")
        self.type_scopes.pop()
        if header in self.types or header in self.module:
            raise self.error(f"type {name} is defined twice", name_token)
        self.types[header] = TypeData(header, variables, constructors)
        return True

    def _constructor(self, header: GlobalTypeVar) -> Constructor:
        token = self.expect_kind(Kind.NAME)
        name = str(token.value)
        if name in self.constructors:
            raise self.error(
                f"constructor {name} was previously defined", token, help="constructors have their own names"
            )
        inputs = list(self.listed(")", self.read_type)) if self.accept("(") else []
        made = self.constructors[name] = Constructor(name, inputs, header, span=self.span(token))
        return made

    # --------------------------------------------------------------------------------------------------------- functions

    def _function_definition(self, first: Token, word: str) -> bool:
        if word not in ("def", ""):
            return False
        self.take()
        if word == "":
            self.expect("{")
            self.attrs.update(self.attributes())
            self.expect("}")
            return True
        token = self.expect_kind(Kind.GLOBAL)
        name = str(token.value)
        var = self.globals.setdefault(name, GlobalVar(name))
        if var in self.functions:
            raise self.error(f"@{name} is defined twice", token)
        self.functions[var] = self._kernel() if self.accept("=") else self._graph_function(first)
        return True

    def _graph_function(self, first: Token) -> Function:
        made: Function = run(self.function(first))
        return made

    def _kernel(self) -> PrimFunc:
        """A kernel, whose own text is in the metadata."""
        token = self.token
        found = self.from_metadata()
        with self.placed(token):
            functions = parse_kernels(str(found), self.source.name).functions
        if len(functions) != 1:
            raise self.error("expected the text of one kernel", token)
        return functions[0]


def _metadata(source: Source, lexer: Lexer, table: Mapping[str, Sequence[object]] | None) -> Metadata:
    """The objects that the text refers to."""
    found: Metadata = {}
    if lexer.section is not None:
        text, at = lexer.section
        try:
            found = metadata.read(text, source.name)
        except CompassError as error:
            line, _ = source.position(at)
            if error.span is not None:
                error.span = type(error.span)(source.name, line + error.span.line - 1, error.span.col)
                raise DiagnosticError(error.message, error.span, code=CODE, help=error.help) from None
            raise source.error(error.message, at, at + len(metadata.SECTION), error.help) from None
    for key, kept in (table or {}).items():
        found.setdefault(key, []).extend(kept)
    return found
