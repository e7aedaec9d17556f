"""Modules: functions of graphs and kernels by name, with the data types that they use."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, overload

from compass_core.errors.suggest import help_for
from compassc.ir import IRModule as Kernels
from compassc.ir import PrimFunc
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.relay.attributes import DictAttrs
from compassc.relay.expr import Annotate, Call, Constructor, Expr, Function, GlobalVar, Var, as_expr
from compassc.relay.types import GlobalTypeVar, Type, TypeData
from compassc.relay.variables import free_type_vars, free_vars
from compassc.relay.visit import rewrite

MAIN = "main"
BaseFunc = Function | PrimFunc
"""What stands under a name: a function of graphs, or a kernel."""
Functions = (
    Mapping[GlobalVar, Function] | Mapping[GlobalVar, PrimFunc] | Mapping[GlobalVar, BaseFunc] | Mapping[str, BaseFunc]
)
"""Functions by their global variables, or by their names."""
Definitions = Mapping[GlobalTypeVar, TypeData] | Mapping[str, TypeData]
"""Data types by their global variables, or by their names."""
K = TypeVar("K", bound=GlobalVar | GlobalTypeVar)
V = TypeVar("V")
_TAGS_OF_A_TYPE = 24
"""Bits of a constructor's tag that number the constructors of one type."""


class NoGlobal(ExpressionError, KeyError):
    """A name that a module does not have."""

    __str__ = ExpressionError.__str__


class IllFormed(ExpressionError):
    """Something that a module cannot hold."""


def _name(given: object) -> str:
    return given if isinstance(given, str) else str(getattr(given, "name_hint", given))


class Named(Mapping[K, V], Generic[K, V]):
    """Functions or definitions by their global variables, which are looked up by name: a `GlobalVar` or the name itself."""

    def __init__(self, kind: type[K], what: str, given: Mapping[K, V] | Mapping[str, V] | None = None) -> None:
        self.kind, self.what = kind, what
        self.by_name: dict[str, tuple[K, V]] = {}
        for key, value in (given or {}).items():
            if _name(key) in self.by_name:
                raise IllFormed(f"two globals are named '{_name(key)}'", "names of a module are unique")
            self.put(key, value)

    def __getitem__(self, key: object) -> V:
        return self.entry(key)[1]

    def entry(self, key: object) -> tuple[K, V]:
        """A variable and what it stands for. NoGlobal with close names where there is none."""
        name = _name(key)
        if name not in self.by_name:
            help = help_for(name, list(self.by_name), self.what)
            raise NoGlobal(f"Cannot find {self.what} {name} in the module", help)
        return self.by_name[name]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, (str, self.kind)) and _name(key) in self.by_name

    def __iter__(self) -> Iterator[K]:
        return (v for v, _ in self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def put(self, key: object, value: V) -> K:
        """Add a value or replace it; gives its variable."""
        name = _name(key)
        if name in self.by_name:
            known = self.by_name[name][0]
        else:
            known = key if isinstance(key, self.kind) else self.kind(name)
        self.by_name[name] = known, value
        return known

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name}: {value!r}' for name, (_, value) in self.by_name.items())}}}"


class IRModule:
    """Functions, kernels and data types by name. `module[name]` looks up, `module[name] = function` adds or replaces; passes
    make other modules."""

    packed_object = True
    """Functions by name take modules."""

    def __init__(
        self,
        functions: Functions | None = None,
        type_definitions: Definitions | None = None,
        attrs: Mapping[str, object] | None = None,
    ) -> None:
        self.functions: Named[GlobalVar, BaseFunc] = Named(GlobalVar, "global var", functions)
        self.type_definitions: Named[GlobalTypeVar, TypeData] = Named(GlobalTypeVar, "global type var")
        self.attrs = DictAttrs(attrs)
        self.imported: set[str] = set()
        """The standard files that have been imported."""
        self._constructors: dict[int, Constructor] = {}
        for header, definition in (type_definitions or {}).items():
            self._define(header, definition)

    @staticmethod
    def from_expr(expr: object, functions: Functions | None = None, type_defs: Definitions | None = None) -> IRModule:
        """A module of a function, which is `main` or has its `global_symbol`; of another expression a function of its free
        variables."""
        made = IRModule(functions, type_defs)
        given = expr if isinstance(expr, (Function, PrimFunc)) else as_expr(expr)
        function = given if isinstance(given, (Function, PrimFunc)) else Function(free_vars(given), given)
        name = function.name if isinstance(function, PrimFunc) else str(function.attrs.get("global_symbol") or MAIN)
        free, number = name, 0
        while free in made:
            number += 1
            free = f"{name}_{number}"
        made.functions.put(free, function)
        return made

    # -------------------------------------------------------------------------------------------------------- looking up

    @overload
    def __getitem__(self, key: GlobalTypeVar) -> TypeData: ...
    @overload
    def __getitem__(self, key: GlobalVar | str) -> Any: ...
    def __getitem__(self, key: object) -> Any:
        """The function of a name or a GlobalVar, the definition of a GlobalTypeVar. NoGlobal (a ValueError) where there is
        none."""
        return self.type_definitions[key] if isinstance(key, GlobalTypeVar) else self.functions[key]

    def __contains__(self, key: object) -> bool:
        return key in self.type_definitions if isinstance(key, GlobalTypeVar) else key in self.functions

    def get_global_var(self, name: str) -> GlobalVar:
        """The variable of a function."""
        return self.functions.entry(name)[0]

    def get_global_vars(self) -> list[GlobalVar]:
        """The variables of all functions."""
        return list(self.functions)

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """The variable of a data type."""
        return self.type_definitions.entry(name)[0]

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        """The variables of all data types."""
        return list(self.type_definitions)

    def get_type(self, name: str) -> tuple[GlobalTypeVar | Constructor, ...]:
        """The variable of a data type, and its constructors."""
        header, definition = self.type_definitions.entry(name)
        return (header, *definition.constructors)

    def get_constructor(self, tag: int) -> Constructor:
        """The constructor of a tag."""
        if tag not in self._constructors:
            raise NoGlobal(f"there is no constructor with tag {tag}", "tags are those of this module's data types")
        return self._constructors[tag]

    # ----------------------------------------------------------------------------------------------------------- changes

    def __setitem__(self, key: object, value: object) -> None:
        """Add or replace a function or a definition. An expression is wrapped as a function without parameters, the variable
        of a function as a function that calls it. IllFormed for functions with free variables."""
        if isinstance(value, TypeData):
            self._define(key, value)
        elif isinstance(value, Type):
            raise ExpressionTypeError(f"{value} is no definition of a type", "give a TypeData")
        else:
            function = value if isinstance(value, PrimFunc) else self._function(as_expr(value))
            self._distinct(key)
            self.functions.put(key, function)

    def _distinct(self, key: object) -> None:
        if isinstance(key, GlobalVar) and key in self.functions and self.get_global_var(key.name_hint) is not key:
            raise IllFormed(
                f"the module has another GlobalVar named '{key.name_hint}'",
                f'take it: module.get_global_var("{key.name_hint}")',
            )

    def _function(self, value: Expr) -> Function:
        if isinstance(value, GlobalVar):
            return self._expanded(value)
        function = value if isinstance(value, Function) else Function([], value)
        names = [v.name_hint for v in free_vars(function)] + [v.name_hint for v in free_type_vars(function, self)]
        if names:
            raise IllFormed(
                f"the function contains free variables: {', '.join(names)}",
                "make them parameters: relay.Function(relay.analysis.free_vars(expr), expr)",
            )
        return function

    def _expanded(self, callee: GlobalVar) -> Function:
        """A function that does what another one does."""
        known = self[callee]
        if not isinstance(known, Function):
            raise IllFormed(f"'{callee.name_hint}' is no function of graphs", "give a Function")
        params = [Var(p.name_hint, p.type_annotation) for p in known.params]
        return Function(params, Call(callee, params), known.ret_type, known.type_params)

    def _define(self, header: object, definition: TypeData) -> None:
        known = self.type_definitions.put(header, definition)
        used = {tag >> _TAGS_OF_A_TYPE for tag, c in self._constructors.items() if c.belong_to is not known}
        first = zlib.crc32(known.name_hint.encode()) & 0xFF or 1
        byte = next((b for b in range(first, first + 0xFF) if (b % 0x100 or 1) not in used), first) % 0x100 or 1
        for i, constructor in enumerate(definition.constructors):
            constructor.tag_with(byte << _TAGS_OF_A_TYPE | i)
            self._constructors[constructor.tag] = constructor

    def update_func(self, var: object, function: BaseFunc) -> None:
        """Replace a function."""
        self.functions.put(var, function)

    def update(self, other: IRModule | Functions) -> None:
        """Add all functions and data types of another module, over those of the same names. What they call is what has that name
        here."""
        given = other if isinstance(other, IRModule) else IRModule(other)
        for header, definition in given.type_definitions.items():
            self._define(header, definition)
        for var in given.functions:
            if var not in self.functions:
                self.functions.put(var, given.functions[var])
        for var, function in given.functions.items():
            self.functions.put(var, self._of_here(function))

    def _of_here(self, function: BaseFunc) -> BaseFunc:
        """A function that names this module's globals."""
        if isinstance(function, PrimFunc):
            return function
        made = rewrite(
            function,
            lambda _, e: self.get_global_var(e.name_hint) if isinstance(e, GlobalVar) and e in self.functions else e,
        )
        assert isinstance(made, Function)
        return made

    def import_from_std(self, path: str) -> IRModule:
        """Have the definitions of a standard file (`prelude.rly`) in this module; gives it with types."""
        from compassc.relay.std import import_file

        return import_file(self, path)

    # -------------------------------------------------------------------------------------------------------- attributes

    def with_attr(self, key: str, value: object) -> IRModule:
        """The module with one more attribute."""
        return self.with_attrs({key: value})

    def with_attrs(self, more: Mapping[str, object]) -> IRModule:
        """The module with more attributes."""
        return self._copy({**self.attrs, **more})

    def without_attr(self, key: str) -> IRModule:
        """The module without an attribute."""
        return self._copy({k: v for k, v in self.attrs.items() if k != key})

    def _copy(self, attrs: Mapping[str, object]) -> IRModule:
        made = IRModule(self.functions, self.type_definitions, attrs)
        made.imported = set(self.imported)
        return made

    def shallow_copy(self) -> IRModule:
        """A module of the same functions."""
        return self._copy(self.attrs)

    def get_attr(self, key: str) -> Any:
        """The value of an attribute, None without it."""
        return self.attrs.get(key)

    # ------------------------------------------------------------------------------------------------------------- others

    def kernels(self) -> Kernels:
        """The module as one of kernels, with `main` or the first one as its entry. IllFormed where it has functions of graphs."""
        graphs = [v.name_hint for v, f in self.functions.items() if not isinstance(f, PrimFunc)]
        if graphs:
            raise IllFormed(f"@{graphs[0]} is a function of graphs, and no kernel", "take a module of kernels alone")
        found = {v.name_hint: f.replace(name=v.name_hint) for v, f in self.functions.items() if isinstance(f, PrimFunc)}
        entry = MAIN if MAIN in found or not found else next(iter(found))
        return Kernels(tuple(found.values()), entry, "", (), tuple(self.attrs.items()))

    def astext(self, show_meta_data: bool = True, annotate: Annotate | None = None) -> str:
        """Its text with a version line (`relay.printer.astext`)."""
        from compassc.relay.printer import astext

        return astext(self, show_meta_data, annotate)

    def __repr__(self) -> str:
        from compassc.relay.printer import text

        return text(self)

    def script(self) -> str:
        """The text that `show` prints. Functions of graphs have the form of `astext`, without the line of the version."""
        return repr(self)

    def show(self) -> None:
        """Print the text."""
        print(self.script())
