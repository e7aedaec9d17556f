"""`python -m compassc.compat`: run a program written for the vendor's packages on this toolchain."""

from __future__ import annotations

import builtins
import itertools
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, TracebackType

from compass_core import switches
from compass_core.errors import CompassError, UsageError
from compass_core.errors.boundary import complain
from compass_core.errors.rendering import as_asked, format_asked, traceback_asked
from compassc.compat import install, modules, other_package

USAGE = """\
usage: python -m compassc.compat [--shadow] SCRIPT [ARG ...]
       python -m compassc.compat [--shadow] -m MODULE [ARG ...]
       python -m compassc.compat [--shadow] -c CODE [ARG ...]

Runs a Python program with the vendor's import names (tvm.compass.dsl, tvm.aipu, ...) leading to compassc.

  --shadow    even if a package `tvm` is installed
  -h, --help  show this text"""
_OWN_FILES = (__file__, runpy.__file__, "<frozen runpy>")
_PLUGINS = "PYTEST_PLUGINS"
_TOOLCHAIN = ("compassc", "compass_core", "compass_runtime", "compass_sim")


class _Program:
    """The program to run: `kind` is `script`, `-m` or `-c`; `text` the path, module or code; `args` its arguments."""

    def __init__(self, words: Sequence[str]) -> None:
        first, *rest = words or ("",)
        self.kind = first if first in ("-m", "-c") else "script"
        if self.kind != "script":
            first, *rest = rest or ("",)
        elif first.startswith("-"):
            raise UsageError(f"unknown option '{first}'", code="usage", notes=(USAGE,))
        if not first:
            raise UsageError("no program is given", code="usage", notes=(USAGE,))
        self.text, self.args = first, rest

    def prepare(self) -> None:
        """Sets `sys.argv` and the first entry of `sys.path` as Python does before it runs a program."""
        sys.argv[:] = [self.text if self.kind == "script" else self.kind, *self.args]
        if (
            self.kind == "-m" and self.text == "pytest"
        ):  # tests that take `target` and `dev` may come without a conftest.py
            given = [n for n in (os.environ.get(_PLUGINS, ""), "tvm.testing.plugin") if n]
            os.environ[_PLUGINS] = ",".join(given)
        if self.kind == "script":
            if not os.path.isfile(self.text):
                raise UsageError(f"no such file: '{self.text}'", code="usage")
            if not getattr(sys.flags, "safe_path", False):
                sys.path[0] = str(Path(self.text).resolve().parent)

    def run(self) -> None:
        """Runs it as `__main__`."""
        if self.kind == "-m":
            runpy.run_module(self.text, run_name="__main__", alter_sys=True)
        elif self.kind == "-c":
            _run_code(self.text, "<string>", {})
        else:
            path = os.path.abspath(self.text)
            _run_code(Path(path).read_bytes(), path, {"__file__": path})


def _run_code(text: str | bytes, file: str, names: dict[str, object]) -> None:
    main = ModuleType("__main__")
    vars(main).update(names, __builtins__=builtins)
    sys.modules["__main__"] = main
    exec(compile(text, file, "exec", dont_inherit=True), vars(main))  # noqa: S102 - running a program is the purpose


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """`sys.excepthook`: the traceback begins in the program, and an error of a kernel is shown as such."""
    while trace is not None and trace.tb_frame.f_code.co_filename in _OWN_FILES:
        trace = trace.tb_next
    error.__traceback__ = trace
    if not isinstance(error, CompassError) or traceback_asked():
        sys.__excepthook__(kind, error, trace)
        return
    packages = (f.f_globals.get("__name__", "").partition(".")[0] for f, _ in traceback.walk_tb(trace))
    users = list(
        itertools.takewhile(lambda pair: pair[0] not in _TOOLCHAIN, zip(packages, traceback.extract_tb(trace)))
    )
    if users and format_asked() == "text":
        lines = traceback.format_list([line for _, line in users])
        print("Traceback (most recent call last):", "".join(lines), sep="\n", end="", file=sys.stderr)
    complain(as_asked(error))


def _take_names(shadow: bool) -> None:
    """The names for this process and for those it starts: some take over its environment, some its `sys.path`."""
    if not install(shadow):
        raise UsageError(
            f"a package tvm is installed: {other_package()}",
            code="compat-installed",
            help="--shadow runs the program on compassc all the same; plain `python` runs it on that package",
        )
    sys.path.insert(1, str(modules.CHILDREN))
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(modules.CHILDREN), *([inherited] if inherited else [])])


def main(words: Sequence[str]) -> None:
    """Run a program; returns when it ends, raises what it raises."""
    if words[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return
    shadow = words[:1] == ["--shadow"]
    try:
        switches.check()
        program = _Program(words[shadow:])
        program.prepare()
        _take_names(shadow)
    except CompassError as error:
        complain(as_asked(error))
        sys.exit(error.exit_code)
    sys.excepthook = _show
    program.run()


if __name__ == "__main__":
    main(sys.argv[1:])
