"""Files made to harm whoever reads them: each is refused with a message, in little time and memory."""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from compass_core.elf import link
from compass_core.elf.elf64 import EHDR, SHDR
from compass_core.errors import CompassError, Span, render
from compass_core.errors.excerpts import digest
from compass_core.hostcc import origins
from compass_core.reading import jsontext
from compass_runtime import Program
from compass_runtime.module import FORMAT, HostModule, load_module, pack, unpack
from compass_sim.lines import locate
from compassc.driver import Request, run_build
from tests.choosing import some
from tests.hostile.targets import stage_files

KERNEL = """
from compassc.dsl import script as S

@S.prim_func
def far(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    b[0] = a[n]  # the secret line
"""


def cli(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command with 30 s and 2 GiB."""
    command = ["sh", "-c", 'ulimit -v 2097152; exec "$@"', "sh", sys.executable, "-m", "compassc", *map(str, words)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=30, check=False)


# ---------------------------------------------------------------------------------------------------- lines of sources


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    """A program that faults at a line of kernel.py, and a function that runs it and gives the error as text."""
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "kernel.py"
    source.write_text(KERNEL, encoding="utf-8")
    request = Request("X2_1204", source, shapes={"a": (8,), "b": (8,)}, values={"n": -0x10000000}, fix_shapes=False)
    run_build(request)
    program = Program.load(tmp_path / "aipu.bin")

    def shown() -> str:
        with pytest.raises(CompassError) as caught:
            program.call([np.zeros(8, "int32"), np.zeros(8, "int32"), -0x10000000])
        assert caught.value.span is not None and caught.value.span.file.endswith("kernel.py")
        return render(caught.value)

    return source, shown


def test_a_fault_shows_the_line_of_the_source_as_it_was_built_and_of_no_other_file(faulty):
    source, shown = faulty
    assert "the secret line" in shown()
    source.write_text(KERNEL.replace("the secret line", "another secret"), encoding="utf-8")
    assert "secret" not in shown()
    source.unlink()
    os.mkfifo(source)
    assert ".py:" in shown()


def test_lines_are_shown_of_known_content_only(tmp_path):
    file = tmp_path / "secret"
    file.write_text("the key\n", encoding="utf-8")
    content = digest(file.read_bytes())
    for built, expected in (
        (None, True),
        (frozenset({content}), True),
        (frozenset({"0" * 64}), False),
        (frozenset(), False),
    ):
        assert ("the key" in render(CompassError("x", Span(str(file), 1, built=built)))) == expected


@pytest.mark.parametrize("name", ["secret", "pipe", "/dev/zero", "/dev/tty"])
def test_a_text_that_names_other_files_in_line_directives(tmp_path, name):
    (tmp_path / "secret").write_text("password=x\n" * 3, encoding="utf-8")
    os.mkfifo(tmp_path / "pipe")
    text = f'#include <compass/dsl.h>\n__kernel void k(__global int* a) {{\n#line 1 "{name}"\na[0] = nothing;\n}}\n'
    (tmp_path / "k.cl").write_text(text, encoding="utf-8")
    done = cli("cc", "k.cl", "-t", "X2_1204", cwd=tmp_path)
    assert done.returncode == 1
    assert f"{name}:1" in done.stderr and "nothing" in done.stderr and "password" not in done.stderr


def test_a_linked_object_notes_the_sources_of_its_parts():
    elf = stage_files()[".o"]
    assert len(origins.read(elf)) == 2
    parts = [link.Part(name, elf, {"__compass_entry_vadd": name}) for name in ("a", "b")]
    assert origins.read(link.link(parts)) == origins.read(elf)


# ---------------------------------------------------------------------------------------------------- debug information


def with_compressed(elf: bytes, name: bytes, size: int, packed: bytes) -> bytes:
    """The object, the section `name` of which is compressed and says that it has `size` bytes."""
    header = EHDR.unpack_from(elf)
    rows = [list(SHDR.unpack_from(elf, header[6] + i * SHDR.size)) for i in range(header[12])]
    names = rows[header[13]][4]
    out = bytearray(elf)
    for i, row in enumerate(rows):
        if elf[names + row[0] :].startswith(name + b"\0"):
            content = struct.pack("<IIQQ", 1, 0, size, 1) + packed
            row[2], row[4], row[5] = row[2] | 0x800, len(out), len(content)
            out += content
            SHDR.pack_into(out, header[6] + i * SHDR.size, *row)
    return bytes(out)


def test_compressed_debug_sections_are_read_up_to_a_limit():
    elf = stage_files()[".o"]
    place = locate(elf, 30)
    assert place is not None
    header = EHDR.unpack_from(elf)
    rows = [SHDR.unpack_from(elf, header[6] + i * SHDR.size) for i in range(header[12])]
    names = rows[header[13]][4]
    strings = next(r for r in rows if elf[names + r[0] :].startswith(b".debug_line_str\0"))
    content = elf[strings[4] : strings[4] + strings[5]]
    assert locate(with_compressed(elf, b".debug_line_str", len(content), zlib.compress(content)), 30) == place
    squeeze = zlib.compressobj(9)
    bomb = b"".join(squeeze.compress(bytes(1 << 20)) for _ in range(64)) + squeeze.flush()
    for size in (1 << 26, 1 << 40):
        with pytest.raises(CompassError) as caught:
            locate(with_compressed(elf, b".debug_line_str", size, bomb), 30)
        assert caught.value.code == "limit-exceeded"
    with pytest.raises(CompassError) as caught:
        locate(with_compressed(elf, b".debug_line_str", 2, bomb), 30)
    assert caught.value.code == "bad-debug-info"


def test_a_fault_in_a_program_with_damaged_debug_information_is_told_without_a_line():
    from compass_runtime.faults import locate_fault
    from compass_sim import KernelFault

    elf = bytearray(stage_files()[".o"])
    header = EHDR.unpack_from(elf)
    for i in range(1, header[12]):
        row = list(SHDR.unpack_from(elf, header[6] + i * SHDR.size))
        row[4] = 1 << 60
        if i != header[13]:
            SHDR.pack_into(elf, header[6] + i * SHDR.size, *row)
    error = type("Fault", (KernelFault,), {"pc": 20, "__init__": CompassError.__init__})("the kernel stopped")
    locate_fault(error, bytes(elf))
    assert error.span is None and "the line is not known" in error.notes[0].message


# --------------------------------------------------------------------------------------------------------------- modules


def archive(*members: tarfile.TarInfo, contents: dict[str, bytes] | None = None) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, data in (contents or {}).items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for member in members:
            tar.addfile(member)
    return out.getvalue()


def member(name: str, type: bytes, size: int = 0, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = type, size, target
    return info


DESCRIPTION = {"format": FORMAT, "modules": [{"type_key": "runtime.HostModule", "imports": []}]}


@pytest.mark.parametrize(
    "odd",
    [
        member("module0.bin", tarfile.GNUTYPE_SPARSE, 1 << 40),
        member("module0.bin", tarfile.SYMTYPE, target="module.json"),
        member("module0.bin", tarfile.LNKTYPE, target="module.json"),
        member("x", tarfile.XHDTYPE, 1 << 33),
    ],
    ids=["sparse", "symbolic link", "hard link", "extended header"],
)
def test_archives_with_anything_but_whole_files_are_refused(odd):
    data = archive(odd, contents={"module.json": json.dumps(DESCRIPTION).encode()})
    with pytest.raises(CompassError, match="no file that is there in full") as caught:
        unpack(data, "m.so")
    assert caught.value.code == "module-file"


def test_shared_imports_cost_no_more_than_there_are():
    """Two modules per level that both import both of the next: 2**300 ways through it."""
    top = HostModule()
    level = [top]
    for _ in range(300):
        below = [HostModule(), HostModule()]
        for module in level:
            for other in below:
                module.import_module(other)
        level = below
    read = unpack(pack(top), "m.so")
    assert len(read.tree()) == 601
    assert not read.implements_function("f", query_imports=True)


def test_module_files_have_a_most_of_modules_and_imports(tmp_path):
    many = {"format": FORMAT, "modules": [DESCRIPTION["modules"][0]] * 2000}
    edges = {"format": FORMAT, "modules": [{"type_key": "runtime.HostModule", "imports": [1] * 5000}] * 2}
    for description in (many, edges):
        (tmp_path / "m.so").write_bytes(archive(contents={"module.json": json.dumps(description).encode()}))
        with pytest.raises(CompassError) as caught:
            load_module(tmp_path / "m.so")
        assert caught.value.code == "limit-exceeded"


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a\nb", "\x1b[2J"])
def test_functions_of_module_files_have_names(name):
    """A user's hook that sees the tensors of a function may well call a file by it."""
    from compass_runtime.compass_module import CompassModule, load_content

    fields = json.dumps({"func_name": name, "with_profile": False, "target": "X2_1204"}).encode()
    with pytest.raises(CompassError) as caught:
        load_content(len(fields).to_bytes(4, "little") + fields)
    assert caught.value.code == "module-file"
    with pytest.raises(CompassError):
        CompassModule(b"", name)


# ------------------------------------------------------------------------------------------------------------------ JSON


@pytest.mark.parametrize("depth", [257, 100_000])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_deep_json_is_refused(depth, begin, end):
    with pytest.raises(CompassError) as caught:
        jsontext.parse(begin * depth + "1" + end * depth, "x.json")
    assert caught.value.code == "limit-exceeded"


def test_json_up_to_the_limit_is_read():
    assert jsontext.parse("[" * 256 + "]" * 256, "x.json")
    with pytest.raises(CompassError, match="no JSON"):
        jsontext.parse("9" * 5000, "x.json")


# ------------------------------------------------------------------------------------------------------------ stage files

YAML_BOMB = "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*{'a' if i == 0 else f'b{i - 1}'}, *a]\n" for i in range(30))
LEGAL = '@I.module(target="X2_1204", entry="k")\nclass Module:\n    @T.func\n    def k() -> T.void:\n        pass\n'
DAMAGED = {
    "k.params.json": [
        "[" * 5000,
        "{}",
        '{"format": "compassc-params/1", "target": "X2_1204", "params": [1]}',
        "\0",
        "9" * 9999,
    ],
    "k.cl.map": ["[" * 5000, '{"files": [1], "lines": [[0, 1]]}', '{"files": ["a\\nb"], "lines": [[0, 1]]}', "[]"],
    "build.yaml": [YAML_BOMB, "[" * 5000, "a: !!python/object:os.system x", "x" * 300_000, "stages: 1", "stages: [[]]"],
    "k.ir.txt": [
        "(" * 190,
        "-" * 5000 + "1",
        "x." * 50000 + "y",
        "\0",
        "@I.module(target=1, entry=2)\nclass M: x",
        "@I.module(target='X2_1204', entry='k')\nclass M:\n  def k():\n    T.load(1)\n",
    ],
    "k.lowered.txt": ["if 1:\n" + "".join(" " * i + "if 1:\n" for i in range(1, 90)) + " " * 90 + "pass"],
    "k.legal.txt": [
        "",
        LEGAL,
        LEGAL + "# interface of the kernel\n",
        LEGAL + "# interface of the kernel\n# []\n",
        LEGAL + '# interface of the kernel\n# {"params": 1}\n',
        LEGAL + "# interface of the kernel\n# " + "[" * 5000,
    ],
    "aipubt_gb_k.py": ["compassc_kernel = " + "[" * 150 + "]" * 150, "compassc_kernel = 'x'", "-" * 5000 + "1"],
    "k.o": ["\x7fELF\x02\x01", "\x7fELF\x02\x01" + "\x7f" * 300, ""],
    "m.json": ["[" * 5000, "\ud800"],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_stage_files_are_refused(tmp_path, name):
    from compassc.cli.inspecting import describe_file

    for text in some(DAMAGED[name]):
        (tmp_path / name).write_bytes(text.encode("utf-8", "surrogatepass"))
        with pytest.raises(CompassError):
            describe_file(tmp_path / name)


def test_an_ill_formed_module_is_refused_before_any_pass(tmp_path):
    text = stage_files()[".ir.txt"].decode().replace("n: T.int32", "n: T.float32")
    (tmp_path / "k.ir.txt").write_text(text, encoding="utf-8")
    done = cli("lower", "k.ir.txt", "-o", "-", cwd=tmp_path)
    assert done.returncode == 1 and "ir-text" in done.stderr


@pytest.mark.parametrize("command", ["lower", "legalize", "codegen", "cc", "inspect", "gbuild"])
def test_devices_are_no_source_files(tmp_path, command):
    (tmp_path / "k.ir.txt").symlink_to("/dev/zero")
    done = cli(command, "/dev/zero" if command != "gbuild" else "k.ir.txt", cwd=tmp_path)
    assert done.returncode in (1, 2) and "Traceback" not in done.stderr


# ----------------------------------------------------------------------------------------------------- sizes in small files


def test_a_small_file_cannot_ask_for_gigabytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(KERNEL, encoding="utf-8")
    run_build(Request("X2_1204", tmp_path / "kernel.py", shapes={"a": (8,), "b": (500_000_000,)}, values={"n": 1}))
    path = tmp_path / "aipu.bin"
    assert path.stat().st_size < 20_000
    assert Program.load(path).create_job().outputs[0].nbytes == 2_000_000_000  # of one's own it may
    monkeypatch.setenv("COMPASS_STATE_DIR", str(tmp_path / "another user"))
    with pytest.raises(CompassError, match="COMPASS_TENSOR_MEMORY") as caught:
        Program.load(path).create_job()
    assert caught.value.code == "limit-exceeded"
    assert Program.load(path, trusted=True).create_job()


def test_graphs_have_a_most_of_layers():
    from compassc.graph.sections import parse

    text = "model_name=x\n\n" + "layer_id=0\n\n" * 20_001
    with pytest.raises(CompassError) as caught:
        parse(text)
    assert caught.value.code == "limit-exceeded" and caught.value.span is not None


def test_tables_of_files_are_about_as_long_as_these(tmp_path):
    """Lines as long as the longest name, for each of many names, would take hours."""
    from compassc.cli.inspecting import describe_file
    from compassc.cli.tables import tables_text

    names = {"x" * 1_000_000: 0, **{f"name{i}": i for i in range(20_000)}}
    (tmp_path / "m.json").write_text(json.dumps(names), encoding="utf-8")
    assert len(tables_text(describe_file(tmp_path / "m.json"))) < 10_000_000


# ------------------------------------------------------------------------------------------------------------ the engine


def changed_section(elf: bytes, index: int, **fields: int) -> bytes:
    """The object with other values in the header of a section: `type`, `flags`, `offset`, `size`."""
    header, out = EHDR.unpack_from(elf), bytearray(elf)
    row = list(SHDR.unpack_from(elf, header[6] + index * SHDR.size))
    for name, value in fields.items():
        row[{"type": 1, "flags": 2, "offset": 4, "size": 5}[name]] = value
    SHDR.pack_into(out, header[6] + index * SHDR.size, *row)
    return bytes(out)


def test_the_engine_takes_no_bytes_from_outside_the_object():
    """String tables without bytes, and loaded sections of type 0, which no check of offsets covered."""
    from dataclasses import replace

    from compass_core.elf.hostcode import make_text_blob, parse_text_blob

    monster = 1 << 30
    elf = stage_files()[".o"]
    header = EHDR.unpack_from(elf)
    rows = [SHDR.unpack_from(elf, header[6] + i * SHDR.size) for i in range(header[12])]
    strings = next(row[6] for row in rows if row[1] == 2)
    plain = next(i for i, row in enumerate(rows) if row[1] == 1 and not row[2] & 2)
    whole = Program.load(stage_files()["aipu.bin"])
    for damaged in (
        changed_section(elf, strings, type=8, offset=monster, size=monster),
        changed_section(elf, header[13], type=8, offset=monster, size=monster),
        changed_section(elf, plain, type=0, flags=2, offset=monster, size=4096),
    ):
        blob = parse_text_blob(whole.content.text)
        text = make_text_blob(damaged, [symbol for symbol, _ in blob.entries], blob.features, blob.triple, blob.asids)
        program = Program(replace(whole.content, text=text), "x.bin")
        with pytest.raises(CompassError) as caught:
            program.create_job().run({info.name: np.zeros(info.shape or (), "int32") for info in program.inputs})
        assert caught.value.code == "job-refused", caught.value
