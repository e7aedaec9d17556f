"""Random loops over tiles whose copies overlap, and random work on tiles."""

from __future__ import annotations

from compassc.ir.dtypes import INT32, DataType, dtype

from .scope import OUT_SIZE, SHORT, TECS
from .stores import Stores
from .tree import Expr, Stmt, simple

KINDS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
SYMBOLS = ("+", "-", "&", "|", "^")


class Tiles(Stores):
    """Draws what is there for tiles, in the entry: arguments of functions may be one memory by two names."""

    frozen: bool
    can_alloc: bool

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.viewed: set[DataType] = set()
        """The types whose parameters have a buffer: one has no second name."""

    def pipelined(self) -> list[Stmt] | None:
        """A loop that copies tiles in, changes them and copies them out."""
        kind = self.rng.choice([dtype(k) for k in KINDS])
        sources = [r for r in self.scope.regions if r.type is kind and r.name.startswith("in_")]
        targets = [r for r in self.scope.regions if r.type is kind and r.name.startswith("o_")]
        if not sources or not targets or self.frozen or not self.can_alloc:
            return None
        source, target, size = sources[0], targets[0], self.rng.choice((1, 4, 8, 12))
        most = min(source.size, target.size) - size
        stop = Expr("S.i32({})", [self.index(most, 1)], INT32)
        turn, i, tile = self.name("i"), self.name("i"), self.name("t")
        options = self.rng.choice(("", ", stages=3"))
        value = self.rng.choice((f"{tile}[{i}]", f"{tile}[{i}] {self.rng.choice(SYMBOLS)} {self.rng.randint(0, 9)}"))
        alloc = f'{tile} = S.alloc({size}, "{kind}", "lsram")\n'
        fill = f"    S.dma_memset({tile}, {self.rng.randint(0, 9)}, {size})\n" if self.chance(0.3) else ""
        head = f"for {turn} in S.pipelined(0, {{}}, {self.rng.randint(1, size)}{options}):\n"
        copy = f"    S.dma_copy({tile}, {source.name} + {turn}, {self.rng.randint(1, size) if fill else size})\n"
        work = f"    for {i} in range({size}):\n        {tile}[{i}] = {value}\n"
        back = f"    S.dma_copy({target.name} + {turn}, {tile}, {self.rng.randint(1, size)})"
        before = (alloc, head) if self.chance(0.5) else (head, "    " + alloc)
        return [simple("".join((*before, fill, copy, work, back)), stop)]

    def on_tiles(self) -> list[Stmt] | None:
        """A tile of a buffer that is changed and put into another buffer."""
        kind, other = (dtype(self.rng.choice(KINDS)) for _ in range(2))
        taken = {m.type for m in self.scope.matrices} | self.viewed
        here = {r.name for r in self.scope.regions}
        pair = (f"in_{SHORT.get(str(kind), kind)}", f"o_{SHORT.get(str(other), other)}")
        if kind is other or {kind, other} & taken or not here.issuperset(pair) or self.frozen or not self.can_alloc:
            return None
        self.viewed |= {kind, other}
        source, target, tile = self.name("b"), self.name("b"), self.name("t")
        rows, cols = self.rng.randint(1, 4), self.rng.choice((1, 5, 8, 33))
        at = self.rng.choice(
            ("(S.i32({}) - 3, S.i32({}) - 3)", "(S.i32({}), S.i32({}))", "(16 - S.i32({}), S.i32({}))")
        )
        lines = [
            f"{source} = S.match_buffer({pair[0]}, (16, 16))",
            f"{target} = S.match_buffer(out{pair[1][1:]}, ({TECS}, {OUT_SIZE}))",
            f"{tile} = S.tile_load({source}, {at}, ({rows}, {cols}), {self.rng.randint(0, 9)})",
        ]
        arguments = [self.index(9, 1), self.index(9, 1)]
        for _ in range(self.rng.randint(1, 3)):
            lines.append(f"{tile} = " + self._change(tile, str(kind), (rows, cols)))
        row = self.rng.randrange(rows)
        part = f'S.cast({tile}[{row}:{row + 1}], "{other}")'
        lines.append(f"S.tile_store({target}, (tid, {self.rng.randint(0, 9)}), {part})")
        return [simple("\n".join(lines), *arguments)]

    def _change(self, tile: str, kind: str, shape: tuple[int, int]) -> str:
        axis, how = self.rng.choice((0, 1)), self.rng.choice(("max", "min", "sum"))
        spread = f'S.cast(S.tile_{how}({tile}, {axis}), "{kind}")'
        return self.rng.choice(
            (
                f"{tile} {self.rng.choice(SYMBOLS)} {self.rng.randint(0, 9)}",
                f"{tile} {self.rng.choice(SYMBOLS)} {spread}",
                f"S.max({tile}, {spread}) - {tile}",
                f"S.tile_where({tile} < {spread}, {tile}, {self.rng.randint(0, 9)})",
                f"S.tile_where(S.tile_index({shape}, {axis}) < {self.rng.randint(0, 9)}, {tile}, {spread})",
            )
        )
