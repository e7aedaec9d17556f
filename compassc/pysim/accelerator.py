"""The AIFF in PySim: the simulator's model of it, on the arrays that descriptors refer to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compass_core.errors import CompassError
from compassc.ops.misc import DESCRIPTORS

from .descriptors import PyDescPointer
from .memory import pointer_of


def prepare(name: str, pointers: Sequence[Any]) -> Callable[[], None]:
    """What `S.<name>` starts on three chains, whose words are read now; the result does it.

    CompassError when a pointer is at no chain, or when the model refuses what the registers ask for.
    """
    from compass_sim import aiff

    chains = [_chain(name, part, pointer) for part, pointer in zip(DESCRIPTORS, pointers, strict=True)]
    memory = aiff.DeviceMemory()
    addresses = [memory.place(words_of(chain, memory)) for chain in chains]
    generation = chains[0].generation
    aiff.run(memory, generation, addresses, executes=False)
    return lambda: aiff.run(memory, generation, addresses)


def _chain(name: str, part: str, pointer: Any) -> Any:
    if isinstance(pointer, PyDescPointer):
        return pointer.get_current_desc_chain()
    pointer_of(pointer, f"S.{name}: {part}")
    raise CompassError(
        f"S.{name}: {part} points to plain memory, where PySim has no device addresses",
        code="descriptor",
        help="pass the chains of Aiff.gen_descriptor() to the kernel",
    )


def words_of(chain: Any, memory: Any) -> np.ndarray[Any, Any]:
    """The words of a chain, uint32, with device addresses in the places of arrays, which `memory` gets."""
    outputs = {id(array) for array in chain.outputs}
    words = np.zeros(chain.count_of_u32, np.uint32)
    for i in range(words.size):
        word = chain[i]
        words[i] = _address(word, memory, outputs) if isinstance(word, np.ndarray) else int(word) & 0xFFFFFFFF
    return words


def _address(word: np.ndarray[Any, Any], memory: Any, outputs: set[int]) -> int:
    """The device address of an array, or of a part of one."""
    owner = word
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    if id(owner) in outputs and not owner.flags.writeable:
        raise CompassError("the AIFF writes an array that is read-only", code="read-only", help="pass a copy of it")
    first = owner.__array_interface__["data"][0]
    flat = owner if owner.flags.c_contiguous else owner.T
    return int(memory.place(flat)) + int(word.__array_interface__["data"][0]) - int(first)
