"""What kernels that suppress boxes have in common: TECs that agree on the best candidate, and what it overlaps with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compassc.build import Expression, Value, both, either
from compassc.dsl import script as S
from compassc.layers.families.detection.lists import FAR, counting, ends
from compassc.layers.lane_arithmetic import across_max, across_min
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.vectors import LANES, everywhere


class Contest:
    """Every TEC has a part of the candidates, whose best one it knows; of these all TECs choose the same."""

    def __init__(self, k: LayerKernel, kind: str) -> None:
        self.k, self.kind, self.lanes = k, kind, counting(k)
        self.lowest = ends(kind)[0]
        # of two choices in turns: while a TEC reads, another may be at the next one
        self.values, self.places = (
            k.alloc(64, kind, "best_values", "shared"),
            k.alloc(64, "int32", "best_places", "shared"),
        )
        self.tec = k.held("tec", S.get_local_id())
        self.side = k.changing("side", S.i32(0))

    def begin(self) -> None:
        """No candidate of the TEC is known."""
        self.best = self.k.changing("best", S.vbcast(self.lowest, lanes=LANES))
        self.place = self.k.changing("place", everywhere(FAR))

    def offer(self, at: Expression, value: Value, better: Expression) -> None:
        """Lanes of candidates at places, with their values, where these are better."""
        better = self.k.held("better", better)
        self.k.assign(self.place, S.vsel(at, self.place, better))
        self.k.assign(self.best, S.vsel(value, self.best, better))

    def settle(self, chosen: Value, ties: bool) -> Value:
        """The best value; `chosen` becomes its place, or is behind all. `ties`: whether also a later TEC may have the
        smallest place of equal values."""
        k, mine = self.k, self.side + self.tec
        best = k.held("own_best", across_max(self.best))
        nearest = across_min(S.vsel(self.place, everywhere(FAR), self.best == best))
        self.values[mine] = best[0]
        self.places[mine] = nearest[0]
        S.barrier()
        top = k.changing("top", self.values[self.side])
        k.assign(chosen, self.places[self.side])
        with k.for_range(1, S.get_local_size(), name="t") as t:
            value, place = self.values[self.side + t], self.places[self.side + t]
            wins = value > top
            with k.when(either(wins, both(value == top, place < chosen)) if ties else wins):
                k.assign(top, value)
                k.assign(chosen, place)
        k.assign(self.side, 32 - self.side)
        return top


class Winner:
    """The box that was chosen last: its place among all, its corners and its area.

    `product`: gives an area from two sides; `more`: what sides have beside the difference of corners.
    """

    def __init__(
        self, k: LayerKernel, kind: str, product: Callable[[Expression, Expression], Expression], more: float = 0
    ) -> None:
        self.k, self.product, self.more = k, product, more
        self.nil = S.cast(0, kind)
        self.place = k.changing("chosen", S.i32(-1))
        self.corners = [k.changing(name, self.nil) for name in ("i_y0", "i_x0", "i_y1", "i_x1")]
        self.area = k.changing("i_area", self.nil)

    def side(self, first: Expression, last: Expression) -> Expression:
        return last - first + self.more if self.more else last - first

    def area_of(self, corners: Sequence[Expression]) -> Expression:
        y0, x0, y1, x1 = corners
        return self.product(self.side(x0, x1), self.side(y0, y1))

    def become(self, corners: Sequence[Expression]) -> None:
        for variable, corner in zip(self.corners, corners, strict=True):
            self.k.assign(variable, corner)
        self.k.assign(self.area, self.area_of(self.corners))

    def overlap(self, corners: Sequence[Expression]) -> tuple[Value, Value]:
        """The areas that boxes have in common with it, and those of both together."""
        k = self.k
        wide, high = (
            k.held(
                "common",
                S.max(
                    self.side(S.max(corners[i], self.corners[i]), S.min(corners[i + 2], self.corners[i + 2])), self.nil
                ),
            )
            for i in (1, 0)
        )
        inter = k.held("inter", self.product(wide, high))
        return inter, k.held("union", self.area + self.area_of(corners) - inter)


def product_of(quantised: bool, bits: int) -> Callable[[Expression, Expression], Expression]:
    """Gives areas from sides, of whole numbers over 2^bits."""

    def product(a: Expression, b: Expression) -> Expression:
        if not quantised:
            return a * b
        return S.cast((S.cast(a, "uint32") * S.cast(b, "uint32")) >> bits, "int32")

    return product
