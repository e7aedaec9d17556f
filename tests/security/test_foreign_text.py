"""The C text of a foreign aipu.bin, compiled again for checks and profiles: it reads nothing, writes nothing, ends."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from compass_core import confine, targets
from compass_core.confine import parent
from compass_core.errors import CompassError
from compass_core.hostcc import declared, foreign, sources
from compass_core.hostcc.sources import read_sources
from compass_runtime import Program
from compass_runtime.checks import Modes
from compass_runtime.checks.build import checked_programs
from compass_runtime.checks.diagnostics import Diagnostics
from compass_runtime.profile.collect import counting
from compass_runtime.variants import variant

SECRET = "correct_horse_battery_staple"
HEAD = "#include <compass/dsl.h>\n"
TAIL = "\n__kernel void k(__global int* a) { a[0] = 1; }\n"
READS = {
    "include": '#include "{secret}"',
    "include in angles": "#include <{secret}>",
    "include by a long way": '#include "compass/../../../../../../../../../../..{secret}"',
    "digraph": '%:include "{secret}"',
    "import": '#import "{secret}"',
    "include_next": '#include_next "{secret}"',
    "include by a macro": '#define F "{secret}"\n#include F',
    "include over two lines": '#inc\\\nlude "{secret}"',
    "embed": '__constant char x[] = {{\n#embed "{secret}"\n}};',
    "incbin": '__asm__(".incbin \\"{secret}\\"");',
    "assembler's include": '__asm__(".include \\"{secret}\\"");',
    "inline assembly": 'void f(void) {{ __asm__ volatile(".incbin \\"{secret}\\""); }}',
    "dependency": '#pragma GCC dependency "{secret}"\n#include "{secret}"',
    "has_include": '#if __has_include("{secret}")\n#error the file is there: ' + SECRET + "\n#endif",
    "has_embed": '#if __has_embed("{secret}")\n#error the file is there: ' + SECRET + "\n#endif",
    "line": '#line 1 "{secret}"\n#error look here',
    "module": '#pragma clang module load "{secret}"\n#include "{secret}"',
    "environment": '#include "/proc/self/environ"',
    "memory": '#include "/proc/self/mem"',
    "password": '#include "/etc/passwd"',
    "device": '#include "/dev/zero"',
    "random": '__asm__(".incbin \\"/dev/urandom\\"");',
    "fifo": '#include "{fifo}"',
    "fifo to the assembler": '__asm__(".incbin \\"{fifo}\\"");',
}
BOMBS = {
    "fill": '__asm__(".fill 0x7fffffff, 8, 1");',
    "space": '__asm__(".space 1 << 40");',
    "repeat": '__asm__(".rept 100000000\\n.quad 1, 2, 3, 4\\n.endr");',
    "macros": "#define A0 x x x x x x x x\n"
    + "".join(f"#define A{i} A{i - 1} A{i - 1} A{i - 1} A{i - 1} A{i - 1} A{i - 1}\n" for i in range(1, 14))
    + "int A13;",
    "array": "__constant char x[1ul << 40] = {1};",
    "words": "".join(f"#warning {'w' * 2000}\n" for _ in range(1000)),
    "crash": "#pragma clang __debug crash",
    "assertion": "#pragma clang __debug llvm_fatal_error",
    "stack": "#pragma clang __debug overflow_stack",
}
"""What the compiler is asked for: no end of it, or no sense."""

ENDLESS = ("fill", "space", "repeat", "macros", "array", "stack")
"""Those that the clock ends, whatever it says."""


@pytest.fixture(params=confine.MEANS)
def means(request, monkeypatch):
    """Each of the means that this host offers, the only one."""
    if not confine.available((request.param,)):
        pytest.skip(f"this host has no {request.param}")
    monkeypatch.setattr(parent, "MEANS", (request.param,))
    return request.param


@pytest.fixture
def places(tmp_path):
    """A secret file and a FIFO that nobody writes to."""
    (tmp_path / "secret").write_text(f"int {SECRET} = 1;\n#define {SECRET.upper()}\n")
    os.mkfifo(tmp_path / "fifo")
    return {"secret": str(tmp_path / "secret"), "fifo": str(tmp_path / "fifo")}


@pytest.mark.parametrize("attack", READS)
def test_no_file_is_read(forge, places, means, attack):
    program = forge(HEAD + READS[attack].format(**places) + TAIL)
    for compile_it in (lambda p: variant(p, ()), counting):
        try:
            made = compile_it(program)
        except CompassError as error:
            told = f"{error} {error.notes}"
            assert (
                SECRET not in told.lower()
                and "root:" not in told
                and f"{os.sep}bin" not in told.replace("/usr/bin", "")
            )
        else:
            made = made if isinstance(made, Program) else made.program
            elf = made.code.elf.replace(READS[attack].encode(), b"")
            assert SECRET.encode() not in elf.partition(b'{"name"')[0].lower(), attack


@pytest.mark.parametrize("attack", BOMBS)
def test_bombs_end_in_a_message(forge, means, monkeypatch, tmp_path, attack):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(foreign, "LIMITS", confine.Limits(0.4 if attack in ENDLESS else 1, 1 << 30, 32 << 20, 1 << 16))
    begin = time.monotonic()
    with pytest.raises(CompassError) as caught:
        variant(forge(HEAD + BOMBS[attack] + TAIL), ())
    assert caught.value.code == "no-variant" and sum(len(str(note)) for note in caught.value.notes) < 100_000
    assert ("limits" in caught.value.help) is ("was stopped" in caught.value.message)
    assert time.monotonic() - begin < 30
    assert os.listdir(tmp_path) == []


HARMFUL = (
    ["-fplugin=./x.so"],
    ["-isystem-after", "-I", "-fplugin=./x.so"],
    ["-include-pch", "/tmp/x"],
    ["-Wp,-MD,file"],
    ["-mllvm"],
    ["@file"],
    ["/etc/passwd"],
    ["-o", "/tmp/x"],
    ["-Xclang"],
    ["-Bdir"],
    ["-I", "/x"],
    ["-include", "/x"],
    ["-O2 -fplugin=x"],
    ["-O2\n-fplugin=x"],
    ["-fprofile-instr-use=/x"],
    ["-fcrash-diagnostics-dir=/x"],
    ["-march=x86-64"],
    ["-gsplit-dwarf"],
    ["-save-temps"],
    ["-DX=1"],
    ["-"],
    [""],
    [["-O2"]],
    [5],
    "-O2",
)


@pytest.mark.parametrize("options", HARMFUL, ids=str)
def test_no_option_is_taken_from_a_file(forge, options):
    with pytest.raises(CompassError) as caught:
        variant(forge(HEAD + TAIL, options=options), ())
    assert caught.value.code == "no-source"


@pytest.mark.parametrize("flags", [f for f in HARMFUL if all(isinstance(word, str) for word in f)], ids=str)
def test_the_flags_that_files_once_had_mean_nothing(forge, flags, tmp_path, monkeypatch):
    """`-isystem-after -I -fplugin=...` and `-include-pch` ran a plugin and wrote files."""
    monkeypatch.chdir(tmp_path)
    commands = []
    run = confine.run
    monkeypatch.setattr(
        foreign.confine, "run", lambda line, *more, **given: (commands.append(line), run(line, *more, **given))[1]
    )
    variant(forge(f"{HEAD}// {flags}\n{TAIL}", flags=flags), ())
    (line,) = commands
    plain = foreign.command.kernel_flags(foreign.find_clang(), "X")
    assert {word for word in line if word.startswith("-")} <= {
        *plain,
        "-c",
        "-x",
        "-o",
        "-",
        "-include-pch",
        "-main-file-name",
        "-D__AIPUX2__",
        *foreign._FIXED,
        *[w for w in line if w.startswith("-D__AIPU")],
    }
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "head",
    [
        *(
            {"name": name}
            for name in ("../x", "-x", " x", "a\nb", "a\tb", "/etc/x", "", "x" * 300, 'a"b', "a\\", "a\u202eb")
        ),
        *({"define": define} for define in ("X", "X=1", "__AIPUX2__\n", "-fplugin=x", "")),
        *(
            {"macros": [macro]}
            for macro in (
                ["a\nb", "1"],
                ["a", "1\n#include"],
                ["a b", "1"],
                ["-fplugin", "1"],
                ["a"],
                ["a", "1\r2"],
                [5, "1"],
                ["a", 5],
                "ab=",
                ["a(b)\n", "1"],
            )
        ),
    ],
    ids=str,
)
def test_names_and_macros_are_data(forge, head):
    with pytest.raises(CompassError) as caught:
        variant(forge(HEAD + TAIL, **head), ())
    assert caught.value.code == "no-source"


def test_macros_of_a_file_only_change_its_text(forge):
    made = variant(forge(HEAD + "__kernel void k(__global int* a) { a[0] = N; }\n", macros=[["N", "77"]]), ())
    assert read_sources(made.code.elf)[0].macros == (("N", "77"),)


PARENT = """
import sys, time
from compass_core.hostcc import declared, foreign, sources
from compass_core.hostcc.sources import Source
print("begun", flush=True)
foreign.compile_source(Source("k.cl", {define!r}, (), (), {text!r}), ())
"""


def test_the_compiler_ends_with_its_parent(means, tmp_path):
    text = HEAD + BOMBS["macros"] + TAIL
    script = PARENT.format(define=targets.load("X2_1204").define, text=text)
    if means != confine.MEANS[0]:
        script = f"from compass_core.confine import parent\nparent.MEANS = ({means!r},)\n" + script
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"begun\n"
    compiler = wait_for(lambda: next((pid for pid in children(process.pid) if "clang" in name_of(pid)), None))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert wait_for(lambda: not Path(f"/proc/{compiler}").exists() or "Z" in state_of(compiler))


def wait_for(look):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.01)
    raise AssertionError("it does not happen")


def children(pid):
    tasks = Path(f"/proc/{pid}/task")
    return [int(word) for task in tasks.iterdir() for word in (task / "children").read_text().split()]


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.fixture
def helpless(monkeypatch):
    """A host with no means to confine the compiler."""
    monkeypatch.setattr(parent, "MEANS", ("no such thing",))


def test_without_means_foreign_text_is_refused_unless_trusted(forge, helpless):
    program = forge(HEAD + "// a stranger's\n" + TAIL)
    for compile_it in (lambda p: variant(p, ()), lambda p: checked_programs(p, Modes.ALL), counting):
        with pytest.raises(CompassError) as caught:
            compile_it(program)
        assert caught.value.code == "untrusted-source" and "--trust" in caught.value.help
    program.trusted = True
    assert checked_programs(program, Modes.ALL) and counting(program)


def test_without_means_own_builds_are_compiled(honest, helpless, tmp_path, monkeypatch):
    assert variant(Program.load(honest), ("-O1", "-DX"))
    monkeypatch.setenv("COMPASS_STATE_DIR", str(tmp_path / "somebody else's"))
    with pytest.raises(CompassError) as caught:
        variant(Program.load(honest), ("-O1", "-DY"))
    assert caught.value.code == "untrusted-source"


def test_own_text_with_other_words_in_its_head_is_foreign(honest, forge, helpless):
    (source,) = read_sources(Program.load(honest).code.elf)
    for head in ({"macros": [["a", "b"]]}, {"options": ["-O3"]}, {"name": "other.cl"}):
        with pytest.raises(CompassError) as caught:
            variant(forge(source.text, **head), ("-O1", "-DZ"))
        assert caught.value.code == "untrusted-source"


def seldom(attacks, *names):
    """Parameters; those that are named only with --whole."""
    return [pytest.param(name, marks=pytest.mark.whole) if name in names else name for name in attacks]


SLOW = {
    "empty lines": "\n" * 150_000,
    "blanks": (" " * 5000 + "\n") * 200,
    "open comments": "/*" * 150_000,
    "open quotes": "#if 0\n" + '\\"' * 150_000 + "\n#endif\n",
    "open markers": "#if 0\n" + '# 1 "\n' * 30_000 + "#endif\n",
    "digits": f"#if 0\nint x[{'9' * 5000}];\n  int y[{'9' * 5000}];\n#endif\n",
    "underscores": "#if 0\n" + "int* " + "_buf" * 50_000 + "\n#endif\n",
}


@pytest.mark.parametrize("attack", seldom(SLOW, "empty lines", "blanks", "open quotes", "underscores"))
def test_reading_a_text_takes_time_as_it_is_long(forge, attack):
    """Patterns that looked at each rest of the text took hours for these; a minute is far more than they take."""
    program = forge(HEAD + TAIL + SLOW[attack])
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it takes more than a minute"))
    signal.alarm(60)
    try:
        for read in (
            lambda: checked_programs(program, Modes.ALL),
            lambda: counting(program),
            lambda: Diagnostics(program, []),
        ):
            try:
                read()
            except CompassError:
                continue
    finally:
        signal.alarm(0)


DEEP = {
    "sum": "a[0] = " + "+".join(["a[1]"] * 5_000) + ";",
    "blocks": "{" * 200 + "a[0] = 1;" + "}" * 200,
    "choices": "a[0] = " + "a[1] ? 1 : " * 1000 + "2;",
    "ifs": "if (a[0]) {} else " * 1000 + "a[0] = 1;",
    "number": f"a[0] = (unsigned _BitInt(40000)){'7' * 6000}wb / (unsigned _BitInt(40000))a[1];",
}


@pytest.mark.parametrize("attack", seldom(DEEP, "sum", "choices", "number"))
def test_deep_texts_are_profiled_or_refused(forge, monkeypatch, attack):
    monkeypatch.setattr(foreign, "LIMITS", confine.Limits(seconds=2))
    program = forge(f"{HEAD}\n__kernel void k(__global int* a) {{ {DEEP[attack]} }}\n")
    for read in (lambda: checked_programs(program, Modes.ALL), lambda: counting(program)):
        try:
            read()
        except CompassError as error:
            assert error.code in ("no-variant", "limit-exceeded")


@pytest.mark.parametrize("count", [9, 2000])
def test_a_file_does_not_have_the_compiler_work_for_hours(forge, monkeypatch, count):
    """Each set of options has a precompiled header of its own."""
    sets = itertools.combinations(sorted(declared.OPTIONS), 2)
    parts = [
        json.dumps(
            {
                "name": "k",
                "define": targets.load("X2_1204").define,
                "macros": [],
                "options": next(sets) if count < 1000 else [],
            }
        ).encode()
        + b"\0"
        + TAIL.encode()
        + b"\0{}\0"
        for _ in range(count)
    ]
    monkeypatch.setattr(sources, "section", lambda elf, name: b"".join(parts))
    with pytest.raises(CompassError) as caught:
        read_sources(b"")
    assert caught.value.code == "limit-exceeded"


def test_all_texts_of_a_file_share_a_time(forge, monkeypatch, tmp_path):
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(tmp_path))
    program = forge(TAIL)
    (one,) = read_sources(program.code.elf)
    monkeypatch.setattr(foreign, "is_trusted", lambda source: False)
    with pytest.raises(CompassError, match="COMPILE_ALL_SECONDS") as caught:
        foreign.compile_source(one, ("-O1",), until=time.monotonic() - 1)
    assert caught.value.code == "limit-exceeded"
    assert foreign.compile_source(one, ("-O1",), until=time.monotonic() + 100)
