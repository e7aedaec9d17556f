"""The script module `S`: what kernel authors write kernels with.

`from compassc.dsl import script as S`. Operations, data type names and decorators are looked up on first use, so that
importing this module costs nothing.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import services

if TYPE_CHECKING:
    from compassc.language.specs import DTypeName

OTHER_CALLS = {
    "prim_func": "compassc.dsl.decorators",
    "macro": "compassc.dsl.decorators",
    "ptr": "compassc.language.specs",
    **dict.fromkeys(
        "grid vectorized unroll tec_range pipelined meta_var alloc alloc_buffer alloc_const match_buffer block".split(),
        "compassc.language.api",
    ),
    **dict.fromkeys(
        "tile_load tile_store tile_full tile_index tile_sum tile_max tile_min tile_dot tile_where parallel_tiles".split(),
        "compassc.language.tiles.api",
    ),
}

_INT_VECTORS = "i8x32 i16x16 i16x32 i32x8 i32x16 i32x32"
_PREDEFINED = (
    "i8 i16 i32 u8 u16 u32 fp16 bf16 fp32 bool "
    + f"{_INT_VECTORS} {_INT_VECTORS.replace('i', 'u')} fp16x16 fp16x32 fp32x8 fp32x16 bf16x16 boolx8 boolx16 boolx32"
)
_FULL = {"i": "int", "u": "uint", "fp": "float", "bf": "bfloat"}
_NAMES = frozenset(_PREDEFINED.split()) | frozenset(
    re.sub(r"^(i|u|fp|bf)(?=\d)", lambda m: _FULL[m.group()], name) for name in _PREDEFINED.split()
)
_ANY_LANES = re.compile(r"(?:i|u|int|uint)(?:8|16|32)x[1-9]\d*|(?:fp|float)(?:16|32)x[1-9]\d*|boolx[1-9]\d*")


def _dtype_name(name: str) -> DTypeName | None:
    """The data type name `name` (`i32x8`, `size_int32`, `boolx5`, ...); None when it is none."""
    plain = name[5:] if name.startswith("size_i") else name
    if plain not in _NAMES and not _ANY_LANES.fullmatch(plain):
        return None
    from ..ir.dtypes import dtype
    from ..language.specs import DTypeName

    return DTypeName(dtype(plain), plain is not name)


def _operation(name: str) -> Callable[..., object] | None:
    """The function of the operation `name`; None when there is none that kernels can call."""
    if name.startswith("_"):
        return None
    from ..ops import load

    op = load().get(name)
    if op is None or not op.public:
        return None
    from ..language.dispatch import op_api

    return op_api(op)


def operation_names() -> list[str]:
    """The operations that kernels can call."""
    from ..ops import load

    return [op.name for op in load().values() if op.public]


def __getattr__(name: str) -> object:
    if name == "autotune":
        value = services.autotune.function()
    elif name in OTHER_CALLS:
        value = getattr(importlib.import_module(OTHER_CALLS[name]), name)
    elif name == "axis":
        value = importlib.import_module("compassc.language.axis")
    else:
        value = _dtype_name(name) or _operation(name)
        if value is None:
            raise AttributeError(f"S has no {name!r}") if name[:2] == "__" == name[-2:] else _unknown(name)
    globals()[name] = value
    return value


class _NoOperation(AttributeError):
    """A name that `S` has not; `help` is what to write instead."""

    help = ""


def _unknown(name: str) -> AttributeError:
    import difflib

    from ..language.advice import advice

    known = __dir__()
    close = [name[1:]] if name[1:] in known else difflib.get_close_matches(name, known, 1)
    instead = advice(name)
    error = _NoOperation(f"S has no {name!r}" + (f"; did you mean S.{close[0]}?" if close and not instead else ""))
    error.help = instead
    return error


def dtype_names() -> list[str]:
    """The data type names that completion shows; vectors of other lane counts have a name too."""
    return sorted([*_NAMES, *(f"size_{name}" for name in _NAMES if name.startswith("i"))])


def __dir__() -> list[str]:
    return sorted(["autotune", "axis", *OTHER_CALLS, *operation_names(), *dtype_names()])
