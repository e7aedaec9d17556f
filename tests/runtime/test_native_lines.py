"""The C library's reader of line tables agrees with that of the simulator, and survives damaged ones."""

from __future__ import annotations

import ctypes as c
import io

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from runtime_kernels import ADD, pointer, scalar

from compass_core.elf.hostcode import parse_text_blob
from compass_runtime import Program, clibrary
from compass_sim import engine
from compass_sim.lines import locate
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.writer import GraphWriter


@pytest.fixture(scope="module")
def line_in_text(tmp_path_factory):
    library = tmp_path_factory.mktemp("lines") / "lines.so"
    flags = ("-fPIC", "-Werror", f"-I{engine.source_folder()}")
    engine.compile_and_link([clibrary.source_folder("native") / "lines.c"], library, flags, ("-shared",))
    function = c.CDLL(str(library)).line_in_text
    function.argtypes = (c.c_char_p, c.c_size_t, c.c_uint64, c.c_char_p, c.c_size_t)
    function.restype = c.c_bool
    place = c.create_string_buffer(4096)

    def call(text, pc):
        return place.value.decode(errors="replace") if function(text, len(text), pc, place, len(place)) else None

    return call


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    """The `.text` of a graph: several objects, linked."""
    folder, graph = tmp_path_factory.mktemp("graph"), GraphWriter()
    x = graph.input("x", (2, 30), "float32")
    y = graph.layer("Activation", [x], (2, 30), "float32", method="RELU")
    top = graph.layer("Softmax", [y], (2, 30), "float32", axis=1)
    text = graph.write(folder, [top])
    options = GraphOptions(work_dir=folder / "kernels")
    path = build_model(text, folder / "weight.bin", folder / "aipu.bin", "X2_1204", options).path
    return Program.load(path).content.text


def agrees(line_in_text, text):
    """Both readers at every address; how many different lines there are."""
    elf = parse_text_blob(text).elf
    size = ELFFile(io.BytesIO(elf)).get_section_by_name(".text").data_size
    seen = set()
    for pc in range(0, size + 4, 1 + size // 2000):
        wanted = locate(elf, pc)
        assert line_in_text(text, pc) == (wanted and f"{wanted[0]}:{wanted[1]}"), hex(pc)
        seen.add(wanted)
    return len(seen)


def test_one_object(line_in_text, build):
    ends = pointer("a", "input", shape=(8,)), pointer("b", "output", shape=(8,)), scalar("n", value=8)
    assert agrees(line_in_text, Program.load(build(ADD, *ends)).content.text) > 1


def test_linked_objects(line_in_text, linked):
    assert agrees(line_in_text, linked) > 20


def test_damage_is_survived(line_in_text, linked):
    blob = parse_text_blob(linked)
    start, sections = len(linked) - len(blob.elf), ELFFile(io.BytesIO(blob.elf))
    places = [(64, sections["e_shoff"] + start, 64 * sections.num_sections())]
    for name in (".debug_line", ".debug_line_str", ".rela.debug_line", ".symtab"):
        section = sections.get_section_by_name(name)
        places.append((200, section["sh_offset"] + start, section["sh_size"]))
    rng = np.random.default_rng(1)
    answers = set()
    for count, low, size in places:
        for _ in range(count):
            data = bytearray(linked)
            for at in rng.integers(low, low + size, 1 + int(rng.integers(4))):
                data[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))]))
            answers.add(line_in_text(bytes(data), 100))
    for cut in range(0, len(linked), 997):
        assert line_in_text(linked[:cut], 100) is None
    assert None in answers and len(answers) > 2
