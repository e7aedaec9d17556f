"""Memory, patching and control blocks, without a simulator."""

from __future__ import annotations

import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from compass_core.aipubin import layout as lay
from compass_core.aipubin.fields import layout_of
from compass_core.errors import CompassError
from compass_runtime import tcb
from compass_runtime.chain import Places, tcb_count, x2_chain, x3_chain
from compass_runtime.memory import PageAllocator
from compass_runtime.patch import patch_references, remap_words
from compass_runtime.plan import LARGE, apart, private_sets
from compass_runtime.program import joined

PAGE = lay.PAGE


def test_allocations_never_overlap_and_all_memory_comes_back():
    source = random.Random(1)
    allocator = PageAllocator((0x10000, 0x40000), (0x80000, 0xA0000))
    held: dict[int, int] = {}
    for _ in range(2000):
        if held and source.random() < 0.5:
            allocator.release(address := source.choice(list(held)))
            del held[address]
            continue
        size = source.randrange(1, 5 * PAGE)
        try:
            address = allocator.allocate(size)
        except CompassError:
            continue
        assert address % PAGE == 0
        assert any(a <= address and address + size <= b for a, b in ((0x10000, 0x40000), (0x80000, 0xA0000)))
        assert all(address + size <= a or a + n <= address for a, n in held.items())
        held[address] = size
    for address in held:
        allocator.release(address)
    assert allocator.allocate(0x30000) == 0x10000
    assert allocator.allocate(0x20000) == 0x80000


def test_a_full_device_says_so():
    with pytest.raises(CompassError, match="no 8192 bytes"):
        PageAllocator((PAGE, 2 * PAGE)).allocate(PAGE + 1)


def test_memory_can_be_released_while_some_is_allocated():
    allocator = PageAllocator((PAGE, 3 * PAGE))
    old = allocator.allocate(2 * PAGE)
    with allocator._lock:  # as in `allocate`, where the garbage collector may run and end what owns memory
        allocator.release(old)
    assert allocator.allocate(2 * PAGE) == old


def test_constants_that_follow_each_other_are_copied_at_once():
    source = random.Random(2)
    for _ in range(200):
        file = source.randbytes(200)
        many = source.randrange(8)
        sections, offsets, at, end = [], {}, 0, 0
        for i in range(many):
            size = source.choice((0, 1, 8, 20))
            end = end if source.random() < 0.7 else source.randrange(100)
            at += source.choice((0, 0, 4))
            sections.append(lay.StaticSection(end, size))
            offsets[i] = at
            end, at = end + size, at + size
        singly, jointly = bytearray(400), bytearray(400)
        for i, offset in offsets.items():
            s = sections[i]
            singly[offset : offset + s.size] = file[s.src_offset : s.src_offset + s.size]
        pieces = joined(sections, offsets)
        for start, offset, size in pieces:
            jointly[offset : offset + size] = file[start : start + size]
        assert jointly == singly
        assert all((a + n, b + n) != (c, d) for (a, b, n), (c, d, _) in pairwise(pieces))


def test_references_replace_the_masked_bits():
    params, desc = bytearray(struct.pack("<2I", 0xABCDEF01, 0)), bytearray(4)
    subs = (
        lay.SubSection(offset=0x10, addr_mask=0xFFFF0000, references=(0,)),
        lay.SubSection(offset=0x20, references=(4, 8)),
    )
    patch_references(params, desc, [(lay.ReuseSection(64, subs=subs), 0x12345000)])
    assert struct.unpack("<2I", params) == (0x1234EF01, 0x12345020)
    assert struct.unpack("<I", desc) == (0x12345020,)


def test_remap_writes_addresses_of_other_areas():
    starts = {lay.Area.PARAMS: 0x1000, lay.Area.DESC: 0x2000, lay.Area.TEXT: 0x3000}
    assert remap_words([lay.Remap(0, 4, 1, 8)], starts) == [(0x1004, (0x2008).to_bytes(4, "little"))]


@pytest.mark.parametrize("cls", [tcb.X2Task, tcb.X2Init, tcb.X2SegMmu, tcb.X3Grid, tcb.X3Group, tcb.X3Task])
def test_every_control_block_has_128_bytes(cls):
    assert layout_of(cls).min_size == 128


def places(count):
    each = tuple(range(0x100000, 0x100000 + count * PAGE, PAGE))
    return Places(
        tcbs=0x8000,
        text=0x10000,
        params=0x20000,
        const_data=0,
        global_param=0,
        profiler=0,
        weights=(0x30000, 0x40000),
        printf=each,
        stacks=each,
        private_data=each,
        stack_bytes=0x100,
        private_bytes=(PAGE,) * count,
    )


def graph(**values):
    return lay.Subgraph(**{"text_offset": 0x40, "params_size": 8, **values})


def blocks(data):
    return [data[i : i + 128] for i in range(0, len(data), 128)]


def word(block, offset):
    return struct.unpack_from("<I", block, offset)[0]


def half(block, offset):
    return struct.unpack_from("<H", block, offset)[0]


def test_an_x2_chain_of_one_kernel():
    chain = blocks(x2_chain((graph(params_offset=4),), places(1), 4, 1))
    init, segmmu, *tasks = chain
    assert len(chain) == tcb_count((graph(),), 4, 1, False)
    assert (word(init, 0), word(init, 4)) == (1 << 16, 0x8000 + 2 * 128)
    assert [word(init, at) for at in (48, 52, 56, 60)] == [0x60, 0, 0x30060, 0]
    assert (word(segmmu, 24), word(segmmu, 88)) == (0x31, 0x31)
    assert [word(t, 0) for t in tasks] == [1, 1, 1, 1 | 0x40 | 0x80]
    assert [word(t, 4) for t in tasks] == [0x8000 + 128 * i for i in (3, 4, 5)] + [0]
    assert {word(t, 12) for t in tasks} == {0x10040}
    assert {word(t, 56) for t in tasks} == {0x20004}
    assert [half(t, 26) for t in tasks] == [half(t, 46) for t in tasks] == [0, 1, 2, 3]
    assert [word(t, 52) for t in tasks] == [0x100000 + 0x100 * i for i in range(4)]
    assert [word(t, 16) for t in tasks] == [0x3D, 0x3D, 0x3D, 0x3D | 0x600]
    assert [word(t, 108) for t in tasks] == [0x8000 + 128 * i for i in (2, 3, 4, 5)]


def test_an_x2_chain_of_several_kernels_waits_and_changes_address_spaces():
    graphs = (graph(), graph(precursors=(0,), printf_size=1024), graph(precursors=None, bss_index=1))
    chain = blocks(x2_chain(graphs, places(3), 2, 3))
    assert len(chain) == tcb_count(graphs, 2, 3, False) == 2 * 3 + 2 * (1 + 2)
    kinds = [word(b, 0) for b in chain]
    assert kinds == [3 << 16, 0, 0, 1, 0x41, 0x11, 0x41, 3 << 16, 0, 0, 0x21, 0xC1]
    assert word(chain[6], 4) == 0x8000 + 7 * 128
    assert [half(chain[i], 20) for i in (3, 5, 10)] == [0, 1, 2]
    assert [word(chain[i], 68) for i in (3, 5, 6)] == [0, 0x101000, 0x101400]
    assert word(chain[7], 56) == 0x40060


def test_an_x3_chain():
    graphs = (graph(), graph(precursors=(0,), warmup_len=7))
    chain = blocks(x3_chain(graphs, places(2), 4, 5))
    grid, first, *rest = chain
    assert len(chain) == tcb_count(graphs, 4, 1, True) == 11
    assert (word(grid, 0), word(grid, 8), word(grid, 16), half(grid, 22)) == (1 << 22, 2, 9, 5)
    assert (word(first, 0), word(first, 88), word(first, 96)) == (1 | 1 << 21, 0x60, 0x30060)
    second = rest[4]
    assert (word(second, 0), half(second, 120)) == (1 | 1 << 21 | 0x10, 0x8000)
    task = rest[5]
    assert (word(task, 0), word(task, 12), half(task, 24), half(task, 26)) == (0x12, 0x10040, 0, 7)
    assert word(rest[-1], 0) == 2 | 0x40 | 0x80


def test_sub_graphs_that_wait_for_all_use_the_first_memory_again():
    waits = [(), (0,), None, (2,), (2,), None]
    assert private_sets([graph(precursors=w) for w in waits]) == (0, 1, 0, 1, 2, 0)


def test_large_sections_lie_apart_unless_accesses_are_checked():
    assert apart([8, LARGE, LARGE - 1, 4 * LARGE]) == (1, 3)
    assert apart([LARGE], gap=1) == ()


def test_a_job_whose_tensors_lie_apart_gives_the_same(monkeypatch):
    """As tensors of a gibibyte do, of which no two find room in one piece of device memory."""
    import numpy as np

    from compass_runtime import plan
    from compassc.dsl import BuildManager, load_kernels

    kernel = load_kernels(Path(__file__).parents[2] / "examples/dynamic_add/kernel.py").entry()
    program = BuildManager().build(kernel).program
    a = np.arange(5000, dtype="float16") % 100
    given = {"a": a, "b": a[::-1].copy()}

    def outputs() -> list[np.ndarray]:
        out = np.zeros_like(a)
        program.call([given["a"], given["b"], out, a.size])
        return [out]

    monkeypatch.setattr(plan, "LARGE", 4096)
    for _ in range(2):
        np.testing.assert_array_equal(outputs()[0], given["a"] + given["b"])
