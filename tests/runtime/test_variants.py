"""Programs compiled again from the C text that they keep."""

import numpy as np
import pytest

from compass_core.aipubin import read
from compass_core.errors import CompassError
from compass_core.hostcc.sources import read_sources
from compass_core.hostcode import entry_symbol
from compass_core.link import Part, link
from compass_runtime import Program
from compass_runtime.variants import variant

KERNEL = "__kernel void k(__global int* a) {{ for (int i = 0; i < 4; i++) a[i] += {}; }}\n"


def test_the_same_flags_give_the_same_bytes(add_fixed):
    program = Program.load(add_fixed)
    assert variant(program, ()).content == program.content


def test_other_flags_give_other_code_with_the_same_results(add_fixed):
    program = Program.load(add_fixed)
    other = variant(program, ("-O0", "-g"))
    assert other.code.entries == program.code.entries and other.code.elf != program.code.elf
    a = np.arange(8, dtype="int32")
    results = [p.create_job().run({"a": a})["b"].ravel().tolist() for p in (program, other)]
    assert results[0] == results[1] == list(range(1, 9))


def test_the_flags_of_the_builder_are_kept(tmp_path):
    from compass_core import targets
    from compassc.toolchain import cc

    (tmp_path / "k.cl").write_text("#include <compass/dsl.h>\n" + KERNEL.format("N"))
    flags = ('-DN="3" "é\\n"[0]',)
    done = cc.compile_file(tmp_path / "k.cl", tmp_path / "k.o", cc.CcOptions(targets.load("X3P_1304"), extra=flags))
    (source,) = read_sources(done.object.read_bytes())
    assert (source.name, source.define, source.flags) == ("k.cc.cl", targets.load("X3P_1304").define, flags)
    assert source.text == (tmp_path / "k.cc.cl").read_text()


def test_linking_keeps_every_text_and_the_new_names(build):
    symbol = entry_symbol("k")
    objects = [read_object(build(KERNEL.format(n), dict(ARRAY))) for n in (5, 6)]
    linked = link([Part(str(i), elf, {symbol: f"{symbol}{i}"}) for i, elf in enumerate(objects)])
    first, second = read_sources(linked)
    assert [first.entries, second.entries] == [{symbol: symbol + "0"}, {symbol: symbol + "1"}]
    assert "+= 5" in first.text and "+= 6" in second.text


ARRAY = {"name": "a", "kind": "pointer", "dtype": "int32", "scope": "global", "role": "output", "index": 0,
         "read": True, "shape": [4]}  # fmt: skip


def read_object(path):
    return Program.load(path).code.elf


def test_a_graph_of_several_objects(tmp_path):
    from compassc.gbuilder.build import GraphOptions, build_model
    from compassc.gbuilder.writer import GraphWriter

    graph = GraphWriter()
    at = graph.input("x", (3, 40), "float32")
    for method in ("SOFTPLUS", "TANH"):
        at = graph.layer("Activation", [at], (3, 40), "float32", method=method)
    text = graph.write(tmp_path, [at])
    options = GraphOptions(work_dir=tmp_path / "kernels")
    built = build_model(text, tmp_path / "weight.bin", tmp_path / "aipu.bin", "X2_1204", options)
    program = Program.load(built.path)
    assert variant(program, ()).content == program.content


def test_a_file_without_text_says_how_to_get_it(tmp_path, monkeypatch):
    from compass_core import targets
    from compassc.toolchain import cc

    monkeypatch.setenv("COMPASS_EMBED_SOURCE", "0")
    (tmp_path / "k.cl").write_text("#include <compass/dsl.h>\n" + KERNEL.format(1))
    done = cc.compile_file(tmp_path / "k.cl", tmp_path / "k.o", cc.CcOptions(targets.load("X2_1204")))
    assert b"a[i] +=" not in done.object.read_bytes()
    with pytest.raises(CompassError, match="not in the file") as caught:
        read_sources(done.object.read_bytes())
    assert caught.value.code == "no-source" and "COMPASS_EMBED_SOURCE" in caught.value.help


@pytest.mark.parametrize("head", [b"{", b'{"name": "../x", "define": "D", "flags": []}', b'{"name": "x"}', b"[]"])
def test_a_damaged_text_is_refused(add_fixed, head):
    elf = read(add_fixed.read_bytes()).text
    start = elf.index(b'{"name": "k.cc.cl"')
    end = elf.index(b"\0", start)
    damaged = elf[:start] + head.ljust(end - start) + elf[end:]
    with pytest.raises(CompassError, match="damaged"):
        read_sources(damaged[damaged.index(b"\x7fELF") :])


@pytest.mark.parametrize(
    "flag", ["-fplugin=./x.so", "-Wp,-MD,file", "-mllvm", "@file", "/etc/passwd", "-o", "-Xclang", "-Bdir"]
)
def test_a_file_cannot_give_the_compiler_options_that_load_or_write(add_fixed, flag):
    import json

    from compass_core.elf64 import section
    from compass_core.hostcc import sources

    content = section(Program.load(add_fixed).code.elf, sources.SECTION)
    head, rest = content.split(b"\0", 1)
    harmless = ["-O3", "-DX=a b", "-D", "Y=1", "-g", "-Wno-unused", "-mavx2", "-ffast-math", "-I", "/x y"]
    for flags, refused in ((harmless, False), ([*harmless, flag], True)):
        changed = json.dumps(json.loads(head) | {"flags": flags}).encode() + b"\0" + rest
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sources, "section", lambda elf, name, changed=changed: changed)
            if refused:
                with pytest.raises(CompassError, match="is not taken from a file"):
                    read_sources(b"")
            else:
                assert read_sources(b"")[0].flags == tuple(flags)
