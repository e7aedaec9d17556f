"""Other expressions of operators than their definitions, which some kinds of targets compute faster."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from compass_core.dataclass import dataclass
from compassc.operators.declare import Operator
from compassc.te.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Tensor])
HOSTS = frozenset(("llvm", "c"))


@dataclass(frozen=True)
class Implementation:
    """An expression of an operator for some kinds of targets. `define` is called as the operator is, and `applies` says of the
    same operands and attributes whether it is worth it. Of those that apply the one of the highest priority is taken, of
    equals the first."""

    name: str
    kinds: Collection[str]
    applies: Callable[..., bool]
    define: Callable[..., Tensor]
    priority: int = 10


IMPLEMENTATIONS: dict[str, list[Implementation]] = {}
"""By the names of operators."""
_kind: ContextVar[str] = ContextVar("kind", default="")


def implementation(
    operator: str, kinds: Collection[str], applies: Callable[..., bool], priority: int = 10
) -> Callable[[F], F]:
    """Declares the decorated function as an implementation of an operator."""

    def register(define: F) -> F:
        made = Implementation(define.__name__, kinds, applies, define, priority)
        IMPLEMENTATIONS.setdefault(operator, []).append(made)
        return define

    return register


@contextmanager
def implementations_for(kind: str) -> Iterator[None]:
    """Within, expressions of operators are those for a kind of target; outside they are the definitions."""
    token = _kind.set(kind)
    try:
        yield
    finally:
        _kind.reset(token)


def definition(operator: Operator, *operands: object, **attributes: object) -> Callable[..., Tensor]:
    """What expresses an operator of operands for the kind of target that expressions are made for."""
    kind = _kind.get()
    found = [
        i for i in IMPLEMENTATIONS.get(operator.name, ()) if kind in i.kinds and i.applies(*operands, **attributes)
    ]
    return max(found, key=lambda i: i.priority).define if found else operator.define
