"""Nodes of a model that cannot be imported: collected while it is walked over, told at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError

Function = TypeVar("Function", bound=Callable[..., object])
CONTRADICTIONS = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)
"""What comes of inputs and attributes that no valid model has: a node that is refused, not a fault of the importer."""


def quietly(function: Function) -> Function:
    """A function that computes with numbers of a model, whatever they are: NumPy says nothing of overflows in them."""

    @wraps(function)
    def computed(*given: object, **named: object) -> Any:
        import numpy as np

        with np.errstate(all="ignore"):
            return function(*given, **named)

    return cast(Function, computed)


class Unknown:
    """What a node would have made that was refused."""


UNKNOWN = Unknown()


@dataclass(frozen=True)
class Refusal:
    """A node that cannot be imported. `tensors`: of the graph, whose content would have to be known."""

    node: str
    operator: str
    reason: str
    tensors: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.node} ({self.operator}): {self.reason}"


class RefusedModel(CompassError):
    """Nodes of a model cannot be imported. `refusals`: each of them; `inputs`: inputs of the model whose content would
    have to be known, and nothing else is wrong."""

    def __init__(
        self, path: str, refusals: Sequence[Refusal], inputs: Sequence[str] = (), *, code: str, listing: str = ""
    ) -> None:
        count = len(refusals)
        super().__init__(
            f"'{path}' cannot be imported: {count} node{'s' if count > 1 else ''} that {'are' if count > 1 else 'is'} "
            "not supported",
            code=code,
            notes=tuple(str(r) for r in refusals),
            help=f"`{listing}` lists what is supported" if listing else "",
        )
        self.refusals = tuple(refusals)
        self.inputs = tuple(inputs)
