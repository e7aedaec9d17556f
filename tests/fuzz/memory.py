"""Random loads, and the addresses they take."""

from __future__ import annotations

from compassc.ir.dtypes import INT32, DataType, dtype

from .draw import INTS, Draw
from .scope import Matrix, Region
from .tree import Expr


class Memory(Draw):
    """Indices that stay inside a region, pointers to its elements, scalar and vector loads."""

    def index(self, limit: int, depth: int) -> Expr:
        """An integer expression from 0 to `limit`."""
        if limit <= 0:
            return Expr("0", [], INT32)
        if depth <= 0 or self.chance(0.4):
            return Expr(str(self.rng.randint(0, limit)), [], INT32)
        bits = self.rng.randint(0, (limit + 1).bit_length() - 1)
        if bits == 0:
            return Expr(str(self.rng.randint(0, limit)), [], INT32)
        mask, t = (1 << bits) - 1, self.rng.choice((INT32, INT32, INT32, *INTS))
        base = self.rng.randint(0, limit - mask)
        if mask > t.range()[1] or base + mask > t.range()[1]:
            t = INT32
        text = f"({{}} & {mask})" + (f" + {base}" if base else "")
        return Expr(f"({text})" if base else text, [self.gen(t, min(depth - 1, 1))], t)

    def region(self, elem: DataType, size: int, writable: bool = False, raw: bool = False) -> Region | None:
        found = [
            r
            for r in self.scope.regions
            if r.type is elem and r.size >= size and (r.writable or not writable) and (r.raw or not raw)
        ]
        return self.rng.choice(found) if found else None

    def load(self, t: DataType, depth: int) -> Expr | None:
        if t.is_vector and not any(r.type is t for r in self.scope.regions):
            return self.slice_load(t, depth)
        found = self.region(t, 1)
        if found is None:
            return None
        return Expr(f"{found.name}[{{}}]", [self.index(found.size - 1, depth - 1)], t)

    def span(self, region: Region, lanes: int, depth: int) -> tuple[Expr, int] | None:
        """Start and stride of an access of `lanes` elements."""
        if region.size < lanes:
            return None
        most = (region.size - 1) // (lanes - 1)
        stride = self.rng.randint(1, min(most, 3)) if self.chance(0.25) else 1
        return self.index(region.size - 1 - (lanes - 1) * stride, depth - 1), stride

    def slice_load(self, t: DataType, depth: int) -> Expr | None:
        found = self.region(t.element_of, t.lanes)
        span = self.span(found, t.lanes, depth) if found else None
        if found is None or span is None:
            return None
        start, stride = span
        step = f":{stride}" if stride > 1 else ""
        if start.args:  # the start is written twice: keep it small
            start = self.index(found.size - 1 - (t.lanes - 1) * stride, 0)
        return Expr(f"{found.name}[{start.text()}:{int(start.text()) + t.lanes * stride}{step}]", [], t)

    def address(self, region: Region, start: Expr) -> tuple[str, list[Expr]]:
        """The text of a pointer to an element of a region."""
        if start.text() == "0":
            return region.name, []
        if region.buffer:
            return f"{region.name}.addr_of({{}})", [start]
        return f"{region.name} + {{}}", [start]

    def vload(self, t: DataType, depth: int) -> Expr | None:
        if t.is_bfloat and t.lanes != 16 and self.chance(0.5):
            return None
        found = self.pointed(t.element_of, t.lanes)
        span = self.span(found, t.lanes, depth) if found else None
        if found is None or span is None:
            return None
        where, args = self.address(found, span[0])
        options = "" if t.lanes == t.native_lanes and self.chance(0.5) else f", lanes={t.lanes}"
        if span[1] > 1:
            options += f", stride={span[1]}"
        if self.chance(0.4):
            mask = self.mask_argument(t.lanes, t.bits, depth - 1)
            options += ", mask={}"
            args = [*args, mask]
        return Expr(f"S.vload({where}{options})", args, t)

    def offsets(self, lanes: int, limit: int, depth: int) -> Expr | None:
        """16-bit element offsets from 0 to `limit`."""
        bits = (limit + 1).bit_length() - 1
        if bits < 2:
            return None
        t = self.rng.choice((dtype("int16"), dtype("uint16"))).with_lanes(lanes)
        return Expr(f"({{}} & {(1 << min(bits, 8)) - 1})", [self.gen(t, depth)], t)

    def gather(self, t: DataType, depth: int) -> Expr | None:
        found = self.region(t.element_of, 16)
        if found is None or found.scope == "constant":
            return None
        offsets = self.offsets(t.lanes, found.size - 1, depth - 1)
        if offsets is None:
            return None
        return Expr(f"S.vload_gather({found.name}, {{}})", [offsets], t)

    # ---------------------------------------------------------------------------------------------- buffers

    def matrix(self, elem: DataType, lanes: int, writable: bool = False) -> Matrix | None:
        found = [
            m for m in self.scope.matrices if m.type is elem and m.shape[-1] >= lanes and (m.writable or not writable)
        ]
        return self.rng.choice(found) if found else None

    def indices(self, matrix: Matrix, lanes: int, depth: int) -> tuple[str, list[Expr]]:
        """The text of the indices of an access of `lanes` elements in a row."""
        first = [Expr(matrix.row, [], INT32)] if matrix.row else []
        args = first + [self.index(size - 1, depth) for size in matrix.shape[len(first) : -1]]
        if lanes == 1:
            args.append(self.index(matrix.shape[-1] - 1, depth))
            return ", ".join(["{}"] * len(args)), args
        start = self.rng.randint(0, matrix.shape[-1] - lanes)
        return ", ".join(["{}"] * len(args) + [f"{start}:{start + lanes}"]), args

    def matrix_load(self, t: DataType, depth: int) -> Expr | None:
        found = self.matrix(t.element_of, t.lanes)
        if found is None:
            return None
        text, args = self.indices(found, t.lanes, depth - 1)
        return Expr(f"{found.name}[{text}]", args, t)
