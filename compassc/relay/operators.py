"""The operators of Relay by name, and the table of what is declared about each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from enum import IntEnum
from typing import Any, Union

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors.suggest import help_for, nearest
from compassc.ir.errors import ExpressionError
from compassc.operators.declare import Sample
from compassc.operators.patterns import PatternKind
from compassc.relay import declared
from compassc.relay.attributes import RECORDS, Attrs, Record
from compassc.relay.expr import Call, Expr
from compassc.relay.ops.relations import broadcast, compared, same
from compassc.relay.types import IncompleteType, Relation, Type
from compassc.te.tensor import Tensor

Arrays = Union[Array, "Sequence[Arrays]"]
"""An array, or those of a tuple."""
Reference = Callable[[Attrs | None, Sequence[Arrays], Type], "Array | tuple[Array, ...]"]
"""What an operator gives of arrays: (attributes, arguments, type of the result) -> array, or tuple of arrays. Arguments
that are tuples are tuples of arrays. Extents of the type may be open."""
Compute = Callable[[Attrs | None, Sequence[Tensor], Type], Sequence[Tensor]]
"""What an operator is as tensor expressions: (attributes, inputs, type of the result) -> results. Tuples among the
arguments are given one tensor after the other."""
ANY_NUMBER = -1
FIRST_LEVEL = 10


class OpPattern(IntEnum):
    """The patterns by the numbers that attributes of operators have for them."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


PATTERNS: dict[PatternKind, OpPattern] = {
    PatternKind.ELEMENTWISE: OpPattern.ELEMWISE,
    PatternKind.BROADCAST: OpPattern.BROADCAST,
    PatternKind.INJECTIVE: OpPattern.INJECTIVE,
    PatternKind.REDUCTION: OpPattern.COMM_REDUCE,
    PatternKind.ANCHOR: OpPattern.OUT_ELEMWISE_FUSABLE,
    PatternKind.OPAQUE: OpPattern.OPAQUE,
}


class OperatorError(ExpressionError, AttributeError):
    """A name that no operator has, or that one has already."""


@dataclass(frozen=True)
class Argument:
    """A tensor that an operator takes."""

    name: str
    type_info: str = "Tensor"
    description: str = ""


@dataclass(eq=False)
class Op(Expr):
    """An operator: one object per name. What passes and builds ask of it by a key (`get_attr`) has a level: the registration
    of the highest level holds."""

    name: str
    arguments: list[Argument] = field(default_factory=list)
    num_inputs: int = 0
    support_level: int = FIRST_LEVEL
    record: Record | None = None
    relation: Relation | None = None
    reference: Reference | None = None
    samples: tuple[Sample, ...] = ()
    types: tuple[str, ...] = ()
    attributes: dict[str, tuple[Any, int]] = field(default_factory=dict)
    description: str = ""

    __hash__ = Expr.__hash__
    __repr__ = Expr.__repr__

    @property
    def attrs_type_key(self) -> str:
        """The type key of its attributes, "" without any."""
        return self.record.key if self.record else ""

    @property
    def pattern(self) -> PatternKind:
        """What it may share a loop with; without a registered pattern nothing."""
        number = self.get_attr("TOpPattern")
        return next((kind for kind, n in PATTERNS.items() if n == number), PatternKind.OPAQUE)

    @property
    def compute(self) -> Compute | None:
        """Its tensor expression, where there is one."""
        registered: Compute | None = self.get_attr("FTVMCompute")
        return registered

    def array_of(self, attrs: Attrs | None, arrays: Sequence[Arrays], t: Type) -> Array:
        """The one array that its reference gives."""
        assert self.reference is not None, self.name
        found = self.reference(attrs, arrays, t)
        assert not isinstance(found, tuple), self.name
        return found

    @property
    def stateful(self) -> bool:
        """Whether it does more than to give a value: it is not folded, merged or removed."""
        return bool(self.get_attr("TOpIsStateful"))

    def get_attr(self, key: str) -> Any:
        """What is registered under a key, or None."""
        return self.attributes.get(key, (None, 0))[0]

    def has_attr(self, key: str) -> bool:
        """Whether something is registered under a key."""
        return key in self.attributes

    def set_attr(self, key: str, value: object, plevel: int = FIRST_LEVEL) -> None:
        """Register a value; one of a higher level stays. OperatorError where one of this level is registered."""
        known = self.attributes.get(key, (None, 0))[1]
        if known == plevel:
            raise OperatorError(
                f"Attribute {key} of operator {self.name} is already registered with same plevel={plevel}",
                f"give a level above it: level={known + 1}",
            )
        if known < plevel:
            self.attributes[key] = (value, plevel)

    def reset_attr(self, key: str) -> None:
        """Forget what is registered under a key."""
        self.attributes.pop(key, None)

    def add_argument(self, name: str, type: str = "Tensor", description: str = "") -> None:
        """Declare one more argument."""
        self.arguments.append(Argument(name, type, description))

    def set_num_inputs(self, count: int) -> None:
        """Say how many arguments it takes; ANY_NUMBER for as many as there are."""
        self.num_inputs = count

    def set_support_level(self, level: int) -> None:
        """Say how common it is: 1 core, 2 convolution, 3 transforms, 4 broadcasts and reductions, ... 10 internal."""
        self.support_level = level

    def set_attrs_type_key(self, key: str) -> None:
        """Say which attributes calls have; "DictAttrs" are any. OperatorError for a key that no record has."""
        if key != "DictAttrs" and key not in RECORDS:
            raise OperatorError(f"there are no attributes '{key}'", help_for(key, list(RECORDS), "attributes"))
        self.record = RECORDS.get(key)

    def add_type_rel(self, rel_name: str, type_rel_func: Relation | None = None) -> None:
        """Give its type rule: a function of the types of arguments and the attributes, by default that of the name.
        OperatorError for a name that has none."""
        self.relation = named_relation(rel_name) if type_rel_func is None else type_rel_func


def named_relation(name: str) -> Relation:
    """The type rule of a name. OperatorError for a name that has none."""
    known: dict[str, Callable[..., Type]] = {"Identity": same, "Broadcast": broadcast, "BroadcastComp": compared}
    if name not in known:
        raise OperatorError(f"there is no type relation '{name}'", help_for(name, list(known), "relations"))
    rule = known[name]

    def relation(types: Sequence[Type], attrs: Attrs | None) -> Type | None:
        return None if any(isinstance(t, IncompleteType) for t in types) else rule(attrs, *types)

    return relation


OPERATORS: dict[str, Op] = {}
"""Every operator by name."""


def register(name: str, description: str = "") -> Op:
    """A new operator. OperatorError where the name is taken."""
    declared.load()
    if name in OPERATORS:
        raise OperatorError(f"operator {name} is registered before", "ask for it with relay.op.get")
    made = OPERATORS[name] = Op(name, description=description)
    return made


def get(name: str) -> Op:
    """The operator of a name. OperatorError with close names where there is none."""
    declared.load()
    if name not in OPERATORS:
        near = nearest(name, OPERATORS)
        raise OperatorError(f"operator {name} is not registered", f"did you mean '{near}'?" if near else "")
    return OPERATORS[name]


def op_name(e: Expr) -> str:
    """The name of the operator that an expression calls; "" where it calls none."""
    return e.op.name if isinstance(e, Call) and isinstance(e.op, Op) else ""
