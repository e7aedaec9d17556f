"""Calls of packed functions (`compass_runtime.packed`) in statements of the host: Python in the middle of a kernel.

A call stands in the IR as one of a function whose name says what it is given (`Signature.symbol`); lowering declares that
function, and the host's C text has it: it hands addresses, sizes and numbers to the runtime, which calls the packed function.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compass_core.dataclass import dataclass
from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32, DataType, PointerType
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Expr
from compassc.ir.operators import as_expr, kind_of
from compassc.te.buffers import View

_ZERO = E.IntImm(INT32, 0)
PACKED = "packed"
"""The attribute of a declared function that calls a packed one: its signature as text."""
_PREFIX = "packed "


@dataclass(frozen=True)
class Signature:
    """A packed function and its arguments: `{"array": dtype, "ndim": n}`, `{"handle": dtype}` of an address, `{"number": dtype}`,
    `{"plain": value}`."""

    name: str
    arguments: tuple[dict[str, Any], ...]

    @property
    def symbol(self) -> str:
        """The name under which it is called until it is declared."""
        return _PREFIX + json.dumps([self.name, list(self.arguments)])


def text_of(symbol: str) -> str:
    """The signature in a symbol, as text; empty for names of other functions."""
    return symbol.removeprefix(_PREFIX) if symbol.startswith(_PREFIX) else ""


def call_packed(func_name: str, *args: object) -> Expr:
    """The call of a global function (`register_func`), of type int32 and value 0, as a statement of the host. Arguments are
    buffers, which the function sees as arrays over their memory, addresses, numbers and texts. ExpressionError for others; LowerError on
    devices. What the function raises, the kernel's call raises when it ends."""
    if not isinstance(func_name, str) or not func_name:
        raise ExpressionError(f"{func_name!r} is no name of a packed function")
    described, passed = [], list[Expr]()
    for given in args:
        if isinstance(given, View):
            if given.declared_strides:
                raise ExpressionError(f"'{func_name}': the buffer '{given.name}' has strides, arrays lie in one piece")
            described.append({"array": str(given.dtype), "ndim": len(given.shape)})
            passed += [given.ptr(), *given.shape]
        elif isinstance(given, (bool, int, float, str)):
            described.append({"plain": given})
        else:
            number = as_expr(given)
            if isinstance(number.dtype, PointerType):
                described.append({"handle": str(number.dtype.elem)})
                passed.append(E.Pointer(number.dtype.elem, number, _ZERO) if isinstance(number, E.Var) else number)
                continue
            if not isinstance(number.dtype, DataType) or not kind_of(number).is_scalar:
                raise ExpressionTypeError(
                    f"'{func_name}': buffers, addresses, numbers and texts are passed, got {number.dtype}"
                )
            described.append({"number": str(number.dtype)})
            passed.append(number)
    return E.FuncCall(Signature(func_name, tuple(described)).symbol, tuple(passed), INT32)


def trampoline(number: int, signature: str, symbol: str, types: list[str]) -> str:
    """The function of C that a call goes to: it collects what it is given and hands it on."""
    params = ", ".join(f"{kind} x{i}" for i, kind in enumerate(types)) or "void"
    values, sizes = [], []
    for kind, first, count in _places(json.loads(signature)[1]):
        values.append(f"&x{first}" if kind == "number" else f"(void *)x{first}")
        sizes += [f"x{first + 1 + i}" for i in range(count)]
    return (
        f"static int {symbol}({params}) {{\n"
        f"  void *values[] = {{{', '.join(values) or 0}}};\n"
        f"  long sizes[] = {{{', '.join(sizes) or 0}}};\n"
        f"  return compass_packed({number}, values, sizes);\n}}"
    )


def _places(arguments: list[dict[str, Any]]) -> Iterator[tuple[str, int, int]]:
    """Of each argument that is passed: its kind, the place of its value, and how many sizes follow it."""
    place = 0
    for argument in arguments:
        if "plain" not in argument:
            kind = next(k for k in ("array", "handle", "number") if k in argument)
            count = int(argument.get("ndim", 0))
            yield kind, place, count
            place += 1 + count
