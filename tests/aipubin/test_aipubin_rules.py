"""Every rule that a file can break is noticed, and the error says where."""

from __future__ import annotations

from dataclasses import replace as with_parts

import pytest
from test_aipubin_round_trip import sample

from compass_core.aipubin import AipuBinError, Note, read, write
from compass_core.aipubin import layout as lay
from compass_core.aipubin.fields import replace
from compass_core.aipubin.model import NOTES


def changed_bss(**changes):
    return {"features": lay.FeatureMaps((replace(sample().features.bss[0], **changes),))}


def changed_graph(**changes):
    return {"subgraphs": (replace(sample().subgraphs[0], **changes),)}


def reuse(**changes):
    return changed_bss(reuses=(lay.ReuseSection(32, subs=(lay.SubSection(**changes),)),))


BROKEN = [
    ("stack_size", changed_bss(stack_size=0)),
    ("stack_align", changed_bss(stack_align=0)),
    ("reuses count", changed_bss(reuses=())),
    ("bss count", {"features": lay.FeatureMaps(())}),
    ("'.text'", {"text": b""}),
    ("which no driver knows", {"compiler": lay.CompilerMessage(0x000704B4)}),
    ("older than this form", {"compiler": lay.CompilerMessage(0x000404B4)}),
    ("private_data_size", changed_graph(private_data_size=0)),
    ("text_offset", changed_graph(text_offset=64)),
    ("params_size", changed_graph(params_size=16)),
    ("params_offset", changed_graph(params_offset=2, params_size=0)),
    ("desc_size", changed_graph(desc_offset=8, desc_size=12)),
    ("bss_index", changed_graph(bss_index=1)),
    ("precursors", changed_graph(precursors=(0,))),
    ("precursors count", changed_graph(precursors=(0, 0))),
    ("outside the section", reuse(offset=4, size=32)),
    ("lies outside notes", reuse(references=(26,))),
    ("lies outside notes", reuse(references=(10,))),
    (
        "lies outside notes",
        changed_graph(private_buffers=(lay.ReuseSection(4, subs=(lay.SubSection(references=(99,)),)),)),
    ),
    ("ids of the input tensors", reuse(type=lay.Kind.INPUT, id=1)),
    ("power of two", changed_bss(statics=(lay.StaticSection(0, 8, 3, (lay.SubSection(type=4),)),))),
    ("kind of constant", changed_bss(statics=(lay.StaticSection(0, 8, 4),))),
    ("kind of constant", changed_bss(statics=(lay.StaticSection(0, 8, 4, (lay.SubSection(type=3),)),))),
    ("src_offset", changed_bss(statics=(lay.StaticSection(4, 8, 4, (lay.SubSection(type=4),)),))),
    ("do not fit the device", changed_bss(reuses=(lay.ReuseSection(0xC0000000), lay.ReuseSection(1)))),
    ("rodata", {"params": b"", "features": lay.FeatureMaps((lay.Bss((lay.ReuseSection(1),)),)), "remap": ()}),
    ("remap[0].offset", {"remap": (lay.Remap(0, 10, 1, 0),)}),
    ("remap[0].target_offset", {"remap": (lay.Remap(0, 8, 1, 17),)}),
    ("remap[0].area", {"remap": (lay.Remap(3, 0, 1, 0),)}),
    ("fm_index", {"gm": lay.GmConfig(1, buffers=(lay.GmBuffer(fm_index=1), lay.GmBuffer()))}),
    ("buffer_type", {"gm": lay.GmConfig(1, buffers=(lay.GmBuffer(buffer_type=2), lay.GmBuffer()))}),
    ("buffer_index", {"gm": lay.GmConfig(1, buffers=(lay.GmBuffer(buffer_index=2), lay.GmBuffer()))}),
    ("odd", {"shape_limits": (lay.ShapeLimit((1,)),)}),
    (
        "expected two for each of 1 inputs",
        {"compiler": lay.CompilerMessage(0x504B4, flag=64), "shape_limits": (lay.ShapeLimit((1,)),) * 4},
    ),
    ("2 configurations for 3 cores", {"segmmu": (lay.SegMmu(),) * 2}),
    ("control 2 of segment 0", reuse(type=lay.Kind.SEGMMU, id=2)),
    ("control 0 of segment 4", reuse(type=lay.Kind.SEGMMU, id=0x400)),
    ("plain file name", {"extra_weights": lay.ExtraWeights((lay.ExtraWeight("../w+" + "0" * 64),))}),
    ("SHA-256", {"extra_weights": lay.ExtraWeights((lay.ExtraWeight("w+xyz"),))}),
    ("no shape lies", {"shape_limits": (lay.ShapeLimit((2,)), lay.ShapeLimit((1,)))}),
    ("0x1ffffffff|does not fit", {"compiler": lay.CompilerMessage(0x504B4, flag=1 << 33)}),
    ("note 'rodata'", {"other_notes": (Note("rodata", b"x"),)}),
]


@pytest.mark.parametrize(("expected", "parts"), BROKEN, ids=[str(i) for i in range(len(BROKEN))])
def test_a_broken_structure_is_not_written(expected, parts):
    import re

    pattern = expected if "|" in expected else re.escape(expected)
    with pytest.raises(AipuBinError, match=pattern):
        write(with_parts(sample(), **parts))


def renamed(data: bytes, name: str) -> bytes:
    """`data` with a note's name made unknown."""
    return data.replace(name.encode() + b"\0", name.encode()[:-1] + b"_\0")


@pytest.mark.parametrize("name", [n.name for n in NOTES if n.required])
def test_notes_that_must_be_there(name):
    with pytest.raises(AipuBinError, match=f"the note '{name}' is missing"):
        read(renamed(write(sample()), name))


@pytest.mark.parametrize("name", [".text", ".note.aipu"])
def test_sections_that_must_be_there(name):
    with pytest.raises(AipuBinError, match=f"no section '{name}'"):
        read(write(sample()).replace(name.encode() + b"\0", b"." + b"x" * (len(name) - 1) + b"\0"))


@pytest.mark.parametrize(
    ("offset", "value", "field"),
    [
        (4, 2, "EI_CLASS"),
        (5, 2, "EI_DATA"),
        (16, 1, "e_type"),
        (18, 62, "e_machine"),
        (20, 2, "e_version"),
        (50, 99, "e_shstrndx"),
    ],
)
def test_header_fields(offset, value, field):
    data = bytearray(write(sample()))
    data[offset] = value
    with pytest.raises(AipuBinError, match=f"'{field}'") as caught:
        read(bytes(data))
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes"),
        (b"AIPU BIN" + bytes(60), "old flat form"),
        (b"PK\3\4" + bytes(60), "starts with 50 4b"),
        (b"\x7fELF" + bytes(20), "truncated"),
    ],
)
def test_foreign_files(data, reason):
    with pytest.raises(AipuBinError, match=reason):
        read(data)


def test_an_overlong_compilermsg_is_refused():
    data = write(sample())
    at = data.index(b"compilermsg\0")
    longer = data[: at - 8] + (52).to_bytes(4, "little") + data[at - 4 : at + 60] + bytes(4) + data[at + 60 :]
    grown = bytearray(longer)
    shoff = int.from_bytes(data[32:36], "little")
    grown[32:36] = (shoff + 4).to_bytes(4, "little")
    for index in range(int.from_bytes(data[48:50], "little")):
        entry = shoff + 4 + 40 * index
        offset = int.from_bytes(grown[entry + 16 : entry + 20], "little")
        if offset > at:
            grown[entry + 16 : entry + 20] = (offset + 4).to_bytes(4, "little")
        elif offset and offset + int.from_bytes(grown[entry + 20 : entry + 24], "little") > at:
            size = int.from_bytes(grown[entry + 20 : entry + 24], "little")
            grown[entry + 20 : entry + 24] = (size + 4).to_bytes(4, "little")
    with pytest.raises(AipuBinError, match=r"note 'compilermsg'.*4 bytes follow"):
        read(bytes(grown))


def test_errors_name_note_field_and_offset():
    data = bytearray(write(sample()))
    at = data.index(b"fmlist\0\0") + 8
    data[at + 8 : at + 12] = (1 << 31).to_bytes(4, "little")
    with pytest.raises(AipuBinError) as caught:
        read(bytes(data))
    assert (caught.value.place, caught.value.field, caught.value.offset) == ("note 'fmlist'", "bss count", 12)
