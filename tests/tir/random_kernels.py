"""Random functions of blocks as somebody may write them, and random steps on them: parts, values kept for a turn, elements
written again, updates, prefix sums, blocks around blocks.

python -m tests.tir.random_kernels --seed 0 --count 1000
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np

from compassc import targets, tir
from compassc.analysis.interpret import Interpreter
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, UINT8, VOID, DataType, dtype, pointer_type
from compassc.ir.exprs import Binary, Buffer, Expr, Var
from compassc.ir.stmts import EXPRESSIONS
from compassc.tir.blocks import Axis, loop, new_block, number, view
from compassc.tir.canonical import canonical
from tests.te.random_schedules import depth
from tests.tir import random_blocks

TARGET = "X2_1204"
KINDS = (INT32, INT32, dtype("int8"), UINT8, dtype("int16"))


class Written:
    """A function in the making."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.count = draw, 0
        self.sizes = (draw.randint(2, 6), draw.randint(8, 40) if draw.random() < 0.2 else draw.randint(2, 6))
        kinds = [draw.choice(KINDS) for _ in range(2)]
        self.given = [self.buffer("g", self.sizes, kinds[0]), self.buffer("h", self.sizes[1:], kinds[1])]
        self.changed = [self.buffer("p", self.sizes), self.buffer("q", self.sizes[:1])]
        self.outputs: list[Buffer] = []
        self.own: list[Buffer] = []
        self.ready: list[Buffer] = []
        """Buffers that are written whole."""
        self.unread: set[Var] = set()
        self.body: list[S.Stmt] = []

    def name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def buffer(self, stem: str, shape: tuple[int, ...], kind: DataType = INT32) -> Buffer:
        return Buffer(Var(self.name(stem), pointer_type(kind, "global")), kind, tuple(number(n) for n in shape))

    def memory(self, shape: tuple[int, ...], kind: DataType = INT32) -> Buffer:
        self.own.append(self.buffer("t", shape, kind))
        return self.own[-1]

    # -- expressions

    def index(self, extent: int, axes: list[Axis]) -> Expr:
        """An index of a dimension, within it, of some axis."""
        if not axes or self.draw.random() < 0.1:
            return number(self.draw.randrange(extent))
        a = self.draw.choice(axes)
        rest = extent - a.extent.value
        if rest >= 0 and self.draw.random() < 0.8:
            turned = Binary("sub", number(a.extent.value - 1), a.var)
            return self.draw.choice((a.var, a.var, turned, Binary("add", a.var, number(rest))))
        scaled = Binary("mul", a.var, number(self.draw.randint(1, 3)))
        return Binary("floormod", scaled, number(extent))

    def load(self, buffer: Buffer, axes: list[Axis]) -> Expr:
        self.unread.discard(buffer.data)
        made = E.BufferLoad(view(buffer), tuple(self.index(e.value, axes) for e in buffer.shape))
        return made if buffer.dtype is INT32 else E.Cast(INT32, made)

    def value(self, axes: list[Axis], *more: Buffer) -> Expr:
        """A value made of what is there already, and of `more`."""
        ready = [*self.given, *self.changed, *(b for b in self.ready)]
        loads = [self.load(b, axes) for b in (*more, *self.draw.sample(ready, 1 if more else self.draw.randint(1, 2)))]
        made = loads[0]
        for e in loads[1:]:
            made = Binary(self.draw.choice(("add", "sub", "max")), made, e)
        made = Binary("add", Binary("mul", made, number(self.draw.randint(1, 3))), self.draw.choice(axes).var)
        if self.draw.random() < 0.2:
            made = E.Select(Binary("lt", self.draw.choice(axes).var, number(2)), made, number(5))
        return made

    # -- statements

    def axes(self, kinds: str, extents: tuple[int, ...]) -> list[Axis]:
        names = {"S": "spatial", "R": "reduce"}
        return [
            Axis(Var(self.name("v"), INT32), names[k], number(0), number(n), Var(self.name("i"), INT32))
            for k, n in zip(kinds, extents, strict=True)
        ]

    def nest(self, axes: list[Axis], body: tuple[S.Stmt, ...]) -> S.Stmt:
        for a in reversed(axes):
            body = (loop(a.binding, a.extent, body),)
        return body[0]

    def store(self, buffer: Buffer, indices: Sequence[Expr], value: Expr) -> S.Stmt:
        stored = value if value.dtype is buffer.dtype else E.Cast(buffer.dtype, value)
        return S.BufferStore(view(buffer), tuple(indices), stored, None)

    def under(self, axes: list[Axis], *over: Axis) -> list[Axis]:
        """The axes of another block in the same loops."""
        return [a._replace(var=Var(self.name("v"), INT32)) for a in (*over, *axes)]

    def block(self, axes: list[Axis], body: S.Stmt, init: tuple[S.Stmt, ...] = ()) -> S.Block:
        return new_block(self.name("B"), axes, (body,), init)

    def whole(self) -> None:
        """All of a new buffer."""
        shape = self.sizes if self.draw.random() < 0.7 else self.sizes[:1]
        axes = self.axes("S" * len(shape), shape)
        made = self.memory(shape, self.draw.choice(KINDS))
        self.body.append(
            self.nest(axes, (self.block(axes, self.store(made, [a.var for a in axes], self.value(axes))),))
        )
        self.done(made)

    def done(self, made: Buffer) -> None:
        self.ready.append(made)
        self.unread.add(made.data)

    def total(self) -> None:
        """Sums."""
        i, k = axes = self.axes("SR", self.sizes)
        made = self.memory(self.sizes[:1])
        first = number(0) if self.draw.random() < 0.6 else self.load(self.draw.choice(self.given), [i])
        joined = Binary("add", E.BufferLoad(view(made), (i.var,)), self.value(axes))
        block = self.block(axes, self.store(made, [i.var], joined), (self.store(made, [i.var], first),))
        self.body.append(self.nest(axes if self.draw.random() < 0.7 else [k, i], (block,)))
        self.done(made)

    def turns(self) -> None:
        """A buffer that is written again in each turn of a loop, and read in the turn."""
        (i,), (j, k) = self.axes("S", self.sizes[:1]), self.axes("SS", self.sizes[1:] * 2)
        kept = self.memory(self.sizes[1:] if self.draw.random() < 0.7 else self.sizes)
        made = self.draw.choice((self.memory(self.sizes), self.changed[0]))
        first, second = self.under([j], i), self.under([k], i)
        points = [a.var for a in first][-len(kept.shape) :]
        first_block = self.block(first, self.store(kept, points, self.value(first)))
        place = [a.var for a in second]
        if self.draw.random() < 0.3:  # in the same turn of one loop
            same = E.BufferLoad(view(kept), tuple(place[-len(kept.shape) :]))
            second_block = self.block(second, self.store(made, place, Binary("add", same, number(3))))
            second_block = second_block.replace(iter_values=(i.binding, j.binding))
            inner: tuple[S.Stmt, ...] = (self.nest([j], (first_block, second_block)),)
        else:
            if len(kept.shape) > 1:  # the rest of it belongs to other turns
                load: Expr = E.BufferLoad(view(kept), (second[0].var, self.index(self.sizes[1], second[1:])))
            else:
                load = self.load(kept, second[1:])
            second_block = self.block(second, self.store(made, place, Binary("sub", load, self.value(second))))
            inner = (self.nest([j], (first_block,)), self.nest([k], (second_block,)))
        self.body.append(self.nest([i], inner))
        if made in self.own:
            self.done(made)

    def prefix(self) -> None:
        """Sums, each of which is read."""
        i, k = self.axes("SR", self.sizes)
        kept, made = self.memory(self.sizes[:1]), self.memory(self.sizes)
        joined = Binary("add", E.BufferLoad(view(kept), (i.var,)), self.value([i, k]))
        block = self.block([i, k], self.store(kept, [i.var], joined), (self.store(kept, [i.var], number(0)),))
        second = [a._replace(kind="spatial") for a in self.under([k], i)]
        value = Binary("add", E.BufferLoad(view(kept), (second[0].var,)), second[1].var)
        self.body.append(
            self.nest([i, k], (block, self.block(second, self.store(made, [a.var for a in second], value))))
        )
        self.done(made)
        if self.draw.random() < 0.5:
            self.done(kept)

    def part(self) -> None:
        """Some elements of a parameter."""
        extents = tuple(self.draw.randint(1, n) for n in self.sizes)
        axes = self.axes("SS", extents)
        at = [Binary("add", a.var, number(n - e)) for a, n, e in zip(axes, self.sizes, extents, strict=True)]
        at = at if self.draw.random() < 0.5 else [a.var for a in axes]
        self.body.append(self.nest(axes, (self.block(axes, self.store(self.changed[0], at, self.value(axes))),)))

    def update(self) -> None:
        """A parameter goes on with what is in it."""
        axes = self.axes("SS", self.sizes)
        target = self.changed[0]
        at = [a.var for a in axes]
        old = E.BufferLoad(view(target), tuple(at))
        value = Binary(self.draw.choice(("add", "max", "sub")), old, self.value(axes))
        self.body.append(self.nest(axes, (self.block(axes, self.store(target, at, value)),)))

    def again(self) -> None:
        """Elements that several points write."""
        axes = self.axes("SS", self.sizes)
        where: Expr = Binary("floordiv", axes[0].var, number(2))
        if self.draw.random() < 0.5:
            where = Binary("floormod", self.load(self.given[0], axes), number(self.sizes[0]))
        target, at = self.draw.choice(((self.changed[1], [where]), (self.changed[0], [where, axes[1].var])))
        self.body.append(self.nest(axes, (self.block(axes, self.store(target, at, self.value(axes))),)))

    def around(self) -> None:
        """A block around others."""
        before = len(self.body)
        (i,) = self.axes("S", self.sizes[:1])
        made = self.memory(self.sizes)
        inner: list[S.Stmt] = []
        for old in (False, True) if self.draw.random() < 0.5 else (False,):
            (j,) = self.axes("S", self.sizes[1:])
            value = self.value([i, j])
            if old:
                value = Binary("sub", value, E.BufferLoad(view(made), (i.var, j.var)))
            inner.append(self.nest([j], (self.block([j], self.store(made, [i.var, j.var], value)),)))
        self.body[before:] = [self.nest([i], (new_block(self.name("O"), [i], tuple(inner)),))]
        self.done(made)

    def function(self) -> S.PrimFunc:
        """One to four of these."""
        kinds = ("whole", "whole", "total", "turns", "turns", "prefix", "part", "update", "again", "around")
        for _ in range(self.draw.randint(1, 4)):
            getattr(self, self.draw.choice(kinds))()
        return self.finished()

    def finished(self) -> S.PrimFunc:
        """The function; what nobody reads is an output."""
        for b in [b for b in self.ready if b.data in self.unread]:
            out = self.buffer("o", tuple(e.value for e in b.shape), b.dtype)
            self.outputs.append(out)
            axes = self.axes("S" * len(b.shape), tuple(e.value for e in b.shape))
            at = [a.var for a in axes]
            self.body.append(
                self.nest(axes, (self.block(axes, self.store(out, at, E.BufferLoad(view(b), tuple(at)))),))
            )
        params = [*self.given, *self.changed, *self.outputs]
        heads = [*map(S.DeclBuffer, params), *map(S.Alloc, self.own)]
        return canonical(S.PrimFunc("main", tuple(b.data for b in params), (*heads, *self.body), VOID))

    def arrays(self) -> list[np.ndarray]:
        rng = np.random.default_rng(self.draw.randrange(1 << 30))
        listed = [*self.given, *self.changed, *self.outputs]
        return [rng.integers(-9, 9, [e.value for e in b.shape]).astype(str(b.dtype)) for b in listed]


def lowered(module, target: str = ""):
    """What runs: what is not shared out is done by one TEC. `target`: what is built for it."""
    one = module.map_functions(lambda f: f.replace(attrs=(*f.attrs, (EXPRESSIONS, True))))
    made = tir.lower(one, target or TARGET)
    return targets.build(made, target=target) if target else Interpreter(made.entry_func)


def run(seed: int, target: str = "") -> tuple[str, Counter[str]]:
    """One case: "right", or why the schedule has no program. AssertionError when results differ. `target`: what is
    called is the module that is built for it."""
    draw = random.Random(seed)
    made = Written(draw)
    f = made.function()
    arrays = made.arrays()
    plain, found = ([a.copy() for a in arrays] for _ in range(2))
    lowered(f.module())(*plain)
    s = tir.Schedule(f, seed=seed + 1)
    try:
        taken = random_blocks.steps(draw, s, depth(draw))
        random_blocks.check_texts(s, f)
        try:
            kernel = lowered(s.mod, target)
        except tir.LowerError as error:
            return error.message, taken
        kernel(*found)
        for a, b in zip(plain, found, strict=True):
            np.testing.assert_array_equal(a, b)
    except Exception as error:
        raise AssertionError(f"seed {seed}:\n{s.trace}\n{f}\n{s.mod.script()}\n{error!r}") from error
    return "right", taken


def main() -> int:
    return random_blocks.main("python -m tests.tir.random_kernels", 1000, run)


if __name__ == "__main__":
    sys.exit(main())
