"""Which parts of the language a program uses."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from compassc.relay.expr import (
    Call,
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
)
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.variables import free_vars
from compassc.relay.visit import children, is_primitive, post_order


class Feature(IntEnum):
    """Kinds of expressions; `fGraph`: one is used at several places, `fLetRec`: a binding uses itself."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_OF: dict[type, Feature] = {
    Var: Feature.fVar,
    GlobalVar: Feature.fGlobalVar,
    Constant: Feature.fConstant,
    Tuple: Feature.fTuple,
    TupleGetItem: Feature.fTupleGetItem,
    Function: Feature.fFunction,
    Op: Feature.fOp,
    Call: Feature.fCall,
    Let: Feature.fLet,
    If: Feature.fIf,
    RefCreate: Feature.fRefCreate,
    RefRead: Feature.fRefRead,
    RefWrite: Feature.fRefWrite,
    Constructor: Feature.fConstructor,
    Match: Feature.fMatch,
}
_ATOMS = (Var, GlobalVar, Constant, Op, Constructor)


def detect_feature(a: Expr | IRModule, b: Expr | IRModule | None = None) -> set[Feature]:
    """The features of an expression or a module, or of both, in either order. Kernels are not looked into."""
    found: set[Feature] = set()
    for given in (a, b):
        if isinstance(given, IRModule):
            for function in given.functions.values():
                if isinstance(function, Function):
                    found |= _features(function)
        elif given is not None:
            found |= _features(given)
    return found


def _features(root: Expr) -> set[Feature]:
    found: set[Feature] = set()
    users: set[int] = set()
    if is_primitive(root):
        return {Feature.fFunction}
    for e in post_order(root, is_primitive):
        found.add(_OF[type(e)])
        inner: Iterable[Expr] = () if is_primitive(e) else children(e)
        for child in inner:
            if id(child) in users and not isinstance(child, _ATOMS):
                found.add(Feature.fGraph)
            users.add(id(child))
        if isinstance(e, Let) and e.var in free_vars(e.value):
            found.add(Feature.fLetRec)
    return found
