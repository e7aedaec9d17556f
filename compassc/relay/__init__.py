"""Relay: the graph language. Expressions with types, modules, text, operators, passes, and what runs them."""

from importlib import import_module

from compassc.relay import analysis, loops
from compassc.relay import op as op
from compassc.relay import qnn as qnn
from compassc.relay.bind import bind
from compassc.relay.builders import NAMESPACES, namespace
from compassc.relay.equal import assert_structural_equal, structural_equal, structural_hash
from compassc.relay.errors import DiagnosticError
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
    const,
    var,
)
from compassc.relay.functor import ExprFunctor, ExprMutator, ExprVisitor, TypeFunctor, TypeMutator, TypeVisitor
from compassc.relay.interpreter import Interpreter
from compassc.relay.module import IRModule
from compassc.relay.parser import fromtext, parse, parse_expr
from compassc.relay.printer import astext
from compassc.relay.scope_builder import ScopeBuilder
from compassc.relay.std import Prelude
from compassc.relay.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeKind,
    TypeRelation,
    TypeVar,
    scalar_type,
)
from compassc.relay.types import (
    Open as Any,
)

__all__ = [
    "Any",
    "Call",
    "Clause",
    "Constant",
    "Constructor",
    "DiagnosticError",
    "Expr",
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
    "FuncType",
    "Function",
    "GlobalTypeVar",
    "GlobalVar",
    "IRModule",
    "If",
    "IncompleteType",
    "Interpreter",
    "Let",
    "Match",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "Prelude",
    "RefCreate",
    "RefRead",
    "RefType",
    "RefWrite",
    "ScopeBuilder",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "TupleWrapper",
    "Type",
    "TypeCall",
    "TypeData",
    "TypeFunctor",
    "TypeKind",
    "TypeMutator",
    "TypeRelation",
    "TypeVar",
    "TypeVisitor",
    "Var",
    "analysis",
    "assert_structural_equal",
    "astext",
    "bind",
    "const",
    "fromtext",
    "loops",
    "parse",
    "parse_expr",
    "scalar_type",
    "structural_equal",
    "structural_hash",
    "var",
]


_BUILDING = {"build": "build", "optimize": "build", "partition": "build", "create_executor": "executors"}
"""What builds and runs programs, which is loaded when it is asked for: by its module of `backend`."""


_MODULES = ("analysis", "dataflow_pattern", "frontend", "quantize", "testing", "transform")
"""Modules that are loaded when they are asked for."""


def __getattr__(name: str) -> object:
    """The builders of operators (`relay.add`), those of a kind (`relay.nn`), what builds programs (`relay.build`), and
    modules (`relay.transform`, `relay.frontend`)."""
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name in _BUILDING:
        return getattr(import_module(f"{__name__}.backend.{_BUILDING[name]}"), name)
    found = NAMESPACES.get(name) or (None if name.startswith("_") else namespace().get(name))
    if found is None:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return found
