"""Tensors, operations and schedules as text: pickled, and read back where it names classes of these alone."""

from __future__ import annotations

import base64
import hashlib
import io
import pickle
import pickletools

from compass_core.errors import CompassError, UsageError

from ..ir.exprs import Expr
from ..ir.iter_vars import IterVar, Range
from ..ir.node import restored
from ..ir.tensor_exprs import CommReducer, ProducerLoad, Reduce
from ..ir.visit import walk_exprs
from ..te.schedule import Schedule
from ..te.schedule.stage import Stage
from ..te.tensor import Operation, Tensor

_SAVED = (Tensor, Operation, Schedule, Stage, IterVar, Range, CommReducer)
_HOMES = tuple(
    f"compassc.{name}"
    for name in """ir.dtypes ir.exprs ir.iter_vars ir.node ir.stmts ir.tensor_exprs te.hybrid.op te.opaque te.schedule.annotation
    te.schedule.record te.schedule.relations te.schedule.schedule te.schedule.stage te.schedule.trace te.tensor te.tensor_calls""".split()
)
"""The modules whose classes saved tensors are made of."""

_SEAL = 32
_DAMAGED = (
    pickle.UnpicklingError, EOFError, ValueError, IndexError, KeyError, AttributeError, TypeError, OverflowError, MemoryError,
    ImportError, RecursionError, AssertionError, CompassError,
)  # fmt: skip
"""What reading raises where a text was changed: the reader's own errors, and those of the classes that get what they never had."""


def is_of_tensors(given: object) -> bool:
    """Whether something is made of tensors: it is saved as a whole, for axes are shared between its parts."""
    if isinstance(given, (list, tuple)):
        return any(map(is_of_tensors, given))
    if isinstance(given, dict):
        return any(map(is_of_tensors, given.values()))
    if isinstance(given, Expr):
        return any(isinstance(e, (ProducerLoad, Reduce)) for e in walk_exprs(given))
    return isinstance(given, _SAVED)


def packed(given: object) -> str:
    """The text of what tensors are in. UsageError where a part is a function of Python."""
    try:
        return sealed(pickle.dumps(given))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"a {type(given).__name__} with parts of Python cannot be saved: {error}", code="compat-name"
        ) from None


def sealed(data: bytes) -> str:
    """The text of pickled data, with a sum by which it is known whether it was changed."""
    return base64.b64encode(hashlib.sha256(data).digest() + data).decode()


def unpacked(text: str) -> object:
    """What `packed` wrote. UsageError for text that was changed, and for one that names anything else, of which nothing is called."""
    try:
        whole = base64.b64decode(text, validate=True)
        seal, data = whole[:_SEAL], whole[_SEAL:]
        if hashlib.sha256(data).digest() != seal:
            raise pickle.UnpicklingError("the text was changed")
        _check_sizes(data)
        return _Reader(io.BytesIO(data)).load()
    except _DAMAGED as error:
        raise UsageError(f"these are no saved tensors: {error}", code="compat-name") from None


def _check_sizes(data: bytes) -> None:
    """UnpicklingError where a text asks for more memory than it has itself: for buffers, or for a place far out in the memo."""
    for op, argument, _ in pickletools.genops(data):
        far = op.name in ("PUT", "BINPUT", "LONG_BINPUT") and isinstance(argument, int) and argument > len(data)
        if far or "BUFFER" in op.name or op.name == "BYTEARRAY8":
            raise pickle.UnpicklingError(f"it has {op.name} {argument!s:.20}")


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        found = super().find_class(module, name) if module in _HOMES and "." not in name else None
        if not (isinstance(found, type) and found.__module__ == module or found is restored):
            raise pickle.UnpicklingError(f"'{module}.{name}' is no part of a tensor")
        return found
