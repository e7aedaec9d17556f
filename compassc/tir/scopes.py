"""What holds of the blocks of a scope: which needs which, and the three properties that steps rely on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from enum import IntEnum

from compass_core.namedtuple import NamedTuple
from compassc.analysis.itermap import digits_of, disjoint, is_dense, is_injective
from compassc.ir import stmts as S
from compassc.ir.exprs import BufferRegion, Expr, Var
from compassc.tir.blocks import constant, declared
from compassc.tir.checks import read, written
from compassc.tir.region_cover import fills, reach_of, reads_of, spans_of, turn_gives, turns_of, writes_of
from compassc.tir.tree import Tree


class DepKind(IntEnum):
    """Why a block has to stay behind another one: read after write, write after write, write after read, or not known."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


class Dependency(NamedTuple):
    """`dst` has to stay behind `src`."""

    src: S.Block
    dst: S.Block
    kind: DepKind


class CachedFlags(NamedTuple):
    """`affine_binding`: the axes of a block are independent sums of parts of the loops. `region_cover`: all that it reads was
    written before, by the blocks of its scope that write it at all. `stage_pipeline`: so do all blocks in it."""

    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


def dependencies(tree: Tree, scope: S.Block | None) -> list[Dependency]:
    """Which blocks of a scope have to stay behind which, in order. `scope` None: of the function."""
    blocks = tree.inside(scope)
    found: list[Dependency] = []
    for i, dst in enumerate(blocks):
        for src in blocks[:i]:
            kinds = {
                DepKind.RAW: written(src) & read(dst),
                DepKind.WAW: written(src) & written(dst),
                DepKind.WAR: read(src) & written(dst),
            }
            found += [Dependency(src, dst, kind) for kind, shared in kinds.items() if shared]
    return found


def cached_flags(tree: Tree, block: S.Block | None) -> CachedFlags:
    """The properties of a block; None: of the function, whose own two hold."""
    inside = tree.inside(block)
    pipeline = all(region_cover(tree, b) for b in inside)
    if block is None:
        return CachedFlags(True, True, pipeline)
    return CachedFlags(affine_binding(tree, block), region_cover(tree, block), pipeline)


def affine_binding(tree: Tree, block: S.Block) -> bool:
    """Whether the axes of a block are independent sums of parts of the loops around it, each of which takes every value."""
    sizes = {s.loop_var: turns_of(s) for s in tree.loops_around(block)}
    forms = [digits_of(e, sizes) for e in block.iter_values]
    known = [f for f in forms if f is not None]
    dense = all(is_dense(f) and is_injective(f) and not f.moved for f in known)
    return len(known) == len(forms) and dense and disjoint([d for f in known for d in f.digits])


def region_cover(tree: Tree, block: S.Block) -> bool:
    """Whether no block of the scope reads before what a block writes, and all that it reads of what others of the scope
    write was written before, in the same turn of the loops around both."""
    deps = [d for d in dependencies(tree, tree.scope(block)) if d.dst is block]
    if any(d.kind in (DepKind.WAR, DepKind.OPAQUE) for d in deps):
        return False
    writers = list(dict.fromkeys(d.src for d in deps if d.kind is DepKind.RAW))
    shared = {data for w in writers for data in written(w)} & read(block)
    shapes = {data: b.shape for data, b in declared(tree.function.body).items() if data in shared}
    return all(
        turn_gives(tree, writers, block, data, (), shape) or _parts_give(tree, writers, block, data, shape)
        for data, shape in shapes.items()
    )


def _parts_give(tree: Tree, writers: Sequence[S.Block], block: S.Block, data: Var, shape: Sequence[Expr]) -> bool:
    """Whether what several blocks write of a buffer are parts that follow each other along one dimension, and together all
    that a block reads; as far as this is known in numbers."""
    if any(
        tree.scope(b) is not tree.scope(block) or set(tree.loops_around(b)) & set(tree.loops_around(block))
        for b in writers
    ):
        return False
    wanted = [_box(tree, block, region) for region in reads_of(block, data)]
    parts = [(w, region) for w in writers for region in writes_of(w, data)]
    made = [_box(tree, w, region) for w, region in parts if fills(tree, w, region, (), shape)]
    boxes = [b for b in made if b is not None]
    if not boxes or len(boxes) < len(parts) or None in wanted:
        return False
    for d in range(len(shape)):
        rows = sorted(boxes, key=lambda b: b[d])
        same = all(b[:d] + b[d + 1 :] == rows[0][:d] + rows[0][d + 1 :] for b in rows)
        if same and all(b[d][0] <= a[d][1] + 1 for a, b in itertools.pairwise(rows)):
            whole = [*rows[0][:d], (rows[0][d][0], max(b[d][1] for b in rows)), *rows[0][d + 1 :]]
            if all(low <= a and b <= high for box in wanted for (a, b), (low, high) in zip(box or (), whole)):
                return True
    return False


def _box(tree: Tree, block: S.Block, region: BufferRegion) -> list[tuple[int, int]] | None:
    """The least and largest indices of a region in all turns of the loops; None where these are no numbers."""
    found = [
        (constant(s[0]), constant(s[1])) for s in spans_of(region, block, reach_of(tree, block, ())) if s is not None
    ]
    numbers = [(low, high) for low, high in found if low is not None and high is not None]
    return numbers if len(numbers) == len(region.starts) else None
