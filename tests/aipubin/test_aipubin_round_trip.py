"""Writing and reading an aipu.bin are inverse, and nothing but AipuBinError comes out of bytes that are none."""

from __future__ import annotations

import random

import pytest
from aipubin_structures import aipu_bins
from hypothesis import HealthCheck, given, settings

from compass_core.aipubin import AipuBin, AipuBinError, KernelInfo, Param, describe, read, write
from compass_core.aipubin import layout as lay
from compass_core.aipubin.device import device_word, target_name

MUTANTS = 4000


@given(aipu_bins())
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_reading_what_was_written_gives_an_equal_structure(content):
    data = write(content)
    again = read(data)
    assert again == content
    assert write(again) == data


@given(aipu_bins())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_structure_can_be_shown(content):
    for title, columns, rows in describe(content):
        assert title
        assert all(len(row) == len(columns) for row in rows)
        assert all(isinstance(cell, str) for row in rows for cell in row)


def sample() -> AipuBin:
    """A file with most notes in it."""
    tensor = lay.SubSection(size=32, type=lay.Kind.INPUT, data_type=7, references=(0,))
    out = lay.SubSection(size=32, type=lay.Kind.OUTPUT, data_type=7, references=(4,))
    const = lay.SubSection(size=8, type=lay.Kind.CONSTANT, references=(8,))
    bss = lay.Bss(
        reuses=(lay.ReuseSection(32, subs=(tensor,)), lay.ReuseSection(32, subs=(out,))),
        statics=(lay.StaticSection(0, 8, subs=(const,)),),
    )
    first = lay.Subgraph(text_offset=0, params_size=12, private_buffers=(lay.ReuseSection(64),))
    return AipuBin(
        compiler=lay.CompilerMessage(device_word("X2_1204")),
        features=lay.FeatureMaps((bss,)),
        subgraphs=(first, lay.Subgraph(text_offset=4, params_size=12, precursors=(0,))),
        text=bytes(64),
        params=bytes(12),
        desc=bytes(16),
        weights=bytes(8),
        remap=(lay.Remap(lay.Area.PARAMS, 4, lay.Area.DESC, 8),),
        gm=lay.GmConfig(control=1),
        shape_limits=(lay.ShapeLimit((1,)), lay.ShapeLimit((4,))),
        extra_weights=lay.ExtraWeights((lay.ExtraWeight("w+" + "0" * 64),)),
        comment="target:X2_1204MP3;",
        kernel=KernelInfo(
            "k", "X2_1204", (Param("n", "scalar", "int32", "attr"), Param("a", "pointer", "int8x32", "input"))
        ),
    )


def mutated(data: bytes, source: random.Random) -> bytes:
    """`data` with a few bytes, words, or its end changed."""
    out = bytearray(data)
    for _ in range(source.randint(1, 4)):
        at = source.randrange(len(out))
        choice = source.randrange(4)
        if choice == 0:
            out[at] ^= 1 << source.randrange(8)
        elif choice == 1:
            word = source.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, len(data)))
            out[at & ~3 : (at & ~3) + 4] = word.to_bytes(4, "little")
        elif choice == 2:
            del out[at : at + source.randrange(1, 9)]
        else:
            out[at:at] = bytes(source.randrange(1, 9))
        if not out:
            return b""
    return bytes(out)


def test_damaged_files_are_refused_or_read_never_more():
    data = write(sample())
    source = random.Random(2026)
    refused = 0
    for _ in range(MUTANTS):
        try:
            content = read(mutated(data, source))
        except AipuBinError:
            refused += 1
            continue
        data_again = write(content)
        assert write(read(data_again)) == data_again
    assert refused > MUTANTS / 4


@pytest.mark.parametrize("size", [0, 1, 15, 16, 40, 51, 52, 100, 500])
def test_a_cut_file_is_refused(size):
    with pytest.raises(AipuBinError):
        read(write(sample())[:size])


def test_counts_never_reserve_memory_for_what_is_not_there():
    data = bytearray(write(sample()))
    at = data.index(b"subgraphs\0") + 12
    data[at : at + 4] = b"\xff\xff\xff\xff"
    with pytest.raises(AipuBinError, match=r"note 'subgraphs', field 'subgraphs count'.*4294967295 items"):
        read(bytes(data))


@pytest.mark.parametrize(
    ("target", "word"),
    [("X2_1204", 0x000504B4), ("X3P_1304", 0x10060518), ("X3S_1304", 0x20060518), ("X2_1204MP3", 0x000504B4)],
)
def test_device_words(target, word):
    assert device_word(target) == word
    assert target_name(word) == target.removesuffix("MP3")


def test_the_comment_refines_the_target():
    assert read(write(sample())).target == "X2_1204MP3"
