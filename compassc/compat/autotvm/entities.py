"""Knobs of templates: what they may be, and what they do to a schedule when one is chosen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import permutations, product
from math import prod
from typing import TYPE_CHECKING, Any

from compass_core.dataclass import dataclass
from compassc import te
from compassc.ir.iter_vars import IterVar
from compassc.te.schedule import Schedule
from compassc.te.tensor import Operation, Tensor
from compassc.tuning.templates import factors_of

if TYPE_CHECKING:
    from .space import ConfigSpace

Applied = list[IterVar]


@dataclass(frozen=True)
class VirtualAxis:
    """An axis of a length; of what a knob makes, one whose length is not known: None."""

    length: int | None
    name: str = ""


Axis = int | IterVar | VirtualAxis
"""An axis of a template: its length, a loop, or what a knob makes."""


def length_of(axis: object) -> int:
    """The extent of an axis of a template: a number, a loop of a stage, or a `VirtualAxis`. RuntimeError for others."""
    if isinstance(axis, int):
        return axis
    if isinstance(axis, VirtualAxis) and axis.length is not None:
        return axis.length
    extent = getattr(getattr(axis, "dom", None), "extent", None)
    value = getattr(extent, "value", None)
    if not isinstance(value, int):
        raise RuntimeError(f"Invalid type of axis: the extent of {axis} is no number")  # noqa: TRY004 - what programs catch
    return value


@dataclass(frozen=True)
class SplitEntity:
    """How an axis is split: the size of each loop from the outermost, whose own size is -1."""

    size: list[int]
    kind = "sp"

    @property
    def value(self) -> list[int]:
        return list(self.size)

    def apply(self, sch: Schedule, op: Operation | Tensor, axis: IterVar) -> Applied:
        """The loops that the axis is split into."""
        made = []
        for i in range(1, len(self.size)):
            outer, axis = sch[op].split(axis, factor=prod(self.size[i:]))
            made.append(outer)
        return [*made, axis]

    def __repr__(self) -> str:
        return str(self.size)


@dataclass(frozen=True)
class ReorderEntity:
    """An order of loops."""

    perm: list[int]
    kind = "re"

    @property
    def value(self) -> list[int]:
        return list(self.perm)

    def apply(self, sch: Schedule, op: Operation | Tensor, axes: Sequence[IterVar]) -> Applied:
        """The loops in their new order."""
        ordered = [axes[i] for i in self.perm]
        if len(ordered) > 1:
            sch[op].reorder(*ordered)
        return ordered

    def __repr__(self) -> str:
        return str(self.perm)


_GRID = ("blockIdx", "vthread", "threadIdx")


@dataclass(frozen=True)
class AnnotateEntity:
    """What becomes of loops: `none`, `unroll`, `vec`, or the threads that they are bound to, last first."""

    anns: list[str]
    kind = "an"

    @property
    def value(self) -> list[str]:
        return list(self.anns)

    def apply(
        self, sch: Schedule, op: Operation | Tensor, axes: Sequence[IterVar], axis_lens: Sequence[int] | None = None,
        max_unroll: int | None = None, vec_size: Collection[int] | None = None, cfg: ConfigSpace | None = None,
        source: object = None,
    ) -> Applied:  # fmt: skip
        """The loops as they are then. Loops longer than `max_unroll` that are unrolled, and vectors of other sizes than
        `vec_size`, are errors of the configuration `cfg`."""
        made = list(axes)
        for i, word in enumerate(self.anns):
            length = axis_lens[i] if axis_lens is not None else None
            if word == "unroll":
                if max_unroll and length is not None and length > max_unroll and cfg is not None:
                    cfg.raise_error("Too large factor for unrolling")
                sch[op].unroll(made[i])
            elif word == "vec":
                if vec_size and length is not None and length not in vec_size and cfg is not None:
                    cfg.raise_error("Wrong size of lanes in vectorization")
                sch[op].vectorize(made[i])
            elif word.split(".")[0] in _GRID:
                sch[op].bind(made[i], te.thread_axis(word))
            elif word == "fuse":
                made[i + 1] = sch[op].fuse(made[i], made[i + 1])
        return made

    def __repr__(self) -> str:
        return str(self.anns)


@dataclass(frozen=True)
class OtherOptionEntity:
    """A value."""

    val: object
    kind = "ot"

    @property
    def value(self) -> object:
        return self.val

    def __repr__(self) -> str:
        return str(self.val)


Entity = SplitEntity | ReorderEntity | AnnotateEntity | OtherOptionEntity
KINDS: dict[str, Callable[[Any], Entity]] = {
    "sp": lambda v: SplitEntity(list(v)),
    "re": lambda v: ReorderEntity(list(v)),
    "an": lambda v: AnnotateEntity(list(v)),
    "ot": OtherOptionEntity,
}
"""By the word of a record: what makes the entity of its value."""


class InvalidPolicy(RuntimeError):
    """A knob is asked for by a policy that there is not."""

    def __init__(self, policy: object) -> None:
        super().__init__(f"Invalid policy: {policy}")


def splits(
    axis: Axis, policy: str, num_outputs: int, max_factor: int = 1 << 31,
    filter: Callable[[SplitEntity], bool] | None = None, no_tail: bool | None = None, candidate: Iterable[Sequence[int]] = (),
) -> list[SplitEntity]:  # fmt: skip
    """The ways to split an axis: sizes are its `factors`, powers of two (`power2`), both (`verbose`), or of `candidate`. The
    last size varies slowest."""
    if policy == "candidate":
        found = [SplitEntity(list(sizes)) for sizes in candidate]
    else:
        length = length_of(axis)
        sizes = sorted(s for s in _sizes(policy, length) if s <= max_factor)
        whole = policy == "factors" if no_tail is None else no_tail
        found = [
            SplitEntity([-1, *reversed(chosen)])
            for chosen in product(sizes, repeat=num_outputs - 1)
            if length % prod(chosen) == 0 or (not whole and prod(chosen) < length)
        ]
    return [e for e in found if filter is None or filter(e)]


def _sizes(policy: str, length: int) -> set[int]:
    powers = {1 << i for i in range(length.bit_length())}
    kinds = {"factors": {*factors_of(length)}, "power2": powers, "verbose": {*factors_of(length), *powers}}
    if policy not in kinds:
        raise InvalidPolicy(policy)
    return kinds[policy]


Chains = Sequence[Sequence[Axis]]


def orders(axes: Sequence[Axis], policy: str, **options: Any) -> list[ReorderEntity]:
    """The orders of loops by a policy."""
    count = len(axes)
    if policy == "identity":
        return [ReorderEntity(list(range(count)))]
    if policy == "all":
        return [ReorderEntity(list(p)) for p in permutations(range(count))]
    if policy == "interval_all":
        begin, end = options["interval"]
        before, after = range(begin), range(end, count)
        return [ReorderEntity([*before, *p, *after]) for p in permutations(range(begin, end))]
    if policy == "candidate":
        places = {id(a): i for i, a in enumerate(axes)}
        return [ReorderEntity([places[id(a)] for a in order]) for order in options["candidate"]]
    if policy in ("interleave", "interleave_cuda"):
        places = {id(a): i for i, a in enumerate(axes)}
        return list(_interleaved(options["spatial"], options["reduce"], places, policy))
    raise InvalidPolicy(policy)


def _interleaved(spatial: Chains, reduce: Chains, places: dict[int, int], policy: str) -> Iterator[ReorderEntity]:
    """The outermost loops, then those of sums at each place between the spatial ones, then the innermost."""
    chains = [[places[id(a)] for a in chain] for chain in spatial]
    sums = [[places[id(a)] for a in chain] for chain in reduce]
    outer = [c[0] for c in chains]
    inner = [list(level) for level in zip(*(c[1:] for c in chains))]
    levels = [list(level) for level in zip(*sums)]
    if policy == "interleave_cuda":
        yield ReorderEntity(
            [*outer, *(p for level in inner[:-1] for p in level), *(p for level in levels for p in level), *inner[-1]]
        )
        return
    slots = len(inner) + 1
    for chosen in product(range(slots), repeat=len(levels)):
        if list(chosen) != sorted(chosen):
            continue
        order = list(outer)
        for slot in range(slots):
            order += [p for level, at in zip(levels, chosen) if at == slot for p in level]
            order += inner[slot] if slot < len(inner) else []
        yield ReorderEntity(order)


_TRIES = {"unroll": ("none", "unroll"), "vec": ("none", "vec")}


def uses_of_loops(axes: Sequence[Axis], policy: str, **options: Any) -> list[AnnotateEntity]:
    """What may become of loops by a policy."""
    count = len(axes)
    if policy == "bind_gpu":
        return [AnnotateEntity(_bound(count, virtual=False))]
    if policy == "bind_gpu_virtual":
        return [AnnotateEntity(_bound(count, virtual=True))]
    if policy == "locate_cache":
        return [AnnotateEntity([str(i)]) for i in range(int(options["num_anchor"]))]
    if policy == "candidate":
        return [AnnotateEntity(list(anns)) for anns in options["candidate"]]
    words = policy.split("_")
    if not {*words} <= {"try", "none", "unroll", "vec"}:
        raise InvalidPolicy(policy)
    choices = [("none" if w == "try" else w) for w in words]
    found = [a for a in product(dict.fromkeys(choices), repeat=count) if a.count("vec") <= 1]
    return [AnnotateEntity(list(a)) for a in found]


def _bound(count: int, virtual: bool) -> list[str]:
    """Threads of a grid for the last axes, the axes before them fused."""
    names = [n for n in _GRID if virtual or n != "vthread"]
    rank = next((r for r in (3, 2, 1) if count >= r * len(names)), 0)
    if not rank:
        raise RuntimeError(f"{count} axes are too few for threads of a grid")
    threads = [n if n == "vthread" else f"{n}.{x}" for n in names for x in "zyx"[3 - rank :]]
    return ["fuse"] * (count - len(threads)) + threads
