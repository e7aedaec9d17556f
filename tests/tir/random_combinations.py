"""Steps that are taken together, as schedules for an NPU do: each needs the ones before it."""

from __future__ import annotations

from compassc import tir
from compassc.analysis.structure import variables
from tests.tir.random_choices import block_of, loops_of, own, reduced_loop, reduces


def _together(draw, s, steps):
    """Several steps in a row; what is refused changes nothing."""
    state = draw.getstate()
    for on in (s.copy(), s):
        draw.setstate(state)
        steps(on)


def lanes(draw, s):
    """Lanes that a sum is made in, joined at the end."""

    def steps(on):
        loop = reduced_loop(draw, on)
        _, inner = on.split(loop, [None, draw.choice((2, 4, 8, 16))])
        made = on.rfactor(inner, draw.choice((0, -1)))
        loops = on.get_loops(made)
        mine = [x for x in loops if on.get(x).loop_var.name.startswith(on.get(inner).loop_var.name)]
        on.reorder(*[x for x in loops if x not in mine], *mine)
        on.vectorize(loops_of(on, made)[-1])

    _together(draw, s, steps)


def fused_parts(draw, s):
    """Parts of fused loops, of which each goes its own way."""

    def steps(on):
        loops = loops_of(on, block_of(draw, on))
        fused = on.fuse(*loops[: draw.randint(1, max(len(loops), 1))])
        extent = on.get(fused).stop.value
        parts = on.loop_partition(fused, [draw.randint(1, max(extent - 1, 1)), None])
        part = draw.choice(parts)
        draw.choice((on.unroll, on.parallel, on.vectorize, lambda x: on.split(x, [None, draw.randint(2, 5)])))(part)

    _together(draw, s, steps)


def sums_with_readers(draw, s):
    """A sum with its init on its own, its reader and what it reads in its loops."""

    def steps(on):
        block = block_of(draw, on, reduces)
        on.decompose_reduction(block, loops_of(on, block)[0])
        loop = draw.choice(loops_of(on, block))
        for other in on.get_producers(block):
            if on.get(other).name_hint.endswith("_init"):
                continue
            if draw.random() < 0.6:
                on.compute_at(other, loop)
        readers = on.get_consumers(block)
        if readers and draw.random() < 0.7:
            on.reverse_compute_at(draw.choice(readers), draw.choice(loops_of(on, block)))

    _together(draw, s, steps)


def padded(draw, s):
    """Memory whose rows are as long as lanes are many, read in vectors."""

    def steps(on):
        block = block_of(draw, on, own)
        if not own(on, on.get(block)):
            raise tir.ScheduleError("a parameter stays as the caller gives it")
        lanes = draw.choice((4, 8))
        layout = lambda *i: (*i[:-1], i[-1] // lanes, i[-1] % lanes)
        on.transform_layout(block, ("write", 0), layout, 0)
        on.vectorize(on.split(loops_of(on, block)[-1], [None, lanes])[1])

    _together(draw, s, steps)


def tiles(draw, s):
    """What a schedule for the NPU looks like: tiles in the memory of a TEC, made and read there, in vectors."""
    block = block_of(draw, s)
    name = s.get(block).name_hint
    loops = loops_of(s, block)
    place, tile = draw.randrange(len(loops)), draw.choice((1, 2, 4, 8))
    bound, inner, lanes = draw.random() < 0.7, draw.random() < 0.5, draw.choice((4, 8, 16))
    copied, halves = [draw.random() < 0.7 for _ in range(4)], [draw.random() < 0.4 for _ in range(4)]
    scope = draw.choice(("lsram", "lsram", "shared"))
    for on in (s.copy(), s):  # what is refused changes nothing
        block = on.get_block(name)
        outer, _ = on.split(on.get_loops(block)[place], [None, tile])
        for i, region in enumerate(on.get(block).reads):
            own = region.buffer.data in {w.buffer.data for w in on.get(block).writes}
            if i < 4 and copied[i] and not own:
                copy = on.read_at(outer, block, i, scope)
                if halves[i]:
                    on.annotate(copy, "double_buffer_scope", 0)
        if copied[3]:
            on.write_at(outer, block, 0, "lsram")
        if inner and on.get_consumers(name):
            on.reverse_compute_at(on.get_consumers(name)[0], outer)
        spatial = {
            v.name
            for k, e in zip(on.get(block).kinds, on.get(block).iter_values)
            if k != "reduce"
            for v in variables(e)
        }
        axes = [x for x in on.get_loops(block)[1:] if on.get(x).loop_var.name in spatial] or on.get_loops(block)
        on.vectorize(on.split(axes[-1], [None, lanes])[1])
        if bound:
            on.bind(outer, "threadIdx.x")
