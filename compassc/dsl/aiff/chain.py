"""Descriptors: lists of 32-bit words that tell the AIFF what to do; chains of them; and arrays of chains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import overload

import numpy as np

from compass_core.aiff.registers import AiffError
from compass_core.arrays import Array, base_of

Word = int | Array
"""A number, or an array whose address is written in its place."""
Descriptor = list[Word]
CONTROL_CHAIN, PARAMETER_CHAIN, ACTIVATION_CHAIN = "ctrl", "param", "act"
_OUTPUT_WORDS = {"X2": {16, 17, 40, 41, 42, 43}, "X3P": {16, 17, 19, 64, 65}, "X3S": {16, 17, 19, 64, 65}}
"""Words of an activation descriptor through which the AIFF writes."""


def same_word(a: Word, b: Word) -> bool:
    """Equal numbers, or the same address."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return base_of(a) is base_of(b) and a.__array_interface__["data"] == b.__array_interface__["data"]
    return not isinstance(a, np.ndarray) and not isinstance(b, np.ndarray) and a == b


class DescChain:
    """Descriptors of one kind (`ctrl`, `param`, `act`), one behind the other; words are also indexed through all."""

    def __init__(self, kind: str, generation: str, descriptors: Iterable[Descriptor] = ()) -> None:
        self.kind = kind
        self.generation = generation
        self.descriptors = list(descriptors)

    def copy(self) -> DescChain:
        """A copy of the chain with its own words; arrays are shared."""
        return DescChain(self.kind, self.generation, [list(descriptor) for descriptor in self.descriptors])

    def __iter__(self) -> Iterator[Descriptor]:
        return iter(self.descriptors)

    def __len__(self) -> int:
        return len(self.descriptors)

    @property
    def count_of_u32(self) -> int:
        """Words of all descriptors."""
        return sum(map(len, self.descriptors))

    def _place(self, index: int) -> tuple[Descriptor, int]:
        rest = index
        for descriptor in self.descriptors:
            if 0 <= rest < len(descriptor):
                return descriptor, rest
            rest -= len(descriptor)
        raise AiffError(f"the chain has {self.count_of_u32} words, there is no word {index}", code="aiff-chain")

    def __getitem__(self, index: int) -> Word:
        descriptor, at = self._place(index)
        return descriptor[at]

    def __setitem__(self, index: int, word: Word) -> None:
        descriptor, at = self._place(index)
        descriptor[at] = word

    def _arrays(self, written: bool) -> list[Array]:
        outputs = _OUTPUT_WORDS[self.generation]
        found: list[Array] = []
        for descriptor in self.descriptors:
            for i, word in enumerate(descriptor):
                if isinstance(word, np.ndarray) and (i in outputs) == written:
                    base = base_of(word)
                    if not any(base is other for other in found):
                        found.append(base)
        return found

    @property
    def inputs(self) -> list[Array]:
        """The arrays an activation chain reads, each once; of views their bases."""
        return self._arrays(False) if self.kind == ACTIVATION_CHAIN else []

    @property
    def outputs(self) -> list[Array]:
        """The arrays an activation chain writes."""
        return self._arrays(True) if self.kind == ACTIVATION_CHAIN else []

    @property
    def constants(self) -> list[Array]:
        """The arrays of a parameter chain."""
        if self.kind != PARAMETER_CHAIN:
            return []
        found = self._arrays(True)
        return found + [a for a in self._arrays(False) if not any(a is b for b in found)]


class DescChainArray:
    """Chains in the order they are to have in memory: `d.param + d.act + d.ctrl`."""

    def __init__(self, chains: Iterable[DescChain] = ()) -> None:
        self._chains = list(chains)

    def append(self, chain: DescChain) -> None:
        """Adds a chain at the end."""
        self._chains.append(chain)

    def __len__(self) -> int:
        return len(self._chains)

    def __iter__(self) -> Iterator[DescChain]:
        return iter(self._chains)

    @overload
    def __getitem__(self, index: int) -> DescChain: ...
    @overload
    def __getitem__(self, index: slice) -> DescChainArray: ...
    def __getitem__(self, index: int | slice) -> DescChain | DescChainArray:
        return DescChainArray(self._chains[index]) if isinstance(index, slice) else self._chains[index]

    def __add__(self, other: DescChainArray) -> DescChainArray:
        return DescChainArray([*self, *other])

    def _of(self, kind: str) -> DescChainArray:
        return DescChainArray(chain for chain in self._chains if chain.kind == kind)

    @property
    def ctrl(self) -> DescChainArray:
        return self._of(CONTROL_CHAIN)

    @property
    def param(self) -> DescChainArray:
        return self._of(PARAMETER_CHAIN)

    @property
    def act(self) -> DescChainArray:
        return self._of(ACTIVATION_CHAIN)

    @property
    def nbytes(self) -> int:
        return 4 * sum(chain.count_of_u32 for chain in self._chains)
