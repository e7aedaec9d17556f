"""Spaces of configurations: knobs by name, counted with the first one varying fastest."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compassc.tuning.templates import factors_of

from .entities import (
    KINDS,
    Axis,
    Entity,
    OtherOptionEntity,
    SplitEntity,
    VirtualAxis,
    length_of,
    orders,
    splits,
    uses_of_loops,
)

if TYPE_CHECKING:
    from .contexts import Pair


class ConfigSpace:
    """The knobs that a template has defined, with the first value of each while it runs.

    As a space of `compassc.tuning` its candidates are indices.
    """

    is_fallback = False

    def __init__(self) -> None:
        self.space_map: dict[str, Sequence[Entity]] = {}
        self.code_hash: object = None
        self.flop = 0.0
        self.cost: float | None = None
        self.errors: list[str] = []
        self._entities: dict[str, Entity] = {}
        self._filters: list[Callable[[Mapping[str, Entity]], bool]] = []
        self._valid: list[int] | None = None

    # -- what templates call

    @staticmethod
    def axis(var: Axis) -> VirtualAxis:
        """An axis of a length, or the loop itself."""
        return VirtualAxis(var) if isinstance(var, int) else VirtualAxis(length_of(var), str(getattr(var, "name", "")))

    reduce_axis = axis

    def define_split(
        self, name: str, axis: Axis, policy: str = "factors", *, num_outputs: int, **kwargs: Any
    ) -> list[VirtualAxis]:
        """A knob of the sizes of `num_outputs` loops; see `entities.splits`."""
        self._define(name, lambda: splits(axis, policy, num_outputs, **kwargs))
        return [VirtualAxis(None, f"{name}.{i}") for i in range(num_outputs)]

    def define_reorder(self, name: str, axes: Sequence[Axis], policy: str, **kwargs: object) -> list[VirtualAxis]:
        """A knob of the order of loops; see `entities.orders`."""
        self._define(name, lambda: orders(axes, policy, **kwargs))
        return [VirtualAxis(None, f"{name}.{i}") for i in range(len(axes))]

    def define_annotate(self, name: str, axes: Sequence[Axis], policy: str, **kwargs: object) -> list[VirtualAxis]:
        """A knob of what becomes of loops; see `entities.uses_of_loops`."""
        self._define(name, lambda: uses_of_loops(axes, policy, **kwargs))
        return [VirtualAxis(None, f"{name}.{i}") for i in range(len(axes))]

    def define_knob(self, name: str, candidate: Sequence[object]) -> None:
        """A knob of some values."""
        self._define(name, lambda: [OtherOptionEntity(v) for v in candidate])

    def _define(self, name: str, made: Callable[[], Sequence[Entity]]) -> None:
        if name in self.space_map:
            return
        found = made()
        if not found:
            raise RuntimeError(f"the knob {name} has no values")
        self.space_map[name] = found
        self._entities[name] = found[0]

    def add_flop(self, flop: float) -> None:
        """Says how many operations the program does."""
        self.flop += float(flop)

    def raise_error(self, msg: str) -> None:
        """Says why the configuration is none."""
        self.errors.append(msg)

    def valid(self) -> bool:
        """Whether nothing was said against the configuration."""
        return not self.errors

    def multi_filter(self, filter: Callable[[Mapping[str, Entity]], bool]) -> None:
        """Leaves out configurations for which `filter` does not hold."""
        self._filters.append(filter)
        self.clear_cache()

    def clear_cache(self) -> None:
        """Forgets which configurations are valid."""
        self._valid = None

    # -- configurations by number

    @property
    def dims(self) -> list[int]:
        """How many values each knob has."""
        return [len(found) for found in self.space_map.values()]

    @property
    def range_length(self) -> int:
        """How many indices there are, those of configurations that are left out included."""
        return prod(self.dims)

    def __len__(self) -> int:
        return len(self._indices())

    def _indices(self) -> Sequence[int]:
        if not self._filters:
            return range(self.range_length)
        if self._valid is None:
            self._valid = [i for i in range(self.range_length) if self._passes(i)]
        return self._valid

    def _passes(self, index: int) -> bool:
        return all(f(self._chosen(index)) for f in self._filters)

    def _chosen(self, index: int) -> dict[str, Entity]:
        return {name: found[place] for (name, found), place in zip(self.space_map.items(), self.point2knob(index))}

    def is_index_valid(self, index: int) -> bool:
        """Whether an index is one of a configuration that is not left out."""
        return 0 <= index < self.range_length and self._passes(index)

    def get(self, index: int) -> ConfigEntity:
        """The configuration of an index. IndexError where there is none, or where it is left out."""
        if not 0 <= index < self.range_length:
            raise IndexError(f"Index out of range: size {self.range_length}, got index {index}")
        if not self._passes(index):
            raise IndexError(f"Index does not correspond to a configuration that passes the multi-filter: {index}")
        return ConfigEntity(index, self.code_hash, self._chosen(index), list(self._filters))

    def point2knob(self, point: int) -> list[int]:
        """The place of the value of each knob, of an index."""
        places = []
        for size in self.dims:
            places.append(point % size)
            point //= size
        return places

    def knob2point(self, knob: Sequence[int]) -> int:
        """The index, of the place of the value of each knob."""
        index, step = 0, 1
        for place, size in zip(knob, self.dims):
            index, step = index + place * step, step * size
        return int(index)

    def subrange_length(self, start: int, end: int) -> int:
        """How many configurations have an index from `start` up to `end`, which is none of them."""
        return sum(start <= i < end for i in self._indices())

    def get_rand_index(
        self, start: int | None = None, end: int | None = None, to_exclude: Iterable[int] | None = None
    ) -> int:
        """A random index. IndexError where all are excluded."""

        excluded = {*(to_exclude or ())}
        low, high = start or 0, self.range_length if end is None else end
        left = [i for i in self._indices() if low <= i < high and i not in excluded]
        if not left:
            raise IndexError("no configuration is left")
        return random.choice(left)

    def get_next_index(self, index: int, n: int = 1, start: int | None = None, end: int | None = None) -> int | None:
        """The index of the configuration `n` further on; None where the range ends before it."""
        low, high = start or 0, self.range_length if end is None else end
        inside = [i for i in self._indices() if low <= i < high]
        place = (sum(i <= index for i in inside) - 1 + n) if n > 0 else (sum(i < index for i in inside) + n)
        return inside[place] if 0 <= place < len(inside) else None

    def sample_ints(self, m: int) -> list[int]:
        """`m` different random indices."""

        return random.sample(list(self._indices()), m)

    def random_walk(self, point: int) -> int:
        """An index with another value of one knob."""

        return self.mutate(point, Random(random.getrandbits(32)))

    def __iter__(self) -> Iterator[ConfigEntity]:
        return (self.get(i) for i in self._indices())

    def __getitem__(self, name: str) -> Entity:
        return self._entities[name]

    def __contains__(self, name: object) -> bool:
        """Of a text whether it is a knob, of a number whether it is the index of a configuration."""
        return self.is_index_valid(name) if isinstance(name, int) else name in self._entities

    def __repr__(self) -> str:
        lines = [f"ConfigSpace (len={len(self)}, range_length={self.range_length}, space_map="]
        lines += [
            f"  {i:2d} {name}: {found[0].__class__.__name__} len={len(found)}"
            for i, (name, found) in enumerate(self.space_map.items())
        ]
        return "\n".join([*lines, ")"])

    # -- as a space of `compassc.tuning`

    @property
    def size(self) -> int | None:
        return len(self)

    def sample(self, rng: Random) -> int:
        found = self._indices()
        return found[rng.randrange(len(found))]

    def mutate(self, candidate: int, rng: Random) -> int:
        open_ = [i for i, size in enumerate(self.dims) if size > 1]
        for _ in range(20 if open_ else 0):
            knobs = self.point2knob(candidate)
            which = rng.choice(open_)
            knobs[which] = rng.choice([v for v in range(self.dims[which]) if v != knobs[which]])
            if self.is_index_valid(self.knob2point(knobs)):
                return self.knob2point(knobs)
        return candidate

    def crossover(self, a: int, b: int, rng: Random) -> int:
        made = self.knob2point([rng.choice(pair) for pair in zip(self.point2knob(a), self.point2knob(b))])
        return made if self.is_index_valid(made) else a

    def near(self, candidate: object, rng: Random) -> int | None:
        return candidate if isinstance(candidate, int) and candidate in self else None

    def grid(self) -> Iterator[int]:
        yield from self._indices()

    def features(self, index: int) -> Array:
        """What a model learns from: sizes of splits as logarithms, places in orders, words by number, values."""
        return self.get(index).get_flatten_feature()


_WORDS = ("none", "unroll", "vec")


def _number(value: object) -> float:
    """A value of a knob as a feature: numbers as they are, known words by their places."""
    if isinstance(value, (bool, int, float)):
        return float(value)
    return float(_WORDS.index(value)) if value in _WORDS else float(len(_WORDS))


class ConfigEntity(ConfigSpace):
    """A configuration: a value of each knob."""

    def __init__(
        self, index: int | None, code_hash: object, entity_map: Mapping[str, Entity], constraints: Sequence[object] = ()
    ) -> None:
        super().__init__()
        self.index, self.code_hash = index, code_hash
        self._entities = dict(entity_map)
        self.constraints = list(constraints)

    def _define(self, name: str, made: Callable[[], Sequence[Entity]]) -> None:
        """The knobs are there."""

    def get_flatten_feature(self) -> Array:
        """Numbers of all knobs in a row."""
        row: list[float] = []
        for entity in self._entities.values():
            value = entity.value
            if isinstance(entity, SplitEntity):
                row += [float(np.log2(max(s, 1))) for s in entity.size]
            elif isinstance(value, list):
                row += [_number(v) for v in value]
            else:
                row.append(_number(value))
        return np.array(row, dtype=np.float32)

    def get_other_option(self) -> dict[str, object]:
        """The values that are no splits, orders or annotations."""
        return {n: e.val for n, e in self._entities.items() if isinstance(e, OtherOptionEntity)}

    def to_json_dict(self) -> dict[str, object]:
        """As records have it."""
        entities = [[name, e.kind, e.value] for name, e in self._entities.items()]
        return {"index": self.index, "code_hash": self.code_hash, "entity": entities}

    @staticmethod
    def from_json_dict(json_dict: Mapping[str, Any]) -> ConfigEntity:
        """What `to_json_dict` wrote. RuntimeError for kinds of knobs that there are not."""
        entities: dict[str, Entity] = {}
        for name, kind, value in json_dict["entity"]:
            if kind not in KINDS:
                raise RuntimeError(f"Invalid config knob type: {kind}")
            entities[name] = KINDS[kind](value)
        return ConfigEntity(json_dict["index"], json_dict.get("code_hash"), entities)

    def __repr__(self) -> str:
        pairs = ", ".join(f"({name!r}, {entity!r})" for name, entity in self._entities.items())
        return f"[{pairs}],{self.code_hash},{self.index}"


class FallbackConfigEntity(ConfigSpace):
    """A configuration that the template sets itself: the first value of each knob unless it says another one."""

    is_fallback = True

    def __setitem__(self, name: str, entity: Entity) -> None:
        self._entities[name] = entity

    def fallback_split(self, name: str, constraints: Sequence[int]) -> None:
        """Splits an axis into the largest sizes that divide it and are within `constraints` (-1: any), from the innermost."""
        splits_of_it = [e for e in (self._entities[name], *self.space_map[name]) if isinstance(e, SplitEntity)]
        whole, length = prod(splits_of_it[0].size[1:]), max(prod(e.size[1:]) for e in splits_of_it[1:])
        left, sizes = max(length, whole), list[int]()
        for most in reversed(list(constraints)[1:]):
            size = max(f for f in factors_of(left) if most < 0 or f <= most)
            sizes.insert(0, size)
            left //= size
        self._entities[name] = SplitEntity([-1, *sizes])

    def fallback_with_reference_log(self, ref_log: Iterable[Pair]) -> None:
        """Takes the values of the best record whose knobs are those here, where they are values here."""
        best, least = None, float("inf")
        for inp, result in ref_log:
            cost = float(np.mean(result.costs)) if result.error_no == 0 else float("inf")
            if cost < least and list(inp.config._entities) == list(self.space_map):
                best, least = inp.config, cost
        if best is not None:
            for name, found in self.space_map.items():
                if best[name] in found:
                    self._entities[name] = best[name]

    def __repr__(self) -> str:
        pairs = ", ".join(f"({name!r}, {entity!r})" for name, entity in self._entities.items())
        return f"[{pairs}],{self.code_hash},None"
