"""Writing and reading an aipu.bin are inverse; cut files are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from aipubin_structures import aipu_bins
from hypothesis import HealthCheck, given, settings

from compass_core.aipubin import AipuBin, AipuBinError, KernelInfo, Param, describe, read, write
from compass_core.aipubin import layout as lay
from compass_core.aipubin.device import device_word, target_name
from compass_core.files.pieces import Pieces
from tests.choosing import some


@given(aipu_bins())
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_reading_what_was_written_gives_an_equal_structure(content):
    data = write(content)
    again = read(data)
    assert again == content
    assert write(again) == data


def test_weights_in_pieces_are_written_like_joined_ones():
    pieces = Pieces([b"abc", memoryview(b"defg"), b"", b"h"])
    whole, apart = (replace(sample(), weights=w) for w in (b"abcdefgh", pieces))
    assert (len(pieces), whole) == (8, apart)
    assert write(whole) == write(apart)


@given(aipu_bins())
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_structure_can_be_shown(content):
    for title, columns, rows in some(describe(content)):
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
