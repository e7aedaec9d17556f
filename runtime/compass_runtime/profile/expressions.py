"""Operations of expressions: which ones a C expression takes, and where each gets its operands from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import ClassVar

from compass_core.dataclass import dataclass
from compass_runtime.profile import syntax
from compass_runtime.profile.costs import class_of, op_classes
from compass_runtime.profile.parse import OWN, Node, Text
from compass_runtime.profile.regions import Op, Region

Value = tuple[tuple[int, int], ...]
"""The operations that make a value: (region, number in it)."""
NONE: Value = ()
_CAST_CLASSES = {
    "VectorSplat": "permute",
    "IntegralToFloating": "scalar",
    "FloatingToIntegral": "scalar",
    "FloatingCast": "scalar",
}
_LAZY = ("&&", "||")


@dataclass
class Loop:
    """A loop around the expression: the variables that change in it, and the region before it."""

    written: frozenset[str]
    before: Region
    moved: dict[str, Value] = field(default_factory=dict)
    """What was already moved out of the loop, by its text."""


class Expressions:
    """Adds the operations of expressions to the region that is current.

    Operations whose operands a loop does not change count once before the loop, as any compiler has it. Both sides of
    `?:`, `&&` and `||` are separate regions when they touch memory or call something; else they count as executed.
    """

    def __init__(self, text: Text, arm: Callable[[Node, Callable[[], Value]], Value], mask: Callable[[Node], int]):
        """`arm` evaluates a part that need not run, `mask` gives the counter of a mask operand's active lanes."""
        self._text = text
        self._arm = arm
        self._mask = mask
        self.region: Region | None = None
        self.loops: list[Loop] = []

    def value(self, node: Node) -> Value:
        """Adds the operations of an expression or a declaration; gives those that make its value."""
        if syntax.is_constant(node):
            return NONE
        if node["kind"] == "DeclRefExpr":
            return self._read(node)
        if (before := self._invariant_in(node)) is not None:
            return self._moved(node, before)
        return self._HANDLERS.get(node["kind"], Expressions._all)(self, node)

    def add(self, kind: str, node: Node, operands: Value = NONE) -> Value:
        """Adds an operation that is no expression, such as a branch, at the place of a node."""
        return self._add(kind, node, operands, lanes=0)

    def _all(self, node: Node) -> Value:
        return tuple(part for child in syntax.children(node) for part in self.value(child))

    def _add(
        self,
        kind: str,
        node: Node,
        operands: Value,
        lanes: int | None = None,
        element: int = 0,
        mask: int | None = None,
        external: bool = False,
    ) -> Value:
        region = self.region
        assert region is not None
        shape = syntax.vector(node)
        if lanes is None:
            lanes, element = shape or (0, element)
        own = tuple(index for number, index in operands if number == region.number)
        region.ops.append(Op(kind, self._text.place(syntax.begin(node)), own, lanes, element, mask, external))
        return ((region.number, len(region.ops) - 1),)

    # What does not change in a loop

    def _invariant_in(self, node: Node) -> int | None:
        """The outermost loop that leaves the value of a pure expression alone; None when there is no such loop."""
        if not self.loops or not _is_pure(node):
            return None
        used = syntax.variables(node)
        found = None
        for index in range(len(self.loops) - 1, -1, -1):
            if used & self.loops[index].written:
                break
            found = index
        return found

    def _moved(self, node: Node, index: int) -> Value:
        loop, key = self.loops[index], self._text.text[syntax.begin(node) : syntax.end(node)]
        if key not in loop.moved:
            region, loops = self.region, self.loops
            self.region, self.loops = loop.before, loops[:index]
            loop.moved[key] = self._HANDLERS.get(node["kind"], Expressions._all)(self, node)
            self.region, self.loops = region, loops
        return loop.moved[key]

    # Variables

    def _slot(self, node: Node) -> tuple[str, str]:
        """The key of an accessed location: a variable, or an element of an array by its constant index."""
        node = syntax.bare(node)
        index = ""
        if node["kind"] == "ArraySubscriptExpr":
            base, subscript = syntax.children(node)
            index = str(syntax.bare(subscript).get("value", "?"))
            node = syntax.bare(base)
        return syntax.variable(node) or "", index

    def _read(self, node: Node) -> Value:
        region, slot = self.region, self._slot(node)
        assert region is not None
        if slot not in region.written:
            if slot not in region.variables:
                region.variables.append(slot)
            return ((region.number, -1 - region.variables.index(slot)),)
        return tuple((region.number, index) for index in region.written[slot])

    def _write(self, slot: tuple[str, str], value: Value) -> None:
        region = self.region
        assert region is not None
        region.written[slot] = tuple(index for number, index in value if number == region.number)

    def _assign(self, target: Node, value: Value) -> None:
        bare = syntax.bare(target)
        if syntax.variable(bare) or _is_register(bare):
            self._write(self._slot(bare), value)
        elif bare["kind"] == "ExtVectorElementExpr" or _is_lane(bare):
            self._add("permute", syntax.children(bare)[0], value)
        else:
            self._memory("scalar_store", "store", bare, value)

    def _declaration(self, node: Node) -> Value:
        value = self._all(node)
        if "init" in node and self.region is not None:
            self._write((node["id"], ""), value)
        return NONE

    # Memory

    def _memory(self, scalar: str, whole: str, node: Node, value: Value = NONE) -> Value:
        """An access through a subscript or a pointer."""
        below = syntax.children(node)
        operands = value
        for child in below:
            operands += self._address(child)
        external = bool(below) and syntax.is_external(below[0])
        size = syntax.size_of(syntax.type_text(node))
        return self._add(whole if syntax.vector(node) else scalar, node, operands, element=size, external=external)

    def _address(self, node: Node) -> Value:
        """The operands of an address; adding an offset to a base is part of the access itself."""
        node = syntax.bare(node)
        if node["kind"] == "BinaryOperator" and node["opcode"] in "+-" and syntax.is_pointer(node):
            return self._all(node)
        return self.value(node)

    def _element(self, node: Node) -> Value:
        if _is_lane(node):
            return self._lane(node)
        if _is_register(node):
            return self._read(node)
        return self._memory("scalar_load", "load", node)

    def _lane(self, node: Node) -> Value:
        return self._add("permute", syntax.children(node)[0], self._all(node))

    # Operators

    def _cast(self, node: Node) -> Value:
        kind = _CAST_CLASSES.get(node["castKind"])
        value = self._all(node)
        if kind is None or all(syntax.is_constant(child) for child in syntax.children(node)):
            return value
        return self._add("convert" if kind == "scalar" and syntax.vector(node) else kind, node, value)

    def _binary(self, node: Node) -> Value:
        opcode = node["opcode"]
        left, right = syntax.children(node)
        if opcode == "=":
            value = self.value(right)
            self._assign(left, value)
            return value
        if opcode == ",":
            self.value(left)
            return self.value(right)
        if opcode in _LAZY and not syntax.vector(node):
            operands = self.value(left) + self._part(right)
        else:
            operands = self.value(left) + self.value(right)
        shaped = left if syntax.vector(left) else node
        return self._add(syntax.operator_class(shaped, opcode), shaped, operands)

    def _compound_assign(self, node: Node) -> Value:
        left, right = syntax.children(node)
        operands = self.value(right) + self.value(left)
        value = self._add(syntax.operator_class(node, node["opcode"]), node, operands)
        self._assign(left, value)
        return value

    def _unary(self, node: Node) -> Value:
        (below,) = syntax.children(node)
        opcode = node["opcode"]
        if opcode == "*":
            return self._memory("scalar_load", "load", node)
        if opcode in ("&", "__extension__", "+"):
            return self._address(below)
        value = self._add(syntax.operator_class(node, opcode), node, self.value(below))
        if opcode in ("++", "--"):
            self._assign(below, value)
        return value

    def _conditional(self, node: Node) -> Value:
        condition, yes, no = syntax.children(node)
        if syntax.vector(condition):
            return self._add("alu", node, self._all(node))
        operands = self.value(condition) + self._part(yes) + self._part(no)
        return self._add("alu" if syntax.vector(node) else "scalar", node, operands)

    def _part(self, node: Node) -> Value:
        """A part of an expression that runs only when another part says so."""
        if _is_pure(node):
            return self.value(node)
        return self._arm(node, lambda: self.value(node))

    # Calls

    def _call(self, node: Node) -> Value:
        function, arguments = syntax.callee(node), syntax.children(node)[1:]
        if function.startswith(OWN):
            operands = tuple(part for argument in arguments for part in self.value(argument))
            return self._add("call", node, operands, lanes=0)
        kind = class_of(function)
        name = kind.name if kind else "alu" if syntax.vector(node) else "scalar"
        if name == "free":
            return tuple(part for argument in arguments for part in self._address(argument))
        memory = op_classes()[name].unit == "memory"
        operands = NONE
        for argument in arguments:
            operands += self._address(argument) if memory and syntax.is_pointer(argument) else self.value(argument)
        masked = kind is not None and kind.masks(function) and syntax.takes_mask(node)
        counted = masked and not syntax.is_constant(arguments[-1])
        lanes, element = _widest([node, *arguments])
        external = memory and any(syntax.is_pointer(a) and syntax.is_external(a) for a in arguments)
        mask = self._mask(arguments[-1]) if counted else None
        return self._add(name, node, operands, lanes, element, mask, external)

    def _convert(self, node: Node) -> Value:
        return self._add("convert", node, self._all(node))

    _HANDLERS: ClassVar[dict[str, Callable[[Expressions, Node], Value]]] = {
        "BinaryOperator": _binary,
        "CompoundAssignOperator": _compound_assign,
        "UnaryOperator": _unary,
        "CallExpr": _call,
        "ConditionalOperator": _conditional,
        "ArraySubscriptExpr": _element,
        "ExtVectorElementExpr": _lane,
        "ConvertVectorExpr": _convert,
        "VarDecl": _declaration,
        **dict.fromkeys(syntax.CASTS, _cast),
    }


def _widest(nodes: list[Node]) -> tuple[int, int]:
    """(lanes, bytes of an element) of the vector with the most lanes; masks count when there is nothing else."""
    shapes = [shape for node in nodes if not syntax.is_mask(node) and (shape := syntax.vector(node))]
    shapes = shapes or [shape for node in nodes if (shape := syntax.vector(node))]
    return max(shapes, default=(0, 0))


def _is_lane(node: Node) -> bool:
    """A subscript of a vector."""
    return node["kind"] == "ArraySubscriptExpr" and syntax.vector(syntax.children(node)[0]) is not None


def _is_register(node: Node) -> bool:
    """An element of a local array of vectors by a constant index: what wide vectors are made of."""
    if node["kind"] != "ArraySubscriptExpr" or syntax.vector(node) is None:
        return False
    base, index = syntax.children(node)
    return syntax.is_constant(index) and "[" in syntax.type_text(syntax.bare(base))


def _is_load(node: Node) -> bool:
    made: bool = node["kind"] == "UnaryOperator" and node["opcode"] == "*"
    return made


_PURE = frozenset(
    (
        *syntax.WRAPPERS,
        *syntax.CASTS,
        *syntax.LITERALS,
        "BinaryOperator",
        "UnaryOperator",
        "ConditionalOperator",
        "DeclRefExpr",
        "ConvertVectorExpr",
    )
)


@syntax.noted
def _is_pure(node: Node) -> bool:
    """Whether a value depends on variables alone and computing it has no effect."""
    if node["kind"] == "CallExpr":
        kind = class_of(syntax.callee(node))
        if kind is None or kind.name not in ("free", "scalar", "mask"):
            return False
    elif node["kind"] not in _PURE or syntax.is_assignment(node) or _is_load(node):
        return False
    return all(map(_is_pure, syntax.children(node)))
