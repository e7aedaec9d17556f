"""Questions about nodes of clang's syntax tree: types, constants, places, what a statement contains."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import TypeVar

from compass_core.namedtuple import NamedTuple
from compass_runtime.profile.parse import Node

T = TypeVar("T")

_VECTOR = re.compile(r"^(?P<element>.+?)\s*__attribute__\(\(ext_vector_type\((?P<lanes>\d+)\)\)\)$")
_QUALIFIER = re.compile(r"\b(?:const|volatile|restrict|__private|__global|__local|__constant|__generic)\b")
_SIZES = {
    "char": 1,
    "bool": 1,
    "_Bool": 1,
    "short": 2,
    "half": 2,
    "_Float16": 2,
    "__bf16": 2,
    "bf16": 2,
    "int": 4,
    "float": 4,
    "uchar": 1,
    "ushort": 2,
    "uint": 4,
    "long": 8,
    "double": 8,
    "ulong": 8,
}
_EXTERNAL = ("__global", "__constant")

WRAPPERS = ("ParenExpr", "ConstantExpr", "AsTypeExpr", "ExprWithCleanups")
CASTS = ("ImplicitCastExpr", "CStyleCastExpr")
LITERALS = ("IntegerLiteral", "FloatingLiteral", "CharacterLiteral", "StringLiteral", "UnaryExprOrTypeTraitExpr")
LOOPS = ("ForStmt", "WhileStmt", "DoStmt")
_AROUND = frozenset((*WRAPPERS, *CASTS))
_PARTS = _AROUND | {"ArraySubscriptExpr", "ExtVectorElementExpr", "MemberExpr"}
_MADE = _AROUND | {"BinaryOperator", "UnaryOperator", "InitListExpr"}
_JUMPS = frozenset(("ReturnStmt", "GotoStmt", "LabelStmt", "BreakStmt", "ContinueStmt"))
_OPERATORS = {"*": "mul", "/": "div", "%": "div"}


def noted(question: Callable[[Node], T]) -> Callable[[Node], T]:
    """The question, whose answer is kept in the node: statements and expressions that lie in each other ask the same of
    what is in them."""
    name = f"noted {question.__name__}"  # no word of clang's

    @wraps(question)
    def answer(node: Node) -> T:
        try:
            found: T = node[name]
        except KeyError:
            node[name] = found = question(node)
        return found

    return answer


@noted
def children(node: Node) -> Sequence[Node]:
    """The nodes below, empty ones left out."""
    return [child for child in node["inner"] if "kind" in child] if "inner" in node else ()


class _Within(NamedTuple):
    """What there is in a node, found in one walk. Nothing in it refers to the node itself, which would live on."""

    calls: Sequence[Node] = ()
    """The calls below the node."""
    jumps: bool = False
    """Whether it or what is below jumps."""
    written: frozenset[str] = frozenset()
    """The variables that it or what is below may change."""


_NOTHING = _Within()


@noted
def _within(node: Node) -> _Within:
    found = _NOTHING
    for child in children(node):
        below = _within(child)
        if child["kind"] == "CallExpr":
            below = below._replace(calls=(child, *below.calls))
        if below is _NOTHING or found is _NOTHING:
            found = below if found is _NOTHING else found
        else:
            found = _Within((*found.calls, *below.calls), found.jumps or below.jumps, found.written | below.written)
    if node["kind"] in _JUMPS:
        found = found._replace(jumps=True)
    if (changed := _changed(node)) is not None:
        found = found._replace(written=found.written | {changed})
    return found


def calls(node: Node) -> Sequence[Node]:
    """The calls below a node, itself among them."""
    below = _within(node).calls
    return (node, *below) if node["kind"] == "CallExpr" else below


def begin(node: Node) -> int:
    """The offset at which the node's text begins."""
    offset: int = node["range"]["begin"]["offset"]
    return offset


def end(node: Node) -> int:
    """The offset at which the node's text ends, without the `;` of an expression statement."""
    last = node["range"]["end"]
    offset: int = last["offset"]
    length: int = last["tokLen"]
    return offset + length


def type_text(node: Node) -> str:
    """The node's type as the text names it."""
    text: str = node.get("type", {}).get("qualType", "")
    return text


def is_mask(node: Node) -> bool:
    """Whether the node is a mask: one byte per lane, named bool8, bool16 or bool32."""
    return _QUALIFIER.sub("", type_text(node)).strip() in ("bool8", "bool16", "bool32")


def vector(node: Node) -> tuple[int, int] | None:
    """(lanes, bytes of an element) of a vector; None for other types."""
    types = node.get("type", {})
    return _shape(types.get("desugaredQualType", types.get("qualType", "")))


@lru_cache(1024)
def _shape(type: str) -> tuple[int, int] | None:
    match = _VECTOR.match(_QUALIFIER.sub("", type).strip())
    return (int(match["lanes"]), size_of(match["element"])) if match else None


@lru_cache(1024)
def size_of(type: str) -> int:
    """Bytes of a scalar; pointers have the four of a device address."""
    words = _QUALIFIER.sub("", type).replace("unsigned", "").replace("signed", "").split()
    return _SIZES.get(words[-1], 4) if words else 4


def is_pointer(node: Node) -> bool:
    return "*" in type_text(node) or "[" in type_text(node)


def is_external(node: Node) -> bool:
    """Whether a pointer, looked at through casts, sums and builtins, points to device memory."""
    while True:
        text = type_text(node)
        if "*" in text and any(space in text.partition("*")[0] for space in _EXTERNAL):
            return True
        below = children(node)
        if node["kind"] == "CallExpr":
            below = below[1:]
        if node["kind"] == "BinaryOperator":
            below = [child for child in below if is_pointer(child)]
        if not below or node["kind"] == "DeclRefExpr":
            return False
        node = below[0]


def bare(node: Node) -> Node:
    """The node without parentheses and casts around it."""
    while node["kind"] in _AROUND and children(node):
        node = children(node)[-1]
    return node


@noted
def is_constant(node: Node) -> bool:
    """Whether the value is known when the kernel is compiled."""
    if node["kind"] in LITERALS:
        return True
    if node["kind"] in _MADE:
        return bool(children(node)) and all(is_constant(child) for child in children(node))
    made: bool = node["kind"] == "DeclRefExpr" and node["referencedDecl"]["kind"] == "EnumConstantDecl"
    return made


def operator_class(node: Node, opcode: str) -> str:
    """The class of an operator of C on values of the node's type."""
    shape = vector(node)
    kind = _OPERATORS.get(opcode.rstrip("="), "")
    if shape is None:
        return f"scalar_{kind}" if kind else "scalar"
    return "mask" if is_mask(node) else kind or "alu"


@noted
def callee(node: Node) -> str:
    """The name of the function that a call calls."""
    called = bare(children(node)[0])
    name: str = called.get("referencedDecl", {}).get("name", "")
    return name


def takes_mask(node: Node) -> bool:
    """Whether the last parameter of the function that a call calls is a mask."""
    return re.search(r"\bbool(8|16|32)\)$", type_text(bare(children(node)[0]))) is not None


def variable(node: Node) -> str | None:
    """The id of the variable that an expression names; None when it is something else."""
    node = bare(node)
    if node["kind"] != "DeclRefExpr" or node["referencedDecl"]["kind"] not in ("VarDecl", "ParmVarDecl"):
        return None
    id: str = node["referencedDecl"]["id"]
    return id


@noted
def variables(node: Node) -> frozenset[str]:
    """The ids of the variables that an expression names."""
    if node["kind"] == "DeclRefExpr":
        return frozenset(filter(None, [variable(node)]))
    below = [found for child in children(node) if (found := variables(child))]
    return below[0] if len(below) == 1 else frozenset().union(*below)


def is_assignment(node: Node) -> bool:
    """Whether the node changes what its first child names."""
    return (
        node["kind"] == "CompoundAssignOperator"
        or (node["kind"] == "BinaryOperator" and node["opcode"] == "=")
        or (node["kind"] == "UnaryOperator" and node["opcode"] in ("++", "--", "&"))
    )


def written(node: Node) -> frozenset[str]:
    """The variables that may change below a node: assigned to, declared, or their address taken."""
    return _within(node).written


def _changed(node: Node) -> str | None:
    """The variable that the node itself changes; empty where that is something else, None where it changes nothing."""
    if is_assignment(node):
        target = children(node)[0]
        while target["kind"] in _PARTS:
            target = children(target)[0]
        return variable(target) or ""
    if node["kind"] == "VarDecl":
        id: str = node["id"]
        return id
    return None


def continues(body: Node) -> bool:
    """Whether a `continue` in a loop's body is of that loop."""
    if body["kind"] == "ContinueStmt":
        return True
    return _within(body).jumps and any(continues(child) for child in children(body) if child["kind"] not in LOOPS)


def leaves(node: Node) -> bool:
    """Whether a statement may be left other than at its end."""

    def jumps(inner: Node, in_loop: bool, in_switch: bool) -> bool:
        kind = inner["kind"]
        if kind in ("ReturnStmt", "GotoStmt", "LabelStmt"):
            return True
        if kind == "BreakStmt":
            return not (in_loop or in_switch)
        if kind == "ContinueStmt":
            return not in_loop
        in_loop, in_switch = in_loop or kind in LOOPS, in_switch or kind == "SwitchStmt"
        return any(jumps(child, in_loop, in_switch) for child in children(inner))

    return _within(node).jumps and jumps(node, False, False)
