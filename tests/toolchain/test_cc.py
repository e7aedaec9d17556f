"""The cc stage: entry functions, line directives down to DWARF and clang's errors, the cache, the log."""

import json
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from compass_core import targets
from compass_core.errors import CompassError, ErrorGroup, ToolchainError, render
from compass_core.files.cache import Cache
from compass_core.hostcc import command, host, pch
from compass_core.hostcc.clang import find_clang
from compassc.toolchain import cc, diagnostics, unit

TEXT = """#include <compass/dsl.h>

__kernel void vadd(__global int* a, __global int* b);

__kernel void vadd(__global int* a, __global int* b) {
  b[0] = (a[0] + 1);
  b[1] = (a[1] + 2);
  barrier(CLK_LOCAL_MEM_FENCE);
}
"""
PLACES = [None, None, None, None, 11, 12, 12, 11, None]


@pytest.fixture(scope="module", autouse=True)
def cache_folder(tmp_path_factory):
    """One cache for the module, so that the header is precompiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COMPASS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        patch.delenv("COMPASS_CACHE", raising=False)
        yield


@pytest.fixture
def options():
    return cc.CcOptions(targets.load("X2_1204"))


def write(folder: Path, text: str = TEXT, name: str = "vadd") -> Path:
    folder.mkdir(exist_ok=True)
    source = folder / f"{name}.cl"
    source.write_text(text)
    places = [None if place is None else [0, place] for place in PLACES]
    Path(f"{source}.map").write_text(json.dumps({"files": ["kernel.py"], "lines": places}))
    return source


def dwarf_lines(path: Path) -> set[tuple[str, int]]:
    """(file, line) pairs of the object's line table."""
    with path.open("rb") as stream:
        dwarf = ELFFile(stream).get_dwarf_info()
        found = set()
        for compilation in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(compilation)
            for entry in program.get_entries():
                if entry.state is not None and entry.state.line:
                    file = program.header["file_entry"][entry.state.file]
                    found.add((file.name.decode(), entry.state.line))
    return found


def test_debug_information_names_lines_of_the_python_file(tmp_path, options):
    done = cc.compile_file(write(tmp_path), tmp_path / "vadd.o", options)
    lines = dwarf_lines(done.object)
    assert {("kernel.py", 11), ("kernel.py", 12)} <= lines
    assert not [line for file, line in lines if file == "kernel.py" and line not in (11, 12)]


def test_a_text_is_complete_whose_lines_bring_headers_of_the_dialect_alone():
    for text in (
        "",
        "#include <compass/dsl.h>",
        "x #include <a.h>",
        "/* #include <a.h> */",
        "__has_includes",
        "#includes",
        "#define A(x) #x\\\n include",
    ):
        assert command.is_complete(f"{text}\n", ()), text
    for text in (
        "#include <a.h>",
        " \t# include <a.h>",
        "x\n#embed <a>",
        "#import <a.h>",
        "#if __has_include(<a.h>)",
        "#include <compass/../a.h>",
        "%:include <a.h>",
        "\f#include <a.h>",
        "x\r#include <a.h>",
        "/* */ #include <a.h>",
        "# /* */ include <a.h>",
        "#\\\ninclude <a.h>",
        "#inc\\\nlude <a.h>",
        "??=include <a.h>",
        "#include A",
    ):
        assert not command.is_complete(f"{text}\n", ()), text
    assert not command.is_complete("", ("-include", "a.h"))


def test_the_object_has_entries_and_says_what_host_it_needs(tmp_path, options):
    text = TEXT + TEXT.split("\n\n", 2)[2].replace("vadd", "other")
    done = cc.compile_file(write(tmp_path, text), tmp_path / "vadd.o", options)
    with done.object.open("rb") as stream:
        names = {symbol.name for symbol in ELFFile(stream).get_section_by_name(".symtab").iter_symbols()}
    assert {"__compass_entry_vadd", "__compass_entry_other"} <= names
    assert host.read_stamp(done.object.read_bytes()) == host.current()


def test_clang_errors_are_at_the_python_line(tmp_path, options):
    source = write(tmp_path, TEXT.replace("a[0] + 1", "a[0] + x").replace("a[1] + 2", "y"))
    with pytest.raises(ErrorGroup) as caught:
        cc.compile_file(source, tmp_path / "vadd.o", options)
    assert [(e.span.file, e.span.line) for e in caught.value.errors] == [("kernel.py", 12), ("kernel.py", 12)]
    assert "in the generated C: b[0] = (a[0] + x);" in render(caught.value)
    assert not (tmp_path / "vadd.o").exists()
    assert "use of undeclared identifier" in (tmp_path / "vadd.cc.log").read_text()


def test_without_a_map_errors_are_at_the_line_of_the_text(tmp_path, options):
    source = write(tmp_path, TEXT.replace("a[0] + 1", "x"))
    Path(f"{source}.map").unlink()
    with pytest.raises(CompassError) as caught:
        cc.compile_file(source, tmp_path / "vadd.o", options)
    assert (Path(caught.value.span.file), caught.value.span.line) == (source, 6)


def test_the_log_has_the_command_that_makes_the_object(tmp_path, options):
    done = cc.compile_file(write(tmp_path), tmp_path / "vadd.o", options)
    folder, command = (line.partition(": ")[2] for line in done.log.read_text().splitlines()[:2])
    made = done.object.read_bytes()
    done.object.unlink()
    subprocess.run(command, shell=True, cwd=folder, check=True)
    assert done.object.read_bytes() == made


def test_a_dry_run_prints_lines_that_work_when_pasted(tmp_path, options, monkeypatch):
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "an empty cache"))
    lines = cc.dry_run(write(tmp_path / "a folder"), tmp_path / "a folder" / "vadd.o", options)
    assert not (tmp_path / "a folder" / "vadd.o").exists()
    subprocess.run("\n".join(lines), shell=True, check=True)
    assert (tmp_path / "a folder" / "vadd.o").exists()


def test_the_object_depends_on_its_content_not_on_its_place(tmp_path, options):
    first = cc.compile_file(
        write(tmp_path / "a"), tmp_path / "a" / "vadd.o", cc.CcOptions(options.target, use_cache=False)
    )
    second = cc.compile_file(write(tmp_path / "b"), tmp_path / "b" / "vadd.o", options)
    third = cc.compile_file(write(tmp_path / "c"), tmp_path / "c" / "vadd.o", options)
    assert (first.cached, third.cached) == (False, True)
    assert first.object.read_bytes() == second.object.read_bytes() == third.object.read_bytes()


@pytest.mark.parametrize("change", ["text", "flags", "target"])
def test_the_cache_tells_inputs_apart(tmp_path, options, change):
    cc.compile_file(write(tmp_path), tmp_path / "vadd.o", options)
    text = TEXT.replace("+ 1", f"+ {len(change)}00") if change == "text" else TEXT
    flags = ("-DX=1",) if change == "flags" else ()
    target = targets.load("X3P_1304") if change == "target" else options.target
    changed = cc.CcOptions(target, extra=flags)
    assert not cc.compile_file(write(tmp_path, text), tmp_path / "vadd.o", changed).cached
    assert cc.compile_file(write(tmp_path, text), tmp_path / "vadd.o", changed).cached


@pytest.mark.parametrize("flags", ["-I inc", "-Iinc", "-iquoteinc", "-include inc/more.h -I inc"])
def test_included_files_are_read_every_time(tmp_path, options, monkeypatch, flags):
    """What they say is not in the cache's key. Their folders count from the working directory."""
    monkeypatch.chdir(tmp_path)
    source = write(tmp_path / "text", TEXT.replace("\n", '\n#include "more.h"\n', 1).replace("+ 2", "+ MORE"))
    (tmp_path / "inc").mkdir()
    plain = cc.compile_file(write(tmp_path / "plain"), tmp_path / "plain.o", options).commands[0]
    objects = set()
    for value in (1000, 2000):
        (tmp_path / "inc" / "more.h").write_text(f"#define MORE {value}\n")
        made = cc.compile_file(source, tmp_path / "out" / "k.o", replace(options, extra=tuple(flags.split())))
        objects.add(made.object.read_bytes())
        assert f"{tmp_path}/inc" in made.commands[0] and not made.cached
    assert len(objects) == 2
    assert made.commands[0][made.commands[0].index("-include-pch") + 1] == plain[plain.index("-include-pch") + 1]


def test_files_beside_the_text_are_found_after_our_headers(tmp_path, options):
    text = TEXT.replace("<compass/dsl.h>", '"compass/dsl.h"').replace("\n", '\n#include "more.h"\n', 1)
    source = write(tmp_path / "text", text.replace("+ 2", "+ MORE"))
    (tmp_path / "text" / "more.h").write_text("#define MORE 3\n")
    (tmp_path / "text" / "compass").mkdir()
    (tmp_path / "text" / "compass" / "dsl.h").write_text("#error not ours\n")
    assert cc.compile_file(source, tmp_path / "out" / "k.o", options).object.is_file()


def test_a_precompiled_header_belongs_to_its_folder(tmp_path, options, monkeypatch):
    """Another checkout with the same headers has its own: headers may change in one of them."""
    used = []
    for name in ("one", "two"):
        folder = Path(shutil.copytree(command.include_folder(), tmp_path / name))
        with monkeypatch.context() as patch:
            patch.setattr(command, "include_folder", lambda folder=folder: folder)
            patch.setattr(command, "headers_hash", lambda: "the same")
            patch.setattr(command, "changed_headers", lambda: None)
            made = cc.compile_file(
                write(tmp_path / f"{name}.text"), tmp_path / f"{name}.o", replace(options, use_cache=False)
            )
        used.append(made.commands[0][made.commands[0].index("-include-pch") + 1])
        (folder / "compass" / "dsl.h").write_text("#error changed")
    assert len(set(used)) == 2


def test_threads_have_a_precompiled_header_made_once(tmp_path, monkeypatch):
    """One that wants it while another thread makes it waits for that."""
    cache, made, found = Cache(tmp_path / "cache"), [], []
    other = threading.Thread(target=lambda: found.append(pch.precompiled_header(find_clang(), [], cache)))

    def run(line, *_):
        made.append(Path(line[-1]))
        made[-1].write_bytes(b"a header")
        if len(made) == 1:
            other.start()
            other.join(0.1)
        return command.Run(0, "")

    monkeypatch.setattr(command, "run", run)
    path = pch.precompiled_header(find_clang(), [], cache)
    other.join()
    assert len(made) == 1 and found == [path] and path.read_bytes() == b"a header"


def test_a_precompiled_header_that_is_begun_is_the_one_that_is_asked_for(tmp_path, monkeypatch):
    """One that cannot be made is told to whoever asks for it, and one that is there is not made again."""
    cache, made = Cache(tmp_path / "cache"), []

    def run(line, *_):
        made.append(threading.current_thread())
        Path(line[-1]).write_bytes(b"a header")
        return command.Run(1 if "-DWRONG" in line else 0, "")

    monkeypatch.setattr(command, "run", run)
    for _ in range(2):
        pch.begin(find_clang(), [], cache)
        for thread in [t for t in threading.enumerate() if t.name == "compass-pch"]:
            thread.join()
    assert pch.precompiled_header(find_clang(), [], cache).read_bytes() == b"a header"
    assert len(made) == 1 and made[0] is not threading.current_thread()
    pch.begin(find_clang(), ["-DWRONG"], cache)
    with pytest.raises(ToolchainError, match="do not compile"):
        pch.precompiled_header(find_clang(), ["-DWRONG"], cache)


def test_headers_that_change_under_a_process_are_told(tmp_path, options, monkeypatch):
    """Nothing is kept under the key of headers that are gone, and clang's refusal says what is to be done."""
    assert command.headers_hash() and command.changed_headers() is None
    (tmp_path / "compass").mkdir()
    (tmp_path / "compass" / "dsl.h").write_text("#define OTHER 1\n")
    monkeypatch.setattr(command, "include_folder", lambda: tmp_path)
    cache = Cache(tmp_path / "cache")
    with pytest.raises(ToolchainError, match="changed since this process") as caught:
        pch.precompiled_header(find_clang(), [], cache)
    assert caught.value.code == "bad-headers" and "anew" in caught.value.help
    assert not pch.pch_path(find_clang(), [], cache).exists()
    said = "fatal error: file 'memory.h' has been modified since the precompiled header was built"
    assert diagnostics.compile_error(said, tmp_path, tmp_path, frozenset()).code == "bad-headers"


def test_parallel_builds_share_a_new_cache(tmp_path, options, monkeypatch):
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path / "cache"))

    def work(number: int) -> bytes:
        folder = tmp_path / str(number)
        return cc.compile_file(write(folder), folder / "vadd.o", options).object.read_bytes()

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(work, range(4)))) == 1


def test_the_parentheses_of_generated_loops_and_addresses_are_no_warning(tmp_path, options):
    loop = "  while ((n == 3)){\n    n = a[0] + (int)a;\n  }\n"
    text = f"__kernel void k(__global int* a, int n) {{\n{loop}" + END
    assert cc.compile_file(write(tmp_path, text), tmp_path / "vadd.o", options).warnings == ""


def test_warnings_are_told_on_a_cache_hit_too(tmp_path, options):
    source = write(tmp_path, "#warning careful\n" + TEXT)
    first = cc.compile_file(source, tmp_path / "vadd.o", options)
    second = cc.compile_file(source, tmp_path / "vadd.o", options)
    assert second.cached
    assert "careful" in first.warnings
    assert first.warnings == second.warnings


def test_headers_that_do_not_compile_are_the_toolchains_fault(tmp_path, options):
    with pytest.raises(ToolchainError, match="headers"):
        cc.compile_file(write(tmp_path), tmp_path / "vadd.o", cc.CcOptions(options.target, extra=("-Dint=nonsense;",)))


HEAD = "#include <compass/dsl.h>\n"


@pytest.mark.parametrize(
    ("prototype", "arguments"),
    [
        ("__kernel void k(void) {}", ""),
        ("__kernel _CLC_INLINE void k(__global half* A, uchar n) {}", "P(__global half, 0), S(uchar, 1)"),
        (
            "kernel void k(__global const float *restrict A,\n  __constant uchar* B) {}",
            "P(__global const float, 0), P(__constant uchar, 1)",
        ),
        ("/* __kernel void old(int x) { */ __kernel void k(const int n) {}", "S(int, 0)"),
        ("__kernel __attribute__((reqd_work_group_size(4, 1, 1))) void k(__global int8* A) {}", "P(__global int8, 0)"),
    ],
)
def test_the_entry_follows_the_prototype(prototype, arguments):
    text = unit.translation_unit(HEAD + prototype, unit.LineMap(()), "k.cl")
    arguments = arguments.replace("P(", "__COMPASS_POINTER(").replace("S(", "__COMPASS_SCALAR(")
    assert text.splitlines()[-1] == f"__COMPASS_ENTRY(__compass_entry_k) {{ k({arguments}); }}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("void f() {}", "defines no kernel"),
        ("__kernel void k(float8 v) {}", "cannot be declared 'float8 v'"),
    ],
)
def test_a_kernel_that_cannot_be_entered_is_refused(text, message):
    with pytest.raises(CompassError, match=message):
        unit.translation_unit(text, unit.LineMap(()), "k.cl")


@pytest.mark.parametrize(
    "content", ["[", "{}", '{"files": [], "lines": [[0, 1]]}', '{"files": 1, "lines": [[0, "x"]]}']
)
def test_a_malformed_line_map_is_refused(tmp_path, content):
    path = tmp_path / "k.cl.map"
    path.write_text(content)
    with pytest.raises(CompassError, match="line map"):
        unit.read_line_map(path)


END = "  barrier(CLK_LOCAL_MEM_FENCE);\n}\n"


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("__kernel void k(int n) {\n  n = 1;\n" + END, 1),
        ("__kernel void k(int n);\n__kernel void k(int n) {\n" + END + "void f() {\n" + END, 1),
        ("__kernel void k(int n) {\n  while (n--)\n" + END, 0),
        ("__kernel void k(int n) {\n  n = 1;\n" + END + "__kernel void l() {\n  k(1);\n" + END, 0),
    ],
)
def test_the_barrier_at_the_end_of_a_kernel_is_marked(text, marked):
    assert unit.translation_unit(text, unit.LineMap(()), "k.cl").count("__compass_last_barrier();") == marked


def test_directives_only_where_the_place_jumps():
    places = (None, ("a.py", 5), ("a.py", 6), ("a.py", 6), None)
    text = unit.translation_unit("x\n__kernel void k() {\nx\nx\n}\n", unit.LineMap(places), "k.cl")
    wanted = ['# 1 "k.cl"', "x", '# 5 "a.py"', "__kernel void k() {", "x", '# 6 "a.py"', "x", '# 5 "k.cl"', "}"]
    assert text.splitlines()[: len(wanted)] == wanted


@pytest.mark.parametrize("length, marked", [(3, 0), (unit.LONG_LOOP - 1, 0), (unit.LONG_LOOP + 1, 1), (4000, 1)])
def test_long_innermost_loops_are_not_vectorised(length, marked):
    """clang compares every access of a loop with every other: thousands would take it minutes."""
    body = [f"      a[i + {k}] = {k};" for k in range(length)]
    loops = ["  for (int j = 0; j < 4; j += 1) {", "    for (int i = 0; i < 8; i += 1) {", *body, "    }", "  }"]
    text = "\n".join(["__kernel void k(__global int* a) {", *loops, "  if (a[0]) {", *body, "  }", "}"]) + "\n"
    lines = unit.translation_unit(text, unit.LineMap(()), "k.cl").splitlines()
    found = [line for line in lines if line.endswith('__asm__ volatile("" ::: "memory");')]
    assert [line.split("{")[0] for line in found] == ["    for (int i = 0; i < 8; i += 1) "] * marked
