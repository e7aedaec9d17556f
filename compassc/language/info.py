"""Queries about a target and about a kernel's parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from compass_core import targets
from compass_core.dataclass import dataclass
from compass_core.errors import ArgumentError, UsageError

from ..ir.dtypes import DataType, dtype
from ..settings.options import canonical_target

SPILL_BYTES = 4096
"""Bytes that register spilling reserves in the second piece of local SRAM, where there is one."""
_current: ContextVar[str | None] = ContextVar("target", default=None)


class RangeError(UsageError, IndexError):
    """An index outside its range."""


@dataclass(frozen=True)
class CompassInfo:
    """One NPU configuration: cores, TECs of a core, and SRAM in pieces (sizes in bytes)."""

    name: str
    core_count: int
    tec_count: int
    lsram_size_per_piece: int
    gsram_size_per_piece: int
    lsram_piece_count: int = 1
    gsram_piece_count: int = 1

    @classmethod
    def get(cls, target: object) -> CompassInfo:
        """The configuration of a target; UsageError naming the valid ones when there is none."""
        found = targets.load(canonical_target(target))
        return cls(found.name, found.cores, found.tecs, found.lsram_bytes, found.gsram_bytes)

    @classmethod
    def current(cls, allow_none: bool = True) -> CompassInfo | None:
        """The configuration that a kernel is being built for; None, or a UsageError, outside a build."""
        name = _current.get()
        if name is not None:
            return cls.get(name)
        if allow_none:
            return None
        raise UsageError("no kernel is being built: there is no current target", code="no-target")

    @property
    def version(self) -> str:
        return self.name.partition("_")[0]

    @property
    def vector_width(self) -> int:
        """Bits of a vector register."""
        return targets.load(self.name).vector_bits

    def lsram_size(self, piece_idx: int = 0) -> int:
        """Bytes of a piece of a TEC's local SRAM."""
        _check_piece("lsram", piece_idx, self.lsram_piece_count)
        return self.lsram_size_per_piece - (SPILL_BYTES if piece_idx else 0)

    def gsram_size(self, piece_idx: int = 0) -> int:
        """Bytes of a piece of a core's shared SRAM."""
        _check_piece("gsram", piece_idx, self.gsram_piece_count)
        return self.gsram_size_per_piece


def _check_piece(what: str, index: int, count: int) -> None:
    if not 0 <= index < count:
        raise RangeError(f"{what} piece {index} does not exist; valid: 0 to {count - 1}", code="sram-piece")


@contextmanager
def current_target(name: str) -> Iterator[None]:
    """Makes a target the current one of this thread."""
    token = _current.set(name)
    try:
        yield
    finally:
        _current.reset(token)


@dataclass(frozen=True)
class ParamInfo:
    """A kernel parameter: its pointee or scalar dtype, its category, and its number among inputs or outputs."""

    name: str
    dtype: DataType
    category: str
    tensor_idx: int | None = None

    @property
    def is_input_tensor(self) -> bool:
        return self.category == "input_tensor"

    @property
    def is_output_tensor(self) -> bool:
        return self.category == "output_tensor"

    @property
    def is_const_tensor(self) -> bool:
        return self.category == "const_tensor"

    @property
    def is_descriptor(self) -> bool:
        return self.category == "descriptor"

    @property
    def is_attr(self) -> bool:
        return self.category == "attr"

    @property
    def is_tensor(self) -> bool:
        return self.category.endswith("_tensor")


_CATEGORIES = {"input": "input_tensor", "output": "output_tensor", "const": "const_tensor"}


def param_info(param: Mapping[str, Any]) -> ParamInfo:
    """A parameter of NAME.params.json."""
    role = param["role"]
    index = param.get("index") if role in ("input", "output") else None
    return ParamInfo(param["name"], dtype(param["dtype"]), _CATEGORIES.get(role, role), index)


def resolve_dtype_alias(name: object) -> DataType:
    """The data type of a name, short (`i8x32`) or full, of a NumPy dtype or scalar type, or of a type name of `S`; data
    types pass through. UsageError for anything else."""
    kind = getattr(name, "dtype", name)
    try:
        return dtype(kind if isinstance(kind, DataType) else name)
    except (TypeError, ValueError):  # what cannot be hashed is no type either
        raise UsageError(f"{name!r} is not a data type", code="dtype") from None


def hw_native_vdtype(name: object) -> DataType:
    """The native vector of an element type: as many lanes as fill 256 bits. ArgumentError for bool and void."""
    element = resolve_dtype_alias(name).element_of
    if element.is_bool or element.is_void or element.bits not in (8, 16, 32):
        raise ArgumentError(
            f"there is no native vector of {element}",
            code="dtype",
            help="native vectors have elements of 8, 16 or 32 bits",
        )
    return element.with_lanes(256 // element.bits)
