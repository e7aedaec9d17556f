"""Programs compiled again from the C text that they keep."""

import numpy as np
import pytest

from compass_core import targets
from compass_core.aipubin import read
from compass_core.elf.elf64 import section
from compass_core.elf.hostcode import entry_symbol
from compass_core.elf.link import Part, link
from compass_core.errors import CompassError
from compass_core.hostcc.foreign import compile_source
from compass_core.hostcc.sources import own_text, read_sources
from compass_runtime import Program
from compass_runtime.variants import variant
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.writer import GraphWriter
from compassc.toolchain import cc

KERNEL = "__kernel void k(__global int* a) {{ for (int i = 0; i < 4; i++) a[i] += {}; }}\n"


def test_the_same_flags_give_the_same_code(add_fixed):
    program = Program.load(add_fixed)
    other = variant(program, ())
    assert other.code.entries == program.code.entries
    assert section(other.code.elf, ".text") == section(program.code.elf, ".text")
    assert read_sources(other.code.elf) == read_sources(program.code.elf)


def test_other_flags_give_other_code_with_the_same_results(add_fixed):
    program = Program.load(add_fixed)
    other = variant(program, ("-O0", "-g"))
    assert other.code.entries == program.code.entries and other.code.elf != program.code.elf
    a = np.arange(8, dtype="int32")
    results = [p.create_job().run({"a": a})["b"].ravel().tolist() for p in (program, other)]
    assert results[0] == results[1] == list(range(1, 9))


def test_macros_of_the_builder_and_known_options_are_kept(tmp_path):
    flags = ('-DN="3" "é\\n"[0]', "-D", "F(x)=x+1", "-DONE", "-UTWO", "-O3", "-Wno-unused", "-mno-avx512f")
    source = kept_source(tmp_path, KERNEL.format("F(N) + ONE"), flags)
    assert source.define == targets.load("X3P_1304").define and source.options == ("-O3", "-mno-avx512f")
    assert source.macros == (("N", '"3" "é\\n"[0]'), ("F(x)", "x+1"), ("ONE", "1"), ("TWO", None))
    assert source.text == own_text((tmp_path / "k.cc.cl").read_text())
    assert compile_source(source, ("-O0",))


def test_a_text_that_includes_other_files_is_kept_with_them(tmp_path):
    (tmp_path / "inc").mkdir()
    (tmp_path / "mine.h").write_text("#define N 4 + D\n")
    (tmp_path / "inc" / "more.h").write_text("static int more(int x) { return x; }\n")
    text = '#include "mine.h"\n#include <more.h>\n' + KERNEL.format("more(N)")
    source = kept_source(tmp_path, text, ("-I", str(tmp_path / "inc"), "-D", "D=1"))
    assert "+= more(4 + 1)" in source.text and "#include" not in source.text and not source.macros + source.options
    (tmp_path / "mine.h").unlink()
    assert compile_source(source, ("-O0",))


def kept_source(folder, text, flags):
    (folder / "k.cl").write_text("#include <compass/dsl.h>\n" + text)
    options = cc.CcOptions(targets.load("X3P_1304"), extra=flags)
    (source,) = read_sources(cc.compile_file(folder / "k.cl", folder / "k.o", options).object.read_bytes())
    return source


def test_linking_keeps_every_text_and_the_new_names(build):
    symbol = entry_symbol("k")
    objects = [read_object(build(KERNEL.format(n), dict(ARRAY))) for n in (5, 6)]
    linked = link([Part(str(i), elf, {symbol: f"{symbol}{i}"}) for i, elf in enumerate(objects)])
    first, second = read_sources(linked)
    assert [first.entries, second.entries] == [{symbol: symbol + "0"}, {symbol: symbol + "1"}]
    assert "+= 5" in first.text and "+= 6" in second.text


ARRAY = {
    "name": "a",
    "kind": "pointer",
    "dtype": "int32",
    "scope": "global",
    "role": "output",
    "index": 0,
    "read": True,
    "shape": [4],
}


def read_object(path):
    return Program.load(path).code.elf


def test_a_graph_of_several_objects(tmp_path):
    graph = GraphWriter()
    at = graph.input("x", (3, 40), "float32")
    for method in ("SOFTPLUS", "TANH"):
        at = graph.layer("Activation", [at], (3, 40), "float32", method=method)
    text = graph.write(tmp_path, [at])
    options = GraphOptions(work_dir=tmp_path / "kernels")
    built = build_model(text, tmp_path / "weight.bin", tmp_path / "aipu.bin", "X2_1204", options)
    program = Program.load(built.path)
    other = variant(program, ())
    assert other.code.entries == program.code.entries
    assert section(other.code.elf, ".text") == section(program.code.elf, ".text")


def test_a_file_without_text_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPASS_EMBED_SOURCE", "0")
    (tmp_path / "k.cl").write_text("#include <compass/dsl.h>\n" + KERNEL.format(1))
    done = cc.compile_file(tmp_path / "k.cl", tmp_path / "k.o", cc.CcOptions(targets.load("X2_1204")))
    assert b"a[i] +=" not in done.object.read_bytes()
    with pytest.raises(CompassError, match="not in the file") as caught:
        read_sources(done.object.read_bytes())
    assert caught.value.code == "no-source" and "COMPASS_EMBED_SOURCE" in caught.value.help


@pytest.mark.parametrize("head", [b"{", b'{"name": "../x", "define": "D"}', b'{"name": "x"}', b"[]"])
def test_a_damaged_text_is_refused(add_fixed, head):
    elf = read(add_fixed.read_bytes()).text
    start = elf.index(b'{"name": "k.cc.cl"')
    end = elf.index(b"\0", start)
    damaged = elf[:start] + head.ljust(end - start) + elf[end:]
    with pytest.raises(CompassError, match="damaged"):
        read_sources(damaged[damaged.index(b"\x7fELF") :])
