"""Kernels that take AIFF descriptors: the arrays their chains refer to, as further tensors, and the words in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.aipubin.dtypes import element_dtype
from compass_core.arrays import Array, base_of
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError

from ..gbuilder.dsl_files import DescriptorWord
from .aiff import DescChainArray
from .aiff.chain import CONTROL_CHAIN, DescChain, Word
from .aiff.encode import LENGTH, NEXT_LENGTH

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import ParamFields

NEXT_ADDRESS = 1
"""The word of a control descriptor that holds the address of the one behind it."""


@dataclass
class ExpandedCall:
    """A call with descriptors: the parameters with those that chains add, the arrays in their order (without the
    descriptors), and the words of each descriptor parameter."""

    params: list[ParamFields]
    args: list[Any]
    words: dict[str, list[DescriptorWord]]


def expand(kernel: str, params: Sequence[ParamFields], args: Sequence[Any]) -> ExpandedCall:
    """A call with its descriptor chains expanded to arrays. CompassError when a chain uses an argument in a
    way its parameter does not allow."""
    known = [param.copy() for param in params]
    given = list(args)
    for param, arg in zip(params, args, strict=True):
        if isinstance(arg, np.ndarray) and not arg.flags.c_contiguous:
            raise CompassError(
                f"{kernel}: the array of '{param['name']}' is not C-contiguous, so that descriptors cannot "
                "refer to parts of it",
                code="not-contiguous",
                help="pass numpy.ascontiguousarray(array)",
            )
    for param, chains in zip(params, args, strict=True):
        if param["role"] == "descriptor":
            _add_arrays(kernel, param["name"], chains, known, given)
    _number(known)
    words: dict[str, list[DescriptorWord]] = {}
    start = 0
    for param, chains in zip(params, args, strict=True):
        if param["role"] == "descriptor":
            words[param["name"]] = _words(kernel, chains, start, known, given)
            start += chains.nbytes
    kept = [arg for param, arg in zip(known, given, strict=True) if param["role"] != "descriptor"]
    for param, arg in zip(known, given, strict=True):
        if isinstance(arg, np.ndarray) and param["role"] in ("input", "output", "const"):
            param["shape"] = _shape(param, arg)
    return ExpandedCall(known, kept, words)


def _shape(param: ParamFields, array: Array) -> list[int]:
    element = element_dtype(param["dtype"])
    return list(array.shape) if array.dtype.name == element.name else [array.nbytes // element.size]


def _index_of(array: Array, args: Sequence[object]) -> int | None:
    """The argument that is the array, or a part of it."""
    found = (i for i, arg in enumerate(args) if isinstance(arg, np.ndarray) and base_of(arg) is array)
    return next(found, None)


def _add_arrays(kernel: str, name: str, chains: DescChainArray, known: list[ParamFields], given: list[object]) -> None:
    """Appends the arrays that are no arguments; an argument that a chain writes becomes an output."""
    for role, short, attribute in (
        ("input", "in", "inputs"),
        ("const", "const", "constants"),
        ("output", "out", "outputs"),
    ):
        count = 0
        for array in (a for chain in chains for a in getattr(chain, attribute)):
            at = _index_of(array, given)
            if at is None:
                scope = "global.1" if role == "const" else "global"
                known.append(
                    {
                        "name": f"{name}_{short}{count}",
                        "kind": "pointer",
                        "dtype": array.dtype.name,
                        "role": role,
                        "scope": scope,
                        "index": 0,
                        "read": False,
                        "shape": None,
                    }
                )
                given.append(array)
                count += 1
            elif role == "output":
                known[at].update({"role": "output", "read": known[at]["read"] or known[at]["role"] == "input"})
            elif role == "const" and known[at]["role"] != "const":
                raise CompassError(
                    f"{kernel}: a chain of '{name}' uses '{known[at]['name']}' as a constant, but its "
                    "scope is not global.1",
                    code="descriptor",
                )


def _number(params: list[ParamFields]) -> None:
    """Numbers inputs, outputs and constants anew, in order."""
    counts: dict[str, int] = {}
    for param in params:
        if param["kind"] == "pointer":
            param["index"] = counts.get(param["role"], 0)
            counts[param["role"]] = param["index"] + 1


def _words(
    kernel: str, chains: DescChainArray, start: int, known: Sequence[ParamFields], given: Sequence[object]
) -> list[DescriptorWord]:
    """The words of one descriptor argument, which begins `start` bytes behind the descriptors' base."""
    words: list[DescriptorWord] = []
    for chain in chains:
        for descriptor in chain:
            end = start + 4 * (len(words) + len(descriptor))
            words += [_word(kernel, word, known, given) for word in descriptor]
            if _links(chain, descriptor):
                words[len(words) - len(descriptor) + NEXT_ADDRESS] = ("descriptor", 0, end)
    return words


def _links(chain: DescChain, descriptor: Sequence[object]) -> bool:
    return chain.kind == CONTROL_CHAIN and bool(descriptor[LENGTH]) and bool(descriptor[NEXT_LENGTH])


def _word(kernel: str, word: Word, known: Sequence[ParamFields], given: Sequence[object]) -> DescriptorWord:
    if not isinstance(word, np.ndarray):
        return int(word)
    at = _index_of(base_of(word), given)
    assert at is not None, "every array of a chain is an argument by now"
    placed = given[at]
    assert isinstance(placed, np.ndarray)
    offset = word.__array_interface__["data"][0] - placed.__array_interface__["data"][0]
    if not 0 <= offset < placed.nbytes:
        raise CompassError(
            f"{kernel}: a chain refers to a part of the array of '{known[at]['name']}' that is not passed",
            code="descriptor",
            help="pass the whole array",
        )
    return known[at]["role"], known[at]["index"] if known[at]["role"] != "const" else known[at]["name"], offset
