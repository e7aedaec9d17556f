"""Operations over the lanes of a vector that no instruction does at once: lane numbers, prefix sums, sorting.

They are ours: the vendor's language has none of them. In C they are made of operations that it has (`expansion`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compass_core.arrays import Array
from compass_core.lazy import np

from ..ir import exprs as E
from ..ir.dtypes import STORAGE, DataType, make_dtype
from .args import dtype_arg, kind_of, lanes_arg
from .arithmetic import vadd
from .core import Cost, Let, Part, convert, get, imm, scalar_cast, special_op, value_op
from .example import Example, unary
from .rules import ALL, Lanewise
from .typing import check_literal, is_literal, type_error

GROUP = "Over lanes"
EXPANDED: Mapping[Part, str] = {
    "c": "it becomes a function of other operations (passes/outline_operations.py)",
    "cost": "profiles count the operations of that function",
}

# ------------------------------------------------------------------------------------------------------- lane numbers


def iota_type(dtype: object, lanes: object) -> DataType:
    """The vector type of S.iota."""
    elem = dtype_arg(dtype, "S.iota: dtype")
    if elem not in STORAGE:
        raise type_error(f"S.iota: dtype must be a scalar type of memory, got {elem}", "write e.g. S.iota('i32', 8)")
    return elem.with_lanes(lanes_arg(lanes, "S.iota"))


def iota_steps(vector: DataType, start: object, step: object) -> list[int | float]:
    """`lane * step`, of a known integer start `start + lane * step`; CompassError where the type does not hold them."""
    if not is_literal(step) or type(step) is bool or (type(step) is float and vector.is_integer):
        needed = "an integer" if vector.is_integer else "a number"
        shown = repr(step) if is_literal(step) else kind_of(step)
        raise type_error(f"S.iota: step must be {needed} known when the kernel is compiled, got {shown}")
    first = start if vector.is_integer and type(start) is int else 0
    found = [first + lane * step for lane in range(vector.lanes)]
    for value in (found[0], found[-1]):
        check_literal(value, vector)
    return found


@special_op(
    group=GROUP,
    cost=Cost("alu", {}),
    example=Example('S.vstore(S.iota("i32", 8, start=x[0], step=3), out)'),
    exempt={
        "definition": "tests/agreement/test_lane_operations.py has it on every type",
        "c": "a literal, and the addition of a start that is not known",
    },
    types={"lanes": "int", "step": "float"},
)
def iota(dtype: object, lanes: object, start: object = 0, step: object = 1) -> E.Expr:
    """The vector `start, start + step, start + 2 * step, ...`. Ours.

    `dtype` is the type of an element and `lanes` their number, any from 2. `step` is known when the kernel is compiled,
    `start` may be a run-time scalar, which is converted to `dtype`. Sums of integers with a run-time start wrap; of known
    ones every lane must fit. Of floats `lane * step` is rounded, then the sum.
    """
    vector = iota_type(dtype, lanes)
    elem = vector.element_of
    base = E.VectorLiteral(vector, tuple(imm(x, elem) for x in iota_steps(vector, start, step)))
    if type(start) is int and (vector.is_integer or start == 0):
        return base
    if is_literal(start):
        first = convert(start, elem)
    elif isinstance(start, E.Expr) and isinstance(start.dtype, DataType) and start.dtype.is_scalar:
        first = scalar_cast(start, elem)
    else:
        raise type_error(f"S.iota: start must be a scalar, got {kind_of(start)}", "take one lane: v[0]")
    return E.Binary("add", E.Broadcast(first, vector.lanes), base)


# -------------------------------------------------------------------------------------------------------- prefix sums


def _distances(lanes: int) -> Iterator[int]:
    distance = 1
    while distance < lanes:
        yield distance
        distance *= 2


def _sums(let: Let, x: E.Expr) -> E.Expr:
    """Each step adds the sums that end `distance` lanes before."""
    lanes = x.data_type.lanes
    zero = convert(0, x.data_type)
    for distance in _distances(lanes):
        before = get("vsldl").expr(zero, x, lanes - distance)
        x = let(E.Binary("add", x, before))
    return x


@value_op(
    group=GROUP,
    parameters="x",
    typing=Lanewise(ALL, width="native"),
    split="none",
    expansion=_sums,
    exempt=EXPANDED,
    example=unary("i32"),
)
def vcumsum(x: Array, to: DataType) -> Array:
    """Prefix sums of one register: lane i is the sum of the lanes 0 to i. Ours.

    Integer sums wrap. Floats are added pairwise, at distances of 1, 2, 4, ... lanes, with a rounding each.
    """
    for distance in _distances(x.shape[1]):
        before = np.zeros_like(x)
        before[:, distance:] = x[:, :-distance]
        x = vadd.definition(x, before, to=to)  # type: ignore[misc]
    return x


# ------------------------------------------------------------------------------------------------------------ sorting


def _network(lanes: int, descending: bool) -> Iterator[tuple[list[int], list[bool]]]:
    """The steps of a bitonic sorting network: the lane that each lane is compared with, and which keep the smaller."""
    size = 2
    while size <= lanes:
        distance = size // 2
        while distance:
            partner = [lane ^ distance for lane in range(lanes)]
            smaller = [(lane & size == 0) == (lane & distance == 0) for lane in range(lanes)]
            yield partner, [s != descending for s in smaller]
            distance //= 2
        size *= 2


def _sorted(let: Let, x: E.Expr, descending: bool = False) -> E.Expr:
    kind = x.data_type
    index = make_dtype("int", kind.bits, kind.lanes)
    every = (1 << kind.lanes) - 1
    for partner, smaller in _network(kind.lanes, descending):
        places = E.VectorLiteral(index, tuple(imm(lane, index) for lane in partner))
        other = let(get("vtbl").expr((x, x), places))
        low = sum(1 << lane for lane, keeps in enumerate(smaller) if keeps)
        if kind.is_integer:
            extremes = (let(get(name).expr(x, other)) for name in ("min", "max"))
            x = let(get("vsel").expr(*extremes, E.ConstMask(low, kind.lanes)))
            continue
        below = E.Binary("bitand", E.Binary("lt", other, x), E.ConstMask(low, kind.lanes))
        above = E.Binary("bitand", E.Binary("lt", x, other), E.ConstMask(every & ~low, kind.lanes))
        x = let(get("vsel").expr(other, x, let(E.Binary("bitor", below, above))))
    return x


@value_op(
    group=GROUP,
    parameters="x, descending=False",
    typing=Lanewise(ALL, width="native"),
    split="none",
    expansion=_sorted,
    exempt=EXPANDED,
    example=unary("i32"),
    types={"descending": "_bool"},
)
def vsort(x: Array, to: DataType, descending: bool = False) -> Array:
    """The lanes of one register in ascending order, or `descending`. Ours.

    The result has the lanes of x in another order in any case; where some are NaN, which is neither less nor greater than
    anything, they are not sorted. Equal lanes, such as -0.0 and 0.0, stand in no certain order.
    """
    for partner, smaller in _network(x.shape[1], descending):
        other = x[:, partner]
        x = np.where(np.where(smaller, other < x, x < other), other, x)
    return x
