"""The operators of Relay by name, and the table of what is declared about each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compass_core.errors.suggest import help_for
from compassc.ir.errors import ExpressionError
from compassc.operators.patterns import PatternKind
from compassc.relay.attributes import Attrs, Record
from compassc.relay.expr import Expr
from compassc.relay.types import Relation, Type
from compassc.te.tensor import Tensor

Reference = Callable[[Attrs | None, Sequence[np.ndarray[Any, Any]], Type], Any]
"""What an operator gives of arrays: (attributes, arguments, type of the result) -> array, or tuple of arrays. Arguments
that are tuples are tuples of arrays."""
Compute = Callable[[Attrs | None, Sequence[Tensor], Type], Sequence[Tensor]]
"""What an operator is as tensor expressions: (attributes, inputs, type of the result) -> results."""
ANY_NUMBER = -1
FIRST_LEVEL = 10


class NoOperator(ExpressionError, AttributeError):
    """A name that no operator has."""


@dataclass(frozen=True)
class Argument:
    """A tensor that an operator takes."""

    name: str
    description: str = ""


@dataclass(eq=False)
class Op(Expr):
    """An operator: one object per name. What is not declared here is an attribute by name (`get_attr`), with a level: the
    registration of the highest level holds."""

    name: str
    arguments: list[Argument] = field(default_factory=list)
    num_inputs: int = 0
    support_level: int = FIRST_LEVEL
    record: Record | None = None
    relation: Relation | None = None
    pattern: PatternKind | None = None
    compute: Compute | None = None
    reference: Reference | None = None
    attributes: dict[str, tuple[Any, int]] = field(default_factory=dict)
    description: str = ""

    __hash__ = Expr.__hash__
    __repr__ = Expr.__repr__

    @property
    def attrs_type_key(self) -> str:
        """The type key of its attributes, "" without any."""
        return self.record.key if self.record else ""

    def get_attr(self, key: str) -> Any:
        """What is registered under a key, or None."""
        return self.attributes.get(key, (None, 0))[0]

    def has_attr(self, key: str) -> bool:
        """Whether something is registered under a key."""
        return key in self.attributes

    def set_attr(self, key: str, value: Any, plevel: int = FIRST_LEVEL) -> None:
        """Register a value. ExpressionError where one of this level or a higher one is registered."""
        known = self.attributes.get(key)
        if known is not None and known[1] >= plevel:
            raise ExpressionError(
                f"attribute {key} of {self.name} is already registered at level {known[1]}",
                f"give a level above it: level={known[1] + 1}",
            )
        self.attributes[key] = (value, plevel)

    def reset_attr(self, key: str) -> None:
        """Forget what is registered under a key."""
        self.attributes.pop(key, None)


OPERATORS: dict[str, Op] = {}
"""Every operator by name."""


def register(name: str, description: str = "") -> Op:
    """A new operator. ExpressionError where the name is taken."""
    if name in OPERATORS:
        raise ExpressionError(f"operator {name} is registered before", "ask for it with relay.op.get")
    made = OPERATORS[name] = Op(name, description=description)
    return made


def get(name: str) -> Op:
    """The operator of a name. NoOperator with close names where there is none."""
    from compassc.relay import declared  # all modules that declare operators

    declared.load()
    if name not in OPERATORS:
        raise NoOperator(f"operator {name} is not registered", help_for(name, list(OPERATORS), "operators"))
    return OPERATORS[name]
