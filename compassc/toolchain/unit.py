"""The translation unit that clang sees: kernel text with line directives, then one entry function per kernel.

The dialect text stays clean; its line map is applied here, so that clang's messages, debug information and crashes name
lines of kernel.py. Lines without a place in the map keep their place in the text itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from compass_core.dataclass import dataclass
from compass_core.elf.hostcode import entry_symbol
from compass_core.errors import CompassError, Span
from compass_core.hostcc import factors, first_lanes, host, narrowing, promises, whole_vectors
from compass_core.hostcc.arrays import Array, array_of
from compass_core.reading import jsontext

SCALAR_TYPES = ("char", "uchar", "short", "ushort", "int", "uint", "half", "bf16", "float", "bool")
"""Types a kernel parameter that is not a pointer may have."""

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
# Patterns that begin with plain characters are found quicker: what is before them is told behind them.
_KERNEL = re.compile(
    r"kernel(?:(?<=\b__kernel)|(?<=\bkernel))\s+(?:(?:_CLC_\w+|__attribute__\s*\(\(.*?\)\))\s+)*void"
    r"\s+(?P<name>\w+)\s*\((?P<params>[^()]*)\)\s*\{",
    re.DOTALL,
)
_ASSEMBLY = re.compile(r"__asm__(?<=\b__asm__)\s*(?:volatile|inline)?\s*(?=\()")
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*"|[()]')
_POINTER = re.compile(r"(?P<pointee>[\w\s]+?)\s*\*\s*(?:(?:restrict|const)\s+)*(?P<name>\w+)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_QUOTED = json.JSONEncoder(ensure_ascii=False).encode
_SCALAR = re.compile(r"(?:const\s+)?(?P<type>\w+)\s+(?P<name>\w+)")


_LOOP = re.compile(r"(?:for|while) \(.*\) \{")
LONG_LOOP = 256
"""Lines of an innermost loop from which on clang is kept from comparing all its accesses with each other."""
_OPAQUE = ' __asm__ volatile("" ::: "memory");'
"""A statement without code that clang does not look behind: what follows is not vectorised with what another iteration does."""


@dataclass(frozen=True)
class LineMap:
    """The origin of each line of a text: (file, line), or None when no source line corresponds to it.

    `digests`: what the files are known by, as they were when the text was made. `parts`: by line, the offsets from which
    on it comes from another line of a file. `arrays`: what the kernel declares.
    """

    places: tuple[tuple[str, int] | None, ...]
    digests: frozenset[str] = frozenset()
    parts: Mapping[int, tuple[tuple[int, tuple[str, int]], ...]] = field(default_factory=dict)
    arrays: tuple[Array, ...] = ()

    def place(self, line: int) -> tuple[str, int] | None:
        """The source place of a line, counted from 1."""
        return self.places[line - 1] if 0 < line <= len(self.places) else None


@dataclass(frozen=True)
class Kernel:
    """A kernel defined in a text: its name, the line of its definition, and its parameters as written."""

    name: str
    line: int
    params: tuple[str, ...]

    @property
    def entry(self) -> str:
        """The symbol of its entry function."""
        return entry_symbol(self.name)


def read_line_map(path: Path) -> LineMap:
    """The map of `NAME.cl.map`; an empty one when the text has none. CompassError when it is malformed."""
    if not path.exists():
        return LineMap(())
    content = jsontext.parse(path.read_bytes(), str(path), code="bad-line-map", what="the line map")
    try:
        files = [_file_name(file) for file in content["files"]]
        places = [None if item is None else (files[item[0]], _line(item[1])) for item in content["lines"]]
        parts = {
            number: tuple((_offset(at), (files[file], _line(line))) for at, file, line, _ in item[2])
            for number, item in enumerate(content["lines"], 1)
            if item is not None and len(item) > 2
        }
        digests = [_digest(text) for text in content.get("sha256", []) if text is not None]
        declared = tuple(array_of(item) for item in content.get("arrays", []))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise CompassError(
            f"the line map is malformed: {error!r}",
            Span(str(path), 1),
            code="bad-line-map",
            help="remove the file to compile without it",
        ) from None
    return LineMap(tuple(places), frozenset(digests), parts, declared)


def _file_name(value: object) -> str:
    """A name that fits into a line directive."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError(f"the file name {value!r:.80}")
    return value


def _digest(value: str) -> str:
    if not _SHA256.fullmatch(value):
        raise ValueError(f"the hash {value!r:.80}")
    return value


def _line(value: object) -> int:
    if not isinstance(value, int) or not 0 < value < 1 << 31:
        raise ValueError(f"the line number {value!r:.80}")
    return value


def _offset(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value < 1 << 31:
        raise ValueError(f"the offset {value!r:.80}")
    return value


def find_kernels(text: str) -> list[Kernel]:
    """The kernels that a dialect text defines, in order."""
    blanked = _blanked(text)
    kernels = []
    for match in _KERNEL.finditer(blanked):
        params = [param.strip() for param in match["params"].split(",")]
        line = blanked.count("\n", 0, match.start()) + 1
        kernels.append(Kernel(match["name"], line, () if params in ([""], ["void"]) else tuple(params)))
    return kernels


def _blanked(text: str) -> str:
    """The text with spaces in the place of comments."""
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def translation_unit(text: str, line_map: LineMap, name: str) -> str:
    """The translation unit for a kernel text called `name`. CompassError when no kernel in it can be entered."""
    return joined_unit([text], line_map, name)


def joined_unit(texts: Sequence[str], line_map: LineMap, name: str) -> str:
    """One translation unit for several kernel texts, which have no names in common; the map is the first one's.

    CompassError when a text has no kernel that can be entered.
    """
    parts: list[str] = []
    entries: list[str] = []
    for text in map(_for_hosts, texts):
        kernels = find_kernels(text)
        if not kernels:
            raise CompassError(
                "the text defines no kernel",
                Span(name, 1),
                code="no-kernel",
                help="a kernel is a function `__kernel void NAME(...) { ... }`",
            )
        kept = _with_long_loops(_with_last_barriers(_without_assembly(text), kernels))
        parts.append(whole_vectors.accessed("\n".join(_with_directives(kept, text, line_map, name))))
        for kernel in kernels:
            entries += _entry(kernel, line_map, name)
        line_map = LineMap(())
    return "\n".join([*parts, "#include <compass/entry.h>", *host.stamp_source(), *entries]) + "\n"


def _for_hosts(text: str) -> str:
    """The text with the names of functions that compute the same faster on hosts, and with statements for them at ends of lines;
    every character stays where it is."""
    return first_lanes.copied(narrowing.joined(factors.apart(promises.kept(text))))


def _without_assembly(text: str) -> str:
    """The text with inline assembly of the NPU, which the host cannot run, replaced by a call that ends the run."""
    parts, at = [], 0
    found = list(_ASSEMBLY.finditer(text))
    ends = _closing(text, found[0].end()) if found else {}
    for match in found:
        end = ends.get(match.end(), 0)
        if match.start() >= at and end:
            lines = text.count("\n", match.start(), end)
            parts += [text[at : match.start()], "__compass_assembly()", "\n" * lines]
            at = end
    return "".join([*parts, text[at:]])


def _closing(text: str, start: int) -> dict[int, int]:
    """The ends of the brackets that open behind `start`, by where they open; those that do not close are left out."""
    opened: list[int] = []
    ends: dict[int, int] = {}
    for match in _STRING_OR_BRACKET.finditer(text, start):
        if match[0] == "(":
            opened.append(match.start())
        elif match[0] == ")" and opened:
            ends[opened.pop()] = match.end()
    return ends


def _with_last_barriers(text: str, kernels: Sequence[Kernel]) -> str:
    """The text with the barriers that kernels end with marked as such, unless a kernel is called as a function."""
    blanked = _blanked(text)
    if any(re.search(rf"{k.name}(?<=\b{k.name})(?<!void {k.name})\s*\(", blanked) for k in kernels):
        return text
    lines = text.splitlines()
    for kernel in kernels:
        end = next((n for n in range(kernel.line, len(lines)) if lines[n].startswith("}")), 0)
        before, last = lines[max(end - 2, 0)].rstrip(), lines[end - 1].strip()
        if last == "barrier(CLK_LOCAL_MEM_FENCE);" and before.endswith((";", "{", "}")):  # a statement of its own
            lines[end - 1] = "  __compass_last_barrier();"
    return "\n".join(lines)


def _with_long_loops(text: str) -> str:
    """The text with its long innermost loops marked: clang's time for them would grow with the square of their length."""
    lines = text.split("\n")
    if len(lines) < LONG_LOOP:
        return text
    opened: list[int | None] = []
    for number, line in enumerate(lines):
        words = line.strip()
        if words.startswith("}") and opened:
            start = opened.pop()
            if start is not None and number - start > LONG_LOOP:
                lines[start] += _OPAQUE
        if words.endswith("{"):
            loop = _LOOP.fullmatch(words) is not None
            if loop:
                opened = [None] * len(opened)  # those around it are not innermost
            opened.append(number if loop else None)
    return "\n".join(lines)


def _with_directives(text: str, original: str, line_map: LineMap, name: str) -> list[str]:
    """The lines of `text`, with a directive wherever the source place does not simply advance by one line; a line whose
    parts come from several lines is several lines. `original`: the text that the map is about."""
    lines: list[str] = []
    expected: tuple[str, int] | None = None
    continued = False
    for number, (line, before) in enumerate(zip(text.splitlines(), original.splitlines()), 1):
        place = line_map.place(number) or (name, number)
        if place != expected and not continued:
            lines.append(_directive(place))
        begin = 0
        for at, part in line_map.parts.get(number, ()):
            if begin < at < len(before) and line.startswith(before):
                lines += [line[begin:at], _directive(part)]
                begin, place = at, part
        lines.append(line[begin:])
        continued = line.endswith("\\")
        expected = (place[0], place[1] + 1)
    return lines


def _directive(place: tuple[str, int]) -> str:
    return f"# {place[1]} {_QUOTED(place[0])}"


def _entry(kernel: Kernel, line_map: LineMap, name: str) -> list[str]:
    """The entry function of a kernel, at the place of the kernel's definition."""
    place = line_map.place(kernel.line) or (name, kernel.line)
    span = Span(*place, built=line_map.digests)
    arguments = ", ".join(_argument(param, index, span) for index, param in enumerate(kernel.params))
    return [_directive(place), f"__COMPASS_ENTRY({kernel.entry}) {{ {kernel.name}({arguments}); }}"]


def _argument(param: str, index: int, span: Span) -> str:
    """The expression that takes parameter `index` out of the parameter block."""
    if match := _POINTER.fullmatch(param):
        return f"__COMPASS_POINTER({' '.join(match['pointee'].split())}, {index})"
    match = _SCALAR.fullmatch(param)
    if match is None or match["type"] not in SCALAR_TYPES:
        raise CompassError(
            f"a kernel parameter cannot be declared '{param}'",
            span,
            code="kernel-parameter",
            help=f"declare a pointer `__global TYPE* NAME` or a scalar of {', '.join(SCALAR_TYPES)}",
        )
    return f"__COMPASS_SCALAR({match['type']}, {index})"
