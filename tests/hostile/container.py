"""aipu.bin files through the container reader.

Files are mutated as a whole, or note by note inside a container that stays sound, so that the checks of the container
do not shield those of the notes. A mutant must either be refused with AipuBinError, or be shown, written and read again
to the same bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Container

from compass_core.aipubin import AipuBin, AipuBinError, KernelInfo, Note, Param, describe, read, write
from compass_core.aipubin import layout as lay
from compass_core.aipubin.device import device_word
from compass_core.aipubin.graphnote import GraphNote, NotedLaunch, NotedTensor
from compass_core.aipubin.model import NOTES
from compass_core.elf.hostcode import make_text_blob, parse_text_blob
from compass_core.errors import CompassError
from tests.hostile.harness import Target, bytes_mutant, refused, without_numbers

NOTE = GraphNote(
    (NotedTensor("x", "int8", (8,), 2.0, 1),),
    (NotedTensor("y", "int8", (2, 4), (1.0, 2.0), (0, 1), 0, 1, 0, 0),),
    (NotedTensor("t", "uint8", (8,), 0.5, section=0, offset=16, made=0),),
    (NotedLaunch(("a", "b"), ("Add", "Relu"), "k", ("x",), ("y",), ("u",)),),
).to_bytes()


def full(target: str) -> AipuBin:
    """A file with every note and every kind of record in it."""
    subs = [
        lay.SubSection(size=32, type=lay.Kind.INPUT, data_type=7, references=(0,)),
        lay.SubSection(size=32, type=lay.Kind.OUTPUT, data_type=0xB, references=(4, 40)),
        lay.SubSection(offset=16, size=8, references=(12,), addr_mask=0xFFFF),
        lay.SubSection(size=4, type=lay.Kind.OUTPUT_SHAPE),
        lay.SubSection(size=4, type=lay.Kind.PROFILER),
    ]
    const = lay.SubSection(size=8, type=lay.Kind.CONSTANT, references=(8,))
    zero_copy = lay.SubSection(size=8, type=lay.Kind.ZERO_COPY)
    bss = lay.Bss(
        reuses=tuple(lay.ReuseSection(64, subs=(sub,)) for sub in subs),
        statics=(lay.StaticSection(0, 8, subs=(const,)), lay.StaticSection(8, 8, 32, (zero_copy,))),
    )
    private = lay.ReuseSection(64, subs=(lay.SubSection(size=64, references=(20,)),))
    first = lay.Subgraph(text_offset=64, params_size=16, private_buffers=(private,), desc_size=8)
    last = lay.Subgraph(text_offset=64, params_offset=16, params_size=16, precursors=None, printf_size=1024)
    middle = lay.Subgraph(text_offset=64, params_offset=16, params_size=16, precursors=(0,))
    return AipuBin(
        compiler=lay.CompilerMessage(device_word(target), flag=lay.DYNAMIC_SHAPE_FLAG),
        features=lay.FeatureMaps((bss, lay.Bss((lay.ReuseSection(8),)))),
        subgraphs=(first, middle, last),
        text=make_text_blob(b"\x7fELF" + bytes(60), ["__compass_entry_k"], "avx2", "x86_64-linux-gnu"),
        params=bytes(32),
        desc=bytes(16),
        weights=bytes(16),
        remap=(lay.Remap(lay.Area.PARAMS, 28, lay.Area.DESC, 8), lay.Remap(lay.Area.DESC, 4, lay.Area.TEXT, 0)),
        gm=lay.GmConfig(control=1),
        segmmu=(lay.SegMmu(),),
        global_params=lay.GlobalParams(8, 1, bytes(8)),
        shape_limits=(lay.ShapeLimit((1, 4)), lay.ShapeLimit((4, 4))),
        extra_weights=lay.ExtraWeights((lay.ExtraWeight("w+" + "0" * 64),)),
        hash_tables=(lay.HashTable((lay.ConstantHash(0, 8, bytes(32)),)), lay.HashTable(())),
        graph_json=NOTE,
        const_data=b"abcd",
        data=b"abcd",
        comment=f"target:{target};",
        kernel=KernelInfo(
            "k", target, (Param("a", "pointer", "int8x32", "input"), Param("n", "scalar", "int32", "attr"))
        ),
        other_notes=(Note("foreign", b"\1\2\3"),),
    )


def corpus() -> list[bytes]:
    """The files to start from: everything at once, for both device families, and nearly nothing."""
    small = AipuBin(
        compiler=lay.CompilerMessage(device_word("X2_1204")),
        features=lay.FeatureMaps((lay.Bss((lay.ReuseSection(4),)),)),
        subgraphs=(lay.Subgraph(text_offset=0, params_size=4),),
        text=bytes(8),
        params=bytes(4),
    )
    return [write(full("X2_1204")), write(full("X3P_1304MP2")), write(small)]


def notes_of(data: bytes) -> list[tuple[int, int]]:
    """(offset, size) of the payloads of the notes this toolchain knows, in a file that may be damaged."""
    found = []
    for spec in NOTES:
        name = spec.name.encode() + b"\0"
        at = data.find(struct.pack("<I", len(name)), 0)
        while at >= 0 and data[at + 12 : at + 12 + len(name)] != name:
            at = data.find(struct.pack("<I", len(name)), at + 1)
        if at >= 0 and at + 12 <= len(data):
            (size,) = struct.unpack_from("<I", data, at + 4)
            start = at + 12 + -(-len(name) // 4) * 4
            if start + size <= len(data):
                found.append((start, size))
    return found


def answer(data: bytes, known: Container[str] = (), thorough: bool = True) -> str:
    """What the reader makes of `data`, in general terms. Anything but AipuBinError comes out as it is.

    An accepted file is shown and written again when that is a `known` answer only if `thorough`.
    """
    try:
        content = read(data)
    except AipuBinError as error:
        return f"{refused(error)} {without_numbers(f'{error.place} {error.field}')}"
    try:
        code = str(len(parse_text_blob(content.text).entries))
    except CompassError:
        code = "foreign"
    counts = (len(content.subgraphs), len(content.features.bss), len(content.remap), len(content.other_notes))
    said = f"read: {counts} {content.compiler.dynamic_shape} {code}"
    if thorough or said not in known:
        for _, columns, rows in describe(content):
            assert all(len(row) == len(columns) for row in rows), "a table has rows of different lengths"
        again = write(content)
        assert write(read(again)) == again, "written and read again, the file differs"
    return said


CONTAINER = Target("container", corpus, answer, lambda pool, source: bytes_mutant(pool, source, notes_of))
