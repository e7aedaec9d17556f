"""Command lines: every command's declared options with values of users, of attackers and of accident.

An input is the JSON of a command line. It runs in this process, in a folder of files that are good, damaged or no files
at all. Whatever it is, the exit status is one of the documented ones, there is a message unless all went well, and only
the working folder has changed: neither its surroundings, nor the home folder, nor the folder of temporary files.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click

from compass_runtime import board_server
from tests.hostile.harness import Target, scratch, without_numbers
from tests.hostile.targets import _graphs, stage_files

_EXAMPLES = "compassc-examples-"
"""The folder of the examples of operations is there until the process ends."""
STATUSES = (0, 1, 2, 3)
"""Of a finished command: ok, the input is wrong, usage, a tool is missing."""
SELDOM = {"sim-plugin": 0.02, "cache": 0.05, "doctor": 0.1, "build": 0.7, "cc": 0.7, "ops": 0.2}
"""Commands that take long are tried less often than others."""
LEFT_OUT = frozenset({"--debug", "--debugger", "--debug-commands", "--write-docs", "--help", "--version"})
"""A debugger is a program of its own, and the documents are written by `make docs`."""
SERVERS = frozenset({"rpc-server", "rpc-tracker", "rpc-proxy", "rpc-query"})
"""Commands that run until they are interrupted, and who looks for such; tests/remote tries them."""
_NAMES = (
    "a",
    "b",
    "n",
    "vadd",
    "k",
    "\u00e9",
    "",
    "x" * 300,
    "a b",
    "a\nb",
    "\x1b[2J",
    "-",
    "--",
    "__class__",
    "1",
    "\udc80",
)
_NUMBERS = (
    "0",
    "1",
    "-1",
    "8",
    "16",
    "1e9",
    "nan",
    "inf",
    "-inf",
    "0x10",
    "99999999999999999999",
    "9" * 5000,
    "true",
    "x",
    "",
    "1_0",
    "\u0663",
    "1.5",
)
_SHAPES = (
    "8",
    "4x8",
    "0",
    "x",
    "8x",
    "-1",
    "99999999999x99999999999",
    "1x" * 40 + "1",
    "8x8x8x8",
    "\u0663",
    "9" * 5000,
)
_TARGETS = ("X2_1204", "X1_1204", "X3P_1304", "X3P_1304MP2", "", "X9", "../X2_1204", "x2_1204", "X2_1204\n")
_FLAGS = (
    "-O0",
    "-O3",
    "-DX",
    "-DX=1",
    "-bogus",
    "",
    "-",
    "--version",
    "-Wall",
    "-x",
    "-fsyntax-only",
    "-E",
    "-std=c99",
    "@none",
    "-include",
    "none.h",
    "-c",
    "-O2 -g",
    "-\udc80",
)
_PATHS = (
    "vadd.py",
    "vadd.ir.txt",
    "vadd.lowered.txt",
    "vadd.legal.txt",
    "vadd.cl",
    "vadd.o",
    "vadd.params.json",
    "aipu.bin",
    "graph.txt",
    "w.bin",
    "a.npy",
    "broken.npy",
    "broken.bin",
    "broken.o",
    "broken.py",
    "broken.ir.txt",
    "empty",
    "folder",
    "loop",
    "dangling",
    "none",
    "none/..",
    "..",
    "none/at/all",
    "-",
    "/dev/null",
    "/dev/full",
    "",
    "\x1b[2J",
    "\udc80.py",
    "x" * 300,
    "a\nb",
    "build.yaml",
    "vadd.cl.map",
)
_WORDS = (
    *_NAMES,
    *_NUMBERS,
    *_SHAPES,
    *_TARGETS,
    *_PATHS,
    "all",
    "gbuild",
    "lower",
    "legalize",
    "codegen",
    "parse",
    "X,Y",
    "lower:X",
    "bounds",
    "seed=1",
    "explore=2",
    "seed=x",
    "explore=-1",
    "no-kernel",
    "bounds,race",
    "a=a.npy",
)
_SHORT = {"--repeat": ("1", "2", "0", "-1", "x"), "--timeout": ("1", "0.5", "0", "-1", "nan", "x"), "--clang": _PATHS}
"""Values of options that would have a run last as long as the user says."""


@cache
def _commands() -> dict[str, click.Command]:
    """All commands by name, `compassc build` and the programs besides."""
    from compass_runtime import cli as runtime
    from compassc.cli import aipugb, aipuocc
    from compassc.cli.main import cli

    context = click.Context(cli)
    made = {name: cli.get_command(context, name) for name in cli.list_commands(context) if name not in SERVERS}
    return {**made, "compass-run": runtime.command, "aipugb": aipugb.command, "aipuocc": aipuocc.command}  # type: ignore[dict-item]


def _value(parameter: click.Parameter, draw: random.Random) -> str:
    """A value for a parameter, mostly of its type."""
    if draw.random() < 0.08:
        return draw.choice(_WORDS)
    option = parameter.opts[-1]
    if option in _SHORT:
        return draw.choice(_SHORT[option])
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return str(draw.choice(tuple(kind.choices)))
    if isinstance(kind, click.Path):
        return draw.choice(_PATHS)
    if isinstance(kind, (click.types.IntParamType, click.types.FloatParamType)):
        return draw.choice(_NUMBERS)
    form = (parameter.metavar or "").upper() if isinstance(parameter, click.Option) else ""
    if "=" in form or form == "FILES":
        ends = {"NPY": _PATHS, "FILE": _PATHS, "X": _SHAPES}
        values = next((found for word, found in ends.items() if word in form.partition("=")[2]), _NUMBERS)
        name = draw.choice(_NAMES[:3] if draw.random() < 0.8 else _NAMES)
        return f"{name}={draw.choice(_PATHS if form == 'FILES' else values)}"
    if option == "--target":
        return draw.choice(_TARGETS if draw.random() < 0.5 else _TARGETS[:1])
    return draw.choice(_FLAGS if option in ("--cc-option", "words") else _WORDS)


def _line(pool: list[bytes], draw: random.Random) -> bytes:
    """A command line: of a random command, or one of the pool with a word more, less or changed."""
    if pool and draw.random() < 0.4:
        words = json.loads(draw.choice(pool))
        at = draw.randrange(len(words))
        words[max(at, 1) : at + draw.choice((0, 1))] = [draw.choice(_WORDS)] if draw.random() < 0.6 else []
        return json.dumps(words).encode()
    names = list(_commands())
    name = draw.choices(names, [SELDOM.get(one, 1) for one in names])[0]
    words = []
    for parameter in _commands()[name].params:
        if isinstance(parameter, click.Argument):
            words.append(_argument(name, parameter, draw))
        elif draw.random() < 0.12 and not LEFT_OUT & set(parameter.opts):
            flag = isinstance(parameter, click.Option) and parameter.is_flag
            words += [parameter.opts[-1], *(() if flag else (_value(parameter, draw),))]
    if draw.random() < 0.1:
        words.append(draw.choice(("--", "-h", "--help", "--version", "--bogus", "-x", "--=", "-\udc80")))
    return json.dumps([name, *words]).encode()


_USUAL = {
    "build": "vadd.py",
    "parse": "vadd.py",
    "check": "vadd.py",
    "lower": "vadd.ir.txt",
    "legalize": "vadd.lowered.txt",
    "codegen": "vadd.legal.txt",
    "cc": "vadd.cl",
    "gbuild": "vadd.o",
    "compass-run": "aipu.bin",
    "aipugb": "graph.txt",
    "aipuocc": "vadd.cl",
}


def _argument(name: str, parameter: click.Argument, draw: random.Random) -> str:
    return _USUAL[name] if name in _USUAL and draw.random() < 0.7 else _value(parameter, draw)


def _corpus() -> list[bytes]:
    return [
        json.dumps([name, word]).encode()
        for name, word in _USUAL.items()
        if name not in ("aipugb", "aipuocc", "compass-run")
    ]


# ---------------------------------------------------------------------------------------------------------- the cage


class Cage:
    """A folder with the working folder, `work`, and those that nothing may be written to."""

    def __init__(self) -> None:
        self.folder = scratch("stages") / "cage"
        self.work = self.folder / "work"
        self.quiet = [self.folder / name for name in ("home", "tmp", "outside")]
        for path in (*self.quiet, self.folder / "cache", self.folder / "state", self.folder / "fresh"):
            path.mkdir(parents=True)
        _fill(self.folder / "fresh")
        (self.folder / "outside" / "file").write_text("x", encoding="utf-8")
        self.before = self.listing()
        self.sound: list[tuple[str, int, int]] = []
        self.renew()

    def renew(self) -> None:
        """The working folder as it was."""
        if self.work.exists() and self._state() == self.sound:
            return
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.folder / "fresh", self.work, symlinks=True)
        self.sound = self._state()

    def _state(self) -> list[tuple[str, int, int]]:
        """What the working folder has, and when it was written."""
        found = []
        for folder in (self.work, self.work / "folder"):
            with os.scandir(folder) as entries:
                found += [(e.path, (s := e.stat(follow_symlinks=False)).st_mtime_ns, s.st_size) for e in entries]
        return sorted(found)

    def clean(self, left: set[str]) -> None:
        """Takes away what a command left, so that it is not the next one's."""
        for name in left:
            path = self.folder / name
            shutil.rmtree(path, ignore_errors=True)
            path.unlink(missing_ok=True)

    def listing(self) -> list[str]:
        """What lies where nothing may change."""
        found = [str(path) for folder in self.quiet for path in sorted(folder.rglob("*"))]
        found = [path for path in found if _EXAMPLES not in path]
        return [*found, *sorted(path.name for path in self.folder.iterdir() if path.name != "work")]

    @contextmanager
    def entered(self) -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
        """Stdout and stderr of a command that runs here."""
        streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="surrogateescape") for _ in range(3)]
        home, tmp = str(self.quiet[0]), str(self.quiet[1])
        switches = {
            "HOME": home,
            "XDG_CACHE_HOME": home,
            "XDG_CONFIG_HOME": home,
            "XDG_STATE_HOME": home,
            "TMPDIR": tmp,
            "COMPASS_CACHE_DIR": str(self.folder / "cache"),
            "COMPASS_STATE_DIR": str(self.folder / "state"),
            "COMPASS_CONFIG": str(self.folder / "none"),
        }
        old = Path.cwd()
        with (
            patch.dict(os.environ, switches),
            patch.object(sys, "stdin", streams[0]),
            patch.object(sys, "stdout", streams[1]),
            patch.object(sys, "stderr", streams[2]),
            patch.object(tempfile, "tempdir", tmp),
            patch.object(board_server, "compile_words", _unoptimised),
        ):
            os.chdir(self.work)
            try:
                yield streams[1], streams[2]
            finally:
                os.chdir(old)


_optimised = board_server.compile_words


def _unoptimised(triple: str) -> list[str]:
    """Of the servers that commands make: most of clang's time went into optimising what nobody runs here."""
    return [*_optimised(triple), "-O0"]


def _fill(folder: Path) -> None:
    """The files of the working folder."""
    from tests.hostile.targets import KERNEL

    for name, data in stage_files().items():
        (folder / (name if name in ("aipu.bin", "build.yaml") else f"vadd{name}")).write_bytes(data)
    import numpy as np

    np.save(folder / "a.npy", np.arange(8, dtype="int32"))
    (folder / "vadd.py").write_text(KERNEL, encoding="utf-8")
    (folder / "graph.txt").write_bytes(_graphs()[0])
    (folder / "w.bin").write_bytes(bytes(64))
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nothing")
    (folder / "broken.py").write_text("def (", encoding="utf-8")
    for name, of in (
        ("broken.npy", "a.npy"),
        ("broken.bin", "aipu.bin"),
        ("broken.o", "vadd.o"),
        ("broken.ir.txt", "vadd.ir.txt"),
    ):
        data = bytearray((folder / of).read_bytes())
        data[len(data) // 3] ^= 0x55
        (folder / name).write_bytes(data[: len(data) * 2 // 3])


@cache
def _cage() -> Cage:
    return Cage()


def _program(name: str) -> Callable[[list[str]], int]:
    """What runs a command line of a program as its entry point does."""
    from compassc.cli import errors
    from compassc.cli.main import cli

    if name == "compass-run":
        return _compass_run
    if name in ("aipugb", "aipuocc"):
        return lambda words: errors.run(_commands()[name], words, name)
    return lambda words: errors.run(cli, [name, *words])


def _compass_run(words: list[str]) -> int:
    from compass_runtime.cli import main

    try:
        main(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    raise AssertionError("compass-run does not end with a status")


def outcome(data: bytes, known: Container[str] = (), thorough: bool = True) -> str:
    """What a command line comes to, in general terms. AssertionError when it breaks the law."""
    name, *words = json.loads(data)
    cage = _cage()
    with cage.entered() as streams:
        status = _program(name)(words)
        shown, said = (_text_of(stream) for stream in streams)
    changed = cage.listing()
    cage.renew()
    cage.clean(set(changed) - set(cage.before))
    assert status in STATUSES, f"{json.loads(data)}: exit status {status}: {said}"
    assert "Traceback" not in said or "--traceback" in words, f"{json.loads(data)}: a traceback: {said}"
    assert status == 0 or (said + shown).strip(), f"{json.loads(data)}: exit status {status} without a word"
    extra = set(changed) ^ set(cage.before)
    if any(word.startswith("..") for word in words):  # the folder above is named as the place for files
        extra = {path for path in extra if os.path.isabs(path)}
    assert not extra, f"{json.loads(data)}: left {extra}"
    code = said.rpartition("[")[2].partition("]")[0] if status else ""
    return f"{'refused' if status else 'read'}: {name} {status} {without_numbers(code)}"


def _text_of(stream: io.TextIOWrapper) -> str:
    stream.flush()
    inner: Any = stream.buffer
    return str(inner.getvalue(), "utf-8", "replace")


CLI = Target("cli", _corpus, outcome, _line, memory=None, seconds=20, waiting=600)
