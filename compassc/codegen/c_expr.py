"""Expressions of the C dialect: one small method per IR node, calls by the templates of their operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any

from compass_core.errors import Span
from compass_core.operators import OPERATORS

from ..ir import exprs as E
from ..ir.dtypes import BOOL, INT32, PointerType
from ..ir.rules import method, table
from ..ops import spelling
from .c_places import Places
from .c_types import (
    c_type,
    codegen_error,
    float_text,
    in_memory,
    int_text,
    mask_letter,
    mask_word,
    qualifier,
    string_text,
)

_SWAPPED = {"gt": "<", "ge": "<="}
_ROUNDED = frozenset(("add", "sub", "mul", "div"))
"""Operators whose scalar result is cast back to its type, as C computes it in a wider one."""
_ONE_TYPE = frozenset(("min", "max"))
_CHOSEN = {"min": "<", "max": ">"}
"""The comparison that says whether the first of two numbers is the result."""
_NAME_CHARS = str.maketrans(":-.", "___")


class ExprPrinter:
    """Text of expressions of one function. `names` holds the C name of each variable declared so far."""

    def __init__(self, forms: dict[str, Callable[[ExprPrinter, E.Call], str]]) -> None:
        self.names: dict[E.Var, str] = {}
        self.forms = forms
        self.dma: dict[str, None] = {}
        self.used: set[str] = set()
        self.defining = ""
        """The variable whose definition is being printed."""
        self.decimal_masks = False
        self.typed_masks = False
        """Constant masks inside a concatenation are plain numbers."""
        self.here: Span | None = None
        """The place of what is being printed: of the statement, or of a call or access in it."""
        self.places = Places()

    def _select(self, e: E.Select) -> str:
        return f"({self.expr(e.condition)} ? {self.operand(e.true_value)} : {self.operand(e.false_value)})"

    @cached_property
    def readers(self) -> AbstractSet[E.Var]:
        """Pointers that nothing is done with but to read copies (`analysis.copies`)."""
        return frozenset()

    def value(self, e: E.Expr) -> str:
        """The C text of an expression whose place cuts it to its type: the right side of an assignment, a cast."""
        form = _FORMS.get(type(e))
        if form is None:
            raise codegen_error(
                f"a {type(e).__name__} of type {e.dtype} has no C form", "run the whole legalisation pipeline"
            )
        if isinstance(e, E.PlacedExpr) and e.span is not None and e.span is not self.here:
            outer, self.here = self.here, e.span
            text = form(self, e)
            self.here = outer
            return self.places.marked(text, e.span, outer)
        return form(self, e)

    def expr(self, e: E.Expr) -> str:
        """The C text of an expression; its C value is in the range of its type."""
        if type(e) is E.Var:
            return self._var(e)
        return f"({c_type(e.dtype)}){self.value(e)}" if _leaves_range(e) else self.value(e)

    def typed(self, e: E.Expr) -> str:
        """The C text of an argument that overloads are chosen by: C has the expression's own type for it."""
        if type(e) is E.Var:
            return self._var(e)
        return f"({c_type(e.dtype)}){self.value(e)}" if _is_promoted(e) or _is_widened(e) else self.value(e)

    def operand(self, e: E.Expr) -> str:
        """The C text of an operand of a C operator, in which constant masks are cast to their type."""
        outer, self.typed_masks = self.typed_masks, self.typed_masks or _is_constant_mask(e)
        text = self.expr(e)
        self.typed_masks = outer
        return text

    def list(self, items: Iterable[E.Expr]) -> str:
        return ", ".join([self.typed(e) for e in items])

    def _var(self, e: E.Var) -> str:
        name = self.names.get(e)
        if name is None:
            raise codegen_error(f"variable {e.name!r} is used before it is defined")
        return name

    def _int(self, e: E.IntImm) -> str:
        return int_text(e)

    def _float(self, e: E.FloatImm) -> str:
        return float_text(e)

    def _string(self, e: E.StringImm) -> str:
        return string_text(e.value)

    def _literal(self, e: E.VectorLiteral) -> str:
        return f"({c_type(e.dtype)})({','.join([self._element(x) for x in e.elems])})"

    def _const_mask(self, e: E.ConstMask) -> str:
        return self.mask_constant(e.bits, e.lanes)

    def _address(self, e: E.AddressOf) -> str:
        return f"&{self._var(e.var)}"

    def _func_call(self, e: E.FuncCall) -> str:
        return f"{e.func}({self.list(e.args)})"

    def _element(self, e: E.Expr) -> str:
        """An element of a vector literal: whole numbers without the cast of their type."""
        return str(e.value) if type(e) is E.IntImm and e.dtype is not BOOL else self.expr(e)

    def _cast(self, e: E.Cast) -> str:
        source, to = e.value.dtype, e.dtype
        cut = source.is_integer and to.is_integer and not to.is_bool and to.bits <= source.bits
        text = self.value(e.value) if cut else self.expr(e.value)
        if source.is_floating and to.is_integer and 1 < to.bits < 32:
            text = f"(int){text}"  # out of range: clamped to int, then cut, where C alone leaves it open
        return text if to is source else f"({c_type(to)}){text}"

    def _reinterpret(self, e: E.Reinterpret) -> str:
        if isinstance(e.dtype, PointerType):
            return f"({c_type(e.dtype)}){self.expr(e.value)}"
        if e.dtype is e.value.dtype:
            return self.expr(e.value)
        return f"as_{c_type(e.dtype)}({self.typed(e.value)})"

    def _binary(self, e: E.Binary) -> str:
        op = e.op
        if op in _CHOSEN and e.dtype.bits > 32:  # C functions are of 32 bits at most
            a, b = self.expr(e.a), self.expr(e.b)
            return f"(({a} {_CHOSEN[op]} {b}) ? {a} : {b})"
        if op in _ONE_TYPE:
            return f"{op}({self.typed(e.a)}, {self.typed(e.b)})"
        if op in _SWAPPED:
            return f"({self.expr(e.b)} {_SWAPPED[op]} {self.expr(e.a)})"
        text = f"({self.expr(e.a)} {OPERATORS[op].c} {self.expr(e.b)})"
        kept = op not in _ROUNDED and not (op == "shl" and e.dtype.is_bool)
        if e.dtype is INT32 or kept or e.dtype.is_vector:
            return text
        return f"({c_type(e.dtype)}){text}"

    def _unary(self, e: E.Unary) -> str:
        text = self.expr(e.a)
        if e.op == "bitnot":
            return f"(bool)(~{text})" if e.dtype is BOOL else f"(~{text})"
        return f"!{text}" if e.op == "not" else f"({text} == NULL)"

    # -- memory

    def _pointer(self, e: E.Pointer) -> str:
        core = self.expr(e.base)
        if in_memory(e.base.pointer_type.elem) is not in_memory(e.pointer_type.elem):
            core = f"({c_type(e.dtype)}){core}"
        offset = e.offset
        if type(offset) is E.IntImm and offset.value == 0:
            return core
        return f"({core} + {self.expr(offset)})"

    def pointer_to(self, pointer: E.Expr, elem: Any) -> str:
        """The text of `pointer` as an address of `elem`, cast only where it points to something else."""
        text = self.expr(pointer)
        if in_memory(pointer.pointer_type.elem) is in_memory(elem):
            return text
        return f"({qualifier(pointer.pointer_type.scope)}{c_type(in_memory(elem))}*){text}"

    def reference(self, buffer: E.Buffer, indices: tuple[E.Expr, ...]) -> str:
        """An element of a buffer as an lvalue."""
        base = self._var(buffer.data)
        stored = in_memory(buffer.dtype)
        if in_memory(buffer.data.pointer_type.elem) is not stored:
            base = f"(({qualifier(buffer.scope)}{c_type(stored)}*){base})"
        return base + "".join([f"[{self.expr(i)}]" for i in indices])

    def _load(self, e: E.BufferLoad) -> str:
        if e.mask is not None:
            raise codegen_error(
                "a masked load has no C form as a subscript", "keep the pass LowerVectorOperators enabled"
            )
        return self.reference(e.buffer, e.indices)

    def _broadcast(self, e: E.Broadcast) -> str:
        text = self.expr(e.value)
        if isinstance(e.value, (E.GetElement, E.BufferLoad)) and text[0] == "(":
            # (type)(x)[k] is element k of the vector (type)(x)
            text = f"({text})"
        return f"({c_type(e.dtype)}){text}"

    def _get_element(self, e: E.GetElement) -> str:
        vector = e.vector
        text = self.operand(vector)
        if text[0] == "(" and not _is_group(text):
            text = f"({text})"
        text = f"{text}[{self.expr(e.index)}]"
        return f"({text} & 1)" if vector.dtype.is_mask else text  # a true lane is any odd byte

    # -- calls

    def _call(self, e: E.Call) -> str:
        form = self.forms.get(e.op)
        if form is not None:
            return form(self, e)
        template = spelling.template_of(e)
        if template:
            return self.fill(template, e)
        if not spelling.is_builtin(e.op):
            raise codegen_error(
                f"S.{e.op} has no C form for {', '.join(str(a.dtype) for a in e.args) or 'no arguments'}"
            )
        decimal, self.decimal_masks = self.decimal_masks, self.decimal_masks or e.op.startswith("__vext")
        parts = self.operands(e)
        if e.mask is not None:
            parts.append(self.expr(e.mask))
        self.decimal_masks = decimal
        return f"{e.op}({', '.join(parts)})"

    def operands(self, e: E.Call) -> Any:
        """The operands of a builtin. `ALL_TRUE_*` has no mask type of its own to choose an overload by."""
        if e.args and all(map(_is_constant_mask, e.args)):
            return [self.operand(a) for a in e.args]
        return [self.typed(a) for a in e.args]

    def fill(self, template: str, e: E.Call) -> str:
        """A template with the operands of a call put in."""
        fields = dict(zip(spelling.operand_names(e.op), self.operands(e), strict=False))
        fields["args"] = ", ".join(fields.values())
        if "{m}" in template:
            fields["m"] = self.mask(e)
        if "{r}" in template:
            if e.r is None:
                raise codegen_error(
                    f"S.{e.op} has no source for inactive lanes", "keep the pass AssignPassthru enabled"
                )
            fields["r"] = self.expr(e.r)
        if "{T}" in template:
            fields["T"] = c_type(e.dtype)
        return template.format_map(fields)

    def mask(self, e: E.Call) -> str:
        """The mask of a call, written out when every lane is active."""
        if e.mask is not None:
            return self.expr(e.mask)
        return self.all_true(spelling.mask_dtype(e).lanes)

    def all_true(self, lanes: int) -> str:
        return self.mask_constant((1 << lanes) - 1, lanes)

    def mask_constant(self, bits: int, lanes: int) -> str:
        """A constant mask: `ALL_TRUE_*`, or the predicate word; decimal inside a concatenation if it fits int32."""
        letter = mask_letter(lanes)
        word = mask_word(bits, lanes)
        if self.decimal_masks and word >> 31 == 0:
            return f"__vmov_{letter}({word})"
        if bits == (1 << lanes) - 1 and not self.typed_masks:
            return f"ALL_TRUE_{letter}"
        return f"__vmov_{letter}(0x{word:08X})"


_FORMS: Mapping[type, Callable[[ExprPrinter, E.Expr], str]] = table(
    method(E.Var, ExprPrinter._var),
    method(E.IntImm, ExprPrinter._int),
    method(E.FloatImm, ExprPrinter._float),
    method(E.StringImm, ExprPrinter._string),
    method(E.Cast, ExprPrinter._cast),
    method(E.Reinterpret, ExprPrinter._reinterpret),
    method(E.Binary, ExprPrinter._binary),
    method(E.Unary, ExprPrinter._unary),
    method(E.Select, ExprPrinter._select),
    method(E.Broadcast, ExprPrinter._broadcast),
    method(E.VectorLiteral, ExprPrinter._literal),
    method(E.ConstMask, ExprPrinter._const_mask),
    method(E.Pointer, ExprPrinter._pointer),
    method(E.AddressOf, ExprPrinter._address),
    method(E.BufferLoad, ExprPrinter._load),
    method(E.GetElement, ExprPrinter._get_element),
    method(E.Call, ExprPrinter._call),
    method(E.FuncCall, ExprPrinter._func_call),
)


def _is_constant_mask(e: E.Expr) -> bool:
    """Whether a mask is made of constants alone. In C `ALL_TRUE_*` is a number, which has no lanes and no mask type."""
    return type(e) is E.ConstMask or (type(e) is E.Unary and _is_constant_mask(e.a))


def _is_narrow(e: E.Expr) -> bool:
    """Whether C promotes an expression of a narrower type to int."""
    t = e.dtype
    return t.is_scalar and t.is_integer and not t.is_bool and t.bits < 32


def _leaves_range(e: E.Expr) -> bool:
    """Whether C's value of an expression can be outside its type: C shifts and inverts narrow integers in int."""
    if type(e) is E.Binary:
        return e.op == "shl" and _is_narrow(e)
    return type(e) is E.Unary and e.op == "bitnot" and e.dtype.is_uint and _is_narrow(e)


def _is_promoted(e: E.Expr) -> bool:
    """Whether C gives an expression the type int where it is of a narrower type."""
    if type(e) is E.Binary:
        return e.op not in _ROUNDED and e.op not in _ONE_TYPE and _is_narrow(e)
    return (type(e) is E.Select or (type(e) is E.Unary and e.op == "bitnot")) and _is_narrow(e)


def _is_widened(e: E.Expr) -> bool:
    """Whether C gives an expression the type float where it is of a narrower one: `INFINITY` and `NAN` are floats in C."""
    if e.dtype.is_vector or not e.dtype.is_floating or e.dtype.bits >= 32:
        return False
    if type(e) is E.Select:
        return _is_widened(e.true_value) or _is_widened(e.false_value)
    return type(e) is E.FloatImm and not math.isfinite(e.value)


def _is_group(text: str) -> bool:
    """Whether a text that begins with a parenthesis is all inside of it, and no cast."""
    depth = 0
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if not depth:
            return position == len(text) - 1
    return False


def c_name(name: str) -> str:
    """A variable name with the characters that C does not have replaced."""
    return name.translate(_NAME_CHARS)
