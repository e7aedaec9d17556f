"""clang's command line for kernels, the headers it reads, and running it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, ToolchainError
from compass_core.files.cache import key_of
from compass_core.hostcc import host
from compass_core.hostcc.clang import ALLOCATION, Clang

_LANGUAGE = (
    "-cl-std=CL1.2",
    "-cl-no-stdinc",
    "-cl-fp32-correctly-rounded-divide-sqrt",
    "-fno-convergent-functions",  # which work items make a call together does not matter: calls may leave loops
    "-Wno-parentheses-equality",  # the dialect's loops are `while ((i == n)){`
    "-Wno-pointer-to-int-cast",  # addresses have 32 bits on the device, and `(int)pointer` is how the dialect gives them on
)
_MACHINE = (
    "-mcmodel=small",  # code and data lie in the low 4 GiB, where the simulator puts them
    "-fno-pic",
    "-fno-pie",
    "-fno-stack-protector",
    "-fstack-clash-protection",  # what is too large for a TEC's stack ends at its guard page, not in another TEC's stack
    "-fno-asynchronous-unwind-tables",
)
_MEANING = (  # the NPU's arithmetic, which is also PySim's
    "-fmax-type-align=1",
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-strict-float-cast-overflow",
    "-ffp-contract=off",
    "-Xclang",
    "-ffloat16-excess-precision=none",
    "-Xclang",
    "-fbfloat16-excess-precision=none",
)
_X86_ONLY = (
    "-mno-avx512bf16",  # its conversions flush subnormal numbers
    "-mno-avxneconvert",  # the same conversions
    "-mno-gfni",  # clang 23 shifts bytes of a selected constant wrongly with it
)
_INCLUDE_OPTIONS = ("-I", "-iquote", "-isystem", "-idirafter", "-include", "-imacros")
"""Options that name a folder or a file for `#include`, behind them or in the next word."""
_OTHER_FILES = re.compile(
    r"#\s*(?:/\*|\\|(?:include|include_next|import|embed)\b(?![ \t]*<compass/\w+\.h>)|\w*\\[ \t]*[\r\n])"
)
"""A directive that names another file, and one that cannot be told: a comment or a spliced line stands in its name."""
_HASHES = ("%:", "??=")
"""Other spellings of the hash of a directive."""
_QUESTION = re.compile(r"\b__has_(?:include|include_next|embed)\b")
_OUTPUT = (
    "-O2",
    "-fno-slp-vectorize",  # clang 23 does not come to an end in it on some kernels
    "-gline-tables-only",
    "-fdebug-compilation-dir=.",
)
DEBUG_FLAGS = ("-O0", "-g")
"""Flags for debuggers, after all others: steps line by line, variables in memory."""


def kernel_flags(clang: Clang, define: str, extra: tuple[str, ...] = ()) -> list[str]:
    """All flags of a kernel's compilation by `clang` but input, output and precompiled header; `extra` come last.

    `define` is the macro of the target.
    """
    processor = () if any(word.startswith("-march=") for word in extra) else host.options()
    flags = [*_LANGUAGE, *processor, *_MACHINE, *_MEANING]
    if host.is_x86():
        flags += _X86_ONLY
    headers = include_folder()  # which line tables name alike wherever it is
    return [
        *flags,
        *_OUTPUT,
        *clang.internal,
        f"-fdebug-prefix-map={headers}=.",
        f"-D{define}",
        "-I",
        str(headers),
        *extra,
    ]


def _includes_apart(flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The flags one by one: (option, path) of an include option, ("", flag) of any other."""
    words = iter(flags)
    for word in words:
        named = word.startswith(("-i", "-I"))
        option = max((o for o in _INCLUDE_OPTIONS if word.startswith(o)), key=len, default="") if named else ""
        yield option, (word[len(option) :] or next(words, "")) if option else word


def with_absolute_includes(flags: Sequence[str], base: Path) -> tuple[str, ...]:
    """The flags with the paths of include options made absolute, from `base`."""
    return tuple(
        word
        for option, value in _includes_apart(flags)
        for word in ((option, os.path.join(base, value)) if option else (value,))
    )


def without_includes(flags: Sequence[str]) -> list[str]:
    """The flags without include options."""
    return [value for option, value in _includes_apart(flags) if not option]


def is_complete(text: str, flags: Sequence[str]) -> bool:
    """Whether text and flags are all that clang reads, because only headers of the dialect are included."""
    files = any(option in ("-include", "-imacros") for option, _ in _includes_apart(flags))
    if files or ("__has_" in text and _QUESTION.search(text)):
        return False
    for spelling in _HASHES:
        text = text.replace(spelling, "#")
    return not any(_begins_line(text, match.start()) for match in _OTHER_FILES.finditer(text))


def _begins_line(text: str, at: int) -> bool:
    while at and text[at - 1] in " \t\v\f":
        at -= 1
    return not at or text[at - 1] in "\r\n" or text.endswith("*/", 0, at)


def behind_header(preprocessed: str, name: str) -> str:
    """What follows the header in the output of the preprocessor for the file called `name`: a text that includes nothing.

    CompassError where the header is not to be seen in it.
    """
    back = re.search(rf"^# 1 {re.escape(json.dumps(name))} 2$", preprocessed, re.MULTILINE)
    if back is None:
        raise CompassError(f"the C text '{name}' does not begin with the header of the dialect", code="no-source")
    return preprocessed[back.end() :]


def unit_arguments(header: Path, source: str, output: str, form: Sequence[str] = ("-c",)) -> list[str]:
    """The arguments that name the precompiled header, the translation unit and the output, an object by its `form`."""
    return ["-x", "cl", "-include-pch", str(header), *form, source, "-o", output]


@lru_cache(maxsize=1)
def include_folder() -> Path:
    """The folder of `compass/dsl.h`: `include` in the installed simulator package, beside it in a checkout."""
    from importlib.util import find_spec

    spec = find_spec("compass_sim")
    for package in spec.submodule_search_locations or () if spec else ():
        for folder in (Path(package, "include"), Path(package).parent / "include"):
            if (folder / "compass" / "dsl.h").is_file():
                return folder
    raise ToolchainError("the C header 'compass/dsl.h' is not installed", help="reinstall the package `compassc`")


@lru_cache(maxsize=1)
def headers_hash() -> str:
    """A hash of all C headers a kernel can include, as they are when this process first asks."""
    return _headers_now()


def changed_headers() -> ToolchainError | None:
    """What is wrong where the headers are no longer those of `headers_hash`: a checkout that is changed, or an installation."""
    if _headers_now() == headers_hash():
        return None
    return ToolchainError(
        "the C headers changed since this process compiled first",
        code="bad-headers",
        notes=(f"they are in {include_folder()}",),
        help="start the process anew: what it has loaded, and compiled, is of the headers before",
    )


def _headers_now() -> str:
    folder = include_folder()
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return key_of(*(part for path in files for part in (str(path.relative_to(folder)), path.read_bytes())))


@dataclass(frozen=True)
class Run:
    """A finished program: its exit status and what it wrote to stdout and stderr together."""

    status: int
    output: str


def run(
    command: list[str], folder: Path, meanwhile: Callable[[], object] | None = None, seconds: float | None = None
) -> Run:
    """Run a compiler command in `folder`; `meanwhile` is called while it runs.

    ToolchainError when the program cannot be started, or has not ended after so many `seconds`: then it is killed.
    """
    import subprocess

    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=ALLOCATION | os.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            close_fds=False,  # nothing to leak, and much quicker to start
        )
    except OSError as error:
        raise ToolchainError(f"cannot run '{command[0]}': {error.strerror}", code="no-clang") from None
    with process:
        if meanwhile is not None:
            meanwhile()
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise ToolchainError(f"'{command[0]}' is not done after {seconds} s", code="no-clang") from None
    return Run(process.returncode, output.decode(errors="replace"))
