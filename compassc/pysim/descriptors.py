"""Pointers to AIFF descriptors: words of chains, counted through all chains of an array."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.ir.dtypes import DataType
from compassc.ops.typing import type_error

from ..language.dispatch import LOCAL
from .memory import OutOfBounds, PyPointer, Storage, index_of
from .values import PyVar, Scalar, pyvar


class Chain(Protocol):
    """A descriptor chain: its 32-bit words, of which address fields are arrays."""

    generation: str
    """The target's, which says what the words mean."""

    @property
    def count_of_u32(self) -> int: ...
    @property
    def outputs(self) -> list[Array]: ...
    def __getitem__(self, index: int) -> int | Array: ...
    def __setitem__(self, index: int, word: int | Array) -> None: ...
    def copy(self) -> Chain: ...


def chains_of(x: object) -> tuple[Chain, ...] | None:
    """The chains of a descriptor array; None for anything else."""
    if isinstance(x, (np.ndarray, str, bytes)) or not isinstance(x, Iterable):
        return None
    items = tuple(x)
    return items if items and all(hasattr(item, "count_of_u32") for item in items) else None


class PyDescPointer:
    """An address in descriptors; `offset` counts words from the first chain on."""

    __slots__ = ("chains", "dtype", "offset", "scope")
    is_nullptr = False

    def __init__(self, chains: tuple[Chain, ...], dtype: DataType, scope: str, offset: int = 0) -> None:
        self.chains = chains
        self.dtype = dtype
        self.scope = scope
        self.offset = offset

    def __repr__(self) -> str:
        return f"{self.scope} {self.dtype}*({len(self.chains)} descriptor chains + {self.offset} words)"

    def __add__(self, n: object) -> PyDescPointer:
        return PyDescPointer(self.chains, self.dtype, self.scope, self.offset + index_of(n, "a pointer step"))

    __radd__ = __add__

    def __sub__(self, n: object) -> PyDescPointer:
        return self + -index_of(n, "a pointer step")

    def _place(self, index: object) -> tuple[Chain, int]:
        if isinstance(index, (slice, tuple)):
            raise type_error("a descriptor pointer takes one index", "index it with a number of words")
        item = index_of(index)
        at = item + self.offset
        total = sum(chain.count_of_u32 for chain in self.chains)
        if item < 0 or not 0 <= at < total:
            raise CompassError(
                f"word {item} behind a descriptor pointer at word {self.offset}: there are {total} words",
                code="bounds",
                help="words count through all chains of the array",
            )
        for chain in self.chains:
            if at < chain.count_of_u32:
                return chain, at
            at -= chain.count_of_u32
        raise AssertionError("the words of the chains add up")

    def __getitem__(self, index: object) -> PyPointer | Scalar:
        chain, at = self._place(index)
        word = chain[at]
        if isinstance(word, np.ndarray):
            data = word.reshape(-1).view(np.uint8)
            storage = Storage(data, "an array of a descriptor")
            if LOCAL.tec is not None:
                LOCAL.tec.session.watched(storage, False, True)
            return PyPointer(storage, 0, self.dtype, "global")
        return pyvar(int(word), self.dtype)

    def __setitem__(self, index: object, value: object) -> None:
        chain, at = self._place(index)
        if isinstance(value, PyPointer):
            if value.storage is None:
                raise CompassError(
                    "a null pointer is written to a descriptor", code="null", help="give the address of an array"
                )
            chain[at] = value.storage.data[value.offset :]
        elif isinstance(value, PyVar):
            chain[at] = int(value) & 0xFFFFFFFF
        else:
            chain[at] = index_of(value, "a word of a descriptor") & 0xFFFFFFFF

    def get_current_desc_chain(self) -> Chain:
        """The chain that begins exactly here."""
        at = 0
        for chain in self.chains:
            if at == self.offset:
                return chain
            at += chain.count_of_u32
        if self.offset >= at:
            raise OutOfBounds(
                f"word {self.offset} is behind the last descriptor chain",
                code="bounds",
                help="words count through all chains of the array",
            )
        raise CompassError(
            f"no descriptor chain begins at word {self.offset}",
            code="descriptor",
            help="move the pointer by whole chains",
        )
