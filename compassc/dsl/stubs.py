"""The stub of the script module `S` for editors and type checkers, `script.pyi`, from the declarations.

`S` looks its names up when they are asked for, so that importing it costs nothing; a checker sees none of them. The stub
has each with its signature, types and documentation: operations from `compassc.ops`, data type names and the other calls
from the script module.
"""

from __future__ import annotations

import inspect
import textwrap
from importlib import import_module
from inspect import Parameter
from pathlib import Path
from typing import Any

from compass_core import files

from ..ops import docs
from ..ops.core import Op

SCRIPT: Any = import_module(f"{__package__}.script")
"""The module itself; checkers know it by the stub alone."""
PATH = Path(__file__).parent / "script.pyi"
WIDTH = 120

HEAD = '''\
"""{doc}"""

# Written by `make docs` from the declarations of the operations, for editors and type checkers.

from builtins import bool as _bool
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from typing_extensions import Self

from compass_core.arrays import Array

from ..ir.dtypes import DataType
from ..language import axis as axis
from ..tuning.kernels import autotune as autotune
from .decorators import macro as macro
from .decorators import prim_func as prim_func

_T = TypeVar("_T")

class Value(int):
    """A run-time value of a kernel: a scalar, a vector, a mask or a tile."""

    # A number to checkers, for a variable that starts as 0 may be assigned one.
    def __new__(cls, value: Lanes) -> Self: ...
    @property
    def dtype(self) -> DataType:
        """The type of the value."""
    @property
    def addr(self) -> Pointer:
        """The address of a variable."""
    def __getitem__(self, lane: object) -> Any: ...
    def __setitem__(self, lane: object, value: Operand) -> None: ...
{operators}

class Pointer:
    """An address in a kernel. `p + i` is the address of `p[i]`."""

    @property
    def dtype(self) -> DataType:
        """The type pointed to."""
    @property
    def scope(self) -> str:
        """The memory pointed to."""
    @property
    def is_nullptr(self) -> Value:
        """Whether the host passed None."""
    def as_ptr(self, dtype: Dtype) -> Pointer:
        """The same address as a pointer to another type."""
    def addr_of(self, index: object = 0) -> Pointer:
        """The address of an element: `p + index`."""
    def __getitem__(self, index: object) -> Any: ...
    def __setitem__(self, index: object, value: Operand) -> None: ...
    def __add__(self, elements: Operand) -> Pointer: ...
    def __radd__(self, elements: Operand) -> Pointer: ...
    def __sub__(self, elements: Operand) -> Pointer: ...

class Buffer:
    """Memory with a shape: `b[i, j]` is an element."""

    @property
    def dtype(self) -> DataType:
        """The type of an element."""
    @property
    def scope(self) -> str:
        """The memory it lies in."""
    @property
    def shape(self) -> tuple[Value, ...]:
        """The elements of each dimension."""
    def addr_of(self, index: object) -> Pointer:
        """The address of an element."""
    def __getitem__(self, index: object) -> Any: ...
    def __setitem__(self, index: object, value: Operand) -> None: ...
    def __add__(self, elements: Operand) -> Pointer: ...

Operand: TypeAlias = Value | float | np.generic
Address: TypeAlias = Pointer | Buffer
Mask: TypeAlias = Value | str | Sequence[_bool] | Array | None
Dtype: TypeAlias = str | type[Any] | np.dtype[Any] | DataType
Lanes: TypeAlias = Operand | Sequence[Operand] | str
Event: TypeAlias = Value
'''

ARITHMETIC = "add sub mul truediv floordiv mod and or xor lshift rshift"
COMPARISONS = "eq ne lt le gt ge"

PART = 'Literal["all", "low", "high", "even", "odd"]'
TYPES = {
    "only_read": "_bool",
    "saturate": "_bool",
    "out_sign": 'Literal["s", "u"] | None',
    "r": "Operand | None",
    "with_round": "_bool",
    "to_h": "_bool",
    "return_idx": "_bool",
    "part": PART,
    "mask": "Mask",
    "lanes": "int | None",
    "dtype": "Dtype",
    "event": "Event | None",
    "events": "Event",
    "invalidate": "_bool",
    **dict.fromkeys(("ptr", "acc_ptr", "dst", "src"), "Address"),
    **dict.fromkeys(("fmt", "template"), "str"),
    **dict.fromkeys(("outputs", "inputs", "clobbers", "qualifiers"), "object"),
    **dict.fromkeys(("ctrl_desc", "param_desc", "act_desc"), "object"),
    **dict.fromkeys(
        "x y acc shift exponent min_val max_val value index indices width stride src_stride dst_stride times row col "
        "h_scale w_scale c w src_c_stride dst_c_stride dst_w_stride num n start expected cond".split(),
        "Operand",
    ),
}
"""The type of a parameter by its name, in every operation; those that may be left out take None where that is the default."""

CALLS = {
    "ptr": ('dtype: Dtype, scope: str = "private"', "type[Pointer]"),
    "grid": ("*extents: Operand", "Iterator[Any]"),
    "vectorized": ("start: Operand, stop: Operand | None = None", "Iterator[Value]"),
    "unroll": ("start: Operand, stop: Operand | None = None, step: Operand = 1", "Iterator[Value]"),
    "tec_range": ("start: Operand, stop: Operand | None = None", "Iterator[Value]"),
    "pipelined": (
        "start: Operand, stop: Operand | None = None, step: Operand | None = None, *, stages: int = 2",
        "Iterator[Value]",
    ),
    "parallel_tiles": ("*counts: Operand, stages: int = 1", "Iterator[Any]"),
    "tile_load": (
        "tensor: Buffer, offsets: Operand | Sequence[Operand], shape: int | Sequence[int], fill: float = 0",
        "Value",
    ),
    "tile_store": ("tensor: Buffer, offsets: Operand | Sequence[Operand], tile: Value", "None"),
    "tile_full": ("shape: int | Sequence[int], value: Operand, dtype: Dtype", "Value"),
    "tile_index": ("shape: int | Sequence[int], axis: int = -1", "Value"),
    "tile_sum": ("tile: Value, axis: int = -1", "Value"),
    "tile_max": ("tile: Value, axis: int = -1", "Value"),
    "tile_min": ("tile: Value, axis: int = -1", "Value"),
    "tile_dot": ("a: Value, b: Value, acc: Value | None = None, transpose_b: _bool = False", "Value"),
    "tile_where": ("condition: Value, x: Operand, y: Operand", "Value"),
    "meta_var": ("value: _T", "_T"),
    "alloc": ('shape: int | Sequence[int], dtype: Dtype, scope: str = "private"', "Pointer"),
    "alloc_buffer": ('shape: int | Sequence[int], dtype: Dtype, scope: str = "private"', "Buffer"),
    "alloc_const": ("shape: int | Sequence[int], dtype: Dtype, data: object", "Buffer"),
    "match_buffer": ("pointer: Address, shape: object", "Buffer"),
    "block": ('name: str = "", no_realize: _bool = False', "AbstractContextManager[object]"),
}
"""The other calls: parameters and result, as a kernel sees them."""


def parameter_type(op: Op, parameter: Parameter) -> str:
    """The type of a parameter. KeyError when nothing is said about its name."""
    kind = op.types.get(parameter.name) or TYPES[parameter.name]
    return f"{kind} | None" if parameter.default is None and kind == "Operand" else kind


def result_type(op: Op) -> str:
    return op.returns or ("Value" if op.effect in ("pure", "read") else "None")


def parameters_text(op: Op) -> list[str]:
    """The parameters of an operation with types and defaults."""
    stars: dict[object, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}
    found = []
    for p in op.signature.parameters.values():
        default = f'"{p.default}"' if isinstance(p.default, str) else repr(p.default)
        ending = "" if p.default is p.empty else f" = {default}"
        found.append(f"{stars.get(p.kind, '')}{p.name}: {parameter_type(op, p)}{ending}")
    return found


def function_text(name: str, parameters: list[str], result: str, doc: str) -> str:
    """A function of the stub."""
    head = f"def {name}({', '.join(parameters)}) -> {result}:"
    if len(head) > WIDTH:
        head = f"def {name}(\n" + "".join(f"    {p},\n" for p in parameters) + f") -> {result}:"
    return f"{head}\n{textwrap.indent(docstring(doc), '    ')}\n"


def docstring(text: str) -> str:
    quoted = text.strip().replace("\\", "\\\\").replace('"""', "'''")
    end = "\n" if "\n" in quoted or quoted.endswith('"') else ""
    return f'"""{quoted}{end}"""'


def operation_text(op: Op) -> str:
    """An operation of the stub, with what the pages say of its options."""
    options = [f"`{name}`: {text}" for name, text in docs.arguments(op).items()]
    return function_text(op.name, parameters_text(op), result_type(op), "\n\n".join([op.doc, *options]))


def call_text(name: str) -> str:
    """The stub of a script function that is not an operation."""
    module = import_module(SCRIPT.OTHER_CALLS[name])
    parameters, result = CALLS[name]
    return function_text(name, parameters.split(", "), result, inspect.getdoc(getattr(module, name)) or "")


def operators_text() -> str:
    """The operators of a value. What compares is Any, for a variable that starts as False may be assigned one."""
    binary = [f"{way}{name}" for name in ARITHMETIC.split() for way in ("", "r")]
    lines = [f"def __{name}__(self, other: object) -> Value: ..." for name in binary]
    lines += [f"def __{name}__(self, other: object) -> Any: ..." for name in COMPARISONS.split()]
    lines += [f"def __{name}__(self) -> Value: ..." for name in ("neg", "invert")]
    return textwrap.indent("\n".join(lines), "    ")


def dtype_text(name: str) -> str:
    """A data type name. Bools and floats are Python's: a kernel takes and returns them as such. `/` of integers is one."""
    found = getattr(SCRIPT, name).dtype
    kind = "Value" if found.is_vector or found.is_integer else "_bool" if found.is_bool else "float"
    return f"{name}: TypeAlias = {kind}\n"


def text() -> str:
    """The stub."""
    parts = [HEAD.format(doc=(SCRIPT.__doc__ or "").strip(), operators=operators_text())]
    parts += ["".join(dtype_text(name) for name in SCRIPT.dtype_names())]
    parts += [call_text(name) for name in CALLS]
    parts += [operation_text(op) for op in docs.documented()]
    return "\n".join(parts)


def write() -> Path:
    """Write the stub beside the script module."""
    files.write(PATH, text())
    return PATH


if __name__ == "__main__":
    write()
