"""What an object may declare of the options its kernel was compiled with, so that it can be compiled again alike.

Files come from anybody, so no option is ever taken from one. A file has the macros of the build, which become lines of
its text, and names of options from one list; whatever else stands there is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from compass_core.hostcc import command
from compass_core.namedtuple import NamedTuple

OPTIONS = frozenset(
    """
    -O0 -O1 -O2 -O3 -O -Os -Oz -Og -g -g0 -g1 -g2 -g3 -gline-tables-only
    -ffast-math -fno-fast-math -ffinite-math-only -fno-finite-math-only -fassociative-math -fno-associative-math
    -freciprocal-math -fno-reciprocal-math -fsigned-zeros -fno-signed-zeros -fapprox-func -fno-approx-func
    -ffp-contract=off -ffp-contract=on -ffp-contract=fast -ffp-model=strict -ffp-model=precise -ffp-model=fast
    -funroll-loops -fno-unroll-loops -fvectorize -fno-vectorize -fslp-vectorize -fno-slp-vectorize
    -finline-functions -fno-inline-functions -fno-inline -fbuiltin -fno-builtin -fomit-frame-pointer
    -fno-omit-frame-pointer -fstrict-aliasing -fno-strict-aliasing -fwrapv -ftrapv -fsigned-char -funsigned-char
    -cl-std=CL1.1 -cl-std=CL1.2 -cl-std=CL2.0 -cl-std=CL3.0 -cl-mad-enable -cl-opt-disable -cl-fast-relaxed-math
    -cl-no-signed-zeros -cl-unsafe-math-optimizations -cl-finite-math-only -cl-denorms-are-zero
    -cl-single-precision-constant -cl-strict-aliasing -cl-fp32-correctly-rounded-divide-sqrt
    """.split()
    + [
        f"-m{no}{feature}"
        for no in ("", "no-")
        for feature in "sse4.1 sse4.2 popcnt avx avx2 fma f16c lzcnt bmi bmi2 movbe aes vaes pclmul vpclmulqdq gfni sha adx "
        "avx512f avx512dq avx512cd avx512bw avx512vl avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg "
        "avx512vpopcntdq avx512bf16 avx512fp16 avxvnni".split()
    ]
)
"""Options that shape the code and nothing else, each as it is spelled. clang gets them from here."""
_MACRO = re.compile(r"[A-Za-z_]\w{0,255}(?:\([\w ,.]{0,1000}\))?", re.ASCII)
_SILENT = re.compile(r"-W(?![alp],)[\w=+-]+|-w", re.ASCII)
"""Options about warnings, which are not kept: warnings of a recompiled file are not shown."""
_MOST_BODY = 1 << 16


class Macro(NamedTuple):
    """A macro of the command line: its name, with its parameters where it has any; no body: it is undefined."""

    name: str
    body: str | None

    @property
    def line(self) -> str:
        return f"#undef {self.name}" if self.body is None else f"#define {self.name} {self.body}"


class Declared(NamedTuple):
    """The options that a file declares: macros in their order, and unchecked names of options."""

    macros: tuple[Macro, ...]
    options: tuple[str, ...]


def declared(flags: Sequence[str]) -> Declared:
    """The builder's flags that an object declares; included files are part of its text already."""
    macros, options = [], []
    for flag in _joined(command.without_includes(flags)):
        if flag[:2] in ("-D", "-U"):
            macros.append(_macro(flag))
        elif not _SILENT.fullmatch(flag):
            options.append(flag)
    return Declared(tuple(macros), tuple(options))


def _joined(words: Sequence[str]) -> Iterator[str]:
    """The words, those of `-D NAME` joined."""
    items = iter(words)
    for word in items:
        yield word + next(items, "") if word in ("-D", "-U") else word


def _macro(flag: str) -> Macro:
    name, equals, body = flag[2:].partition("=")
    if flag.startswith("-U"):
        return Macro(flag[2:], None)
    return Macro(name, body.partition("\n")[0] if equals else "1")


def read(macros: object, options: object) -> Declared:
    """The declarations of a file, from its JSON. ValueError or TypeError if one of them is not allowed."""
    if not isinstance(macros, list) or not isinstance(options, list):
        raise TypeError("macros and options are no lists")
    found = []
    for item in macros:
        name, body = item
        if not isinstance(name, str) or _MACRO.fullmatch(name) is None:
            raise ValueError(f"bad macro '{name!r:.80}'")
        if body is not None and (
            not isinstance(body, str) or set("\n\r\0").intersection(body) or len(body) > _MOST_BODY
        ):
            raise ValueError(f"bad body of the macro '{name}'")
        found.append(Macro(name, body))
    for option in options:
        if not isinstance(option, str) or option not in OPTIONS:
            raise ValueError(f"the compiler option '{option!s:.80}' is not taken from a file")
    return Declared(tuple(found), tuple(options))
