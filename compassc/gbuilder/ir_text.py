"""The text form of Compass IR: sections of `key=value` lines, the first one the header, each further one a layer.

`parse(format_ir(ir))` gives an equal IR as long as its strings are not spelled like another kind of value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from compass_core.errors import CompassError, Span
from compass_core.limits import GRAPH_LAYERS
from compass_core.names import is_label

IR_DTYPES = frozenset(
    "bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 bfloat16 float32 float64 float8_e5m2 float8_e4m3fn "
    "float6_e2m3fn float6_e3m2fn float4_e2m1fn aligned_int4 aligned_uint4 aligned_int12 aligned_uint12".split()
)
MAX_DEPTH = 16
"""Nesting of lists beyond which a value is refused."""

_INT = re.compile(r"[+-]?\d{1,40}$")
_FLOAT = re.compile(r"[+-]?(?:(?:\d+\.\d*|\.\d+)(?:e[+-]?\d+)?|\d+e[+-]?\d+)$|[+-]?inf$", re.IGNORECASE)


class IRDType(str):
    """A data type as a value: its name, in lower case. Differs from a plain string by its class only."""

    __slots__ = ()


Value = bool | int | float | str | Sequence["Value"]


@dataclass
class Section:
    """The keys of one section; `line` is where it starts in the file, 0 when it was not read from one."""

    values: dict[str, Value] = field(default_factory=dict)
    line: int = field(default=0, compare=False)


@dataclass
class SubgraphIR:
    """A graph that layers refer to by name; its constants lie in the main graph's binary file."""

    header: Section
    layers: list[Section]


@dataclass
class CompassIR:
    """A Compass IR file. `path` is for error messages."""

    header: Section
    layers: list[Section]
    subgraphs: list[SubgraphIR] = field(default_factory=list)
    path: str = field(default="compass_ir.txt", compare=False)

    def error(self, section: Section, message: str, help: str = "") -> CompassError:
        """The error for `section` of this file."""
        span = Span(self.path, section.line) if section.line else None
        return CompassError(message, span, code="compass-ir", help=help)


def parse_value(text: str, depth: int = 0) -> Value:
    """The value that `text` spells; lists are recursive. CompassError when lists nest too deeply."""
    if depth > MAX_DEPTH:
        raise CompassError(f"lists nest more than {MAX_DEPTH} levels deep", code="compass-ir")
    if (parts := _list_items(text)) is not None:
        return [parse_value(part, depth + 1) for part in parts]
    lower = text.lower()
    if lower.removeprefix("dtype.") in IR_DTYPES:
        return IRDType(lower.removeprefix("dtype."))
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if lower in ("true", "false"):
        return lower == "true"
    return text


def _list_items(text: str) -> list[str] | None:
    """The element texts of a list, or None when `text` is not one balanced pair of brackets."""
    if not (text.startswith("[") and text.endswith("]")):
        return None
    items, depth, start = [], 0, 1
    for at, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if depth == 0 and at != len(text) - 1:
                return None
        elif char == "," and depth == 1:
            items.append(text[start:at])
            start = at + 1
    if depth:
        return None
    items.append(text[start:-1])
    return [item for item in (part.strip(" '") for part in items) if item]


def format_value(value: Value | None) -> str:
    """The text of a value, as `parse_value` reads it; lists without blanks."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (int, float)):
        return repr(value)
    return "[" + ",".join(format_value(item) for item in value) + "]"


def parse(text: str, path: str = "compass_ir.txt") -> CompassIR:
    """The IR in `text`; CompassError with file and line when a line or a section is malformed."""
    sections = _sections(text, path)
    if not sections:
        raise CompassError(f"{path}: no header; the file is empty", code="compass-ir")
    ir = CompassIR(sections[0], [], path=path)
    rest = sections[1:]
    while rest:
        head = rest[0]
        if "subgraph_name" in head.values and "input_tensors" in head.values:
            count = head.values.get("layer_number")
            if not isinstance(count, int) or not 0 <= count < len(rest):
                raise ir.error(head, f"layer_number is {count!r}, but {len(rest) - 1} sections follow")
            ir.subgraphs.append(SubgraphIR(head, rest[1 : count + 1]))
            rest = rest[count + 1 :]
        elif ir.subgraphs:
            raise ir.error(head, "a layer after the end of the sub-graph before it")
        else:
            ir.layers.append(head)
            rest = rest[1:]
    if "model_name" not in ir.header.values:
        raise ir.error(ir.header, "the header has no model_name", "is this a Compass IR file?")
    return ir


def _sections(text: str, path: str) -> list[Section]:
    sections: list[Section] = []
    current: Section | None = None
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line:
            current = None
            continue
        if current is None:
            current = Section(line=number)
            sections.append(current)
            GRAPH_LAYERS.check(len(sections) - 1, path, Span(path, number))
        if not is_label(line.replace("\t", " ")):
            raise CompassError("the line has characters that cannot be printed", Span(path, number), code="compass-ir")
        parts = line.split("=")
        if len(parts) != 2:
            raise CompassError(
                f"expected one 'key=value', found {len(parts) - 1} '='", Span(path, number), code="compass-ir"
            )
        try:
            current.values[parts[0].strip()] = parse_value(parts[1].strip())
        except CompassError as error:
            raise CompassError(error.message, Span(path, number), code="compass-ir") from None
    return sections


def format_ir(ir: CompassIR) -> str:
    """The text of an IR. CompassError when a key or a string could not be read back."""
    sections = [ir.header, *ir.layers]
    for graph in ir.subgraphs:
        sections += [graph.header, *graph.layers]
    return "\n\n".join(_format_section(section) for section in sections) + "\n"


def _format_section(section: Section) -> str:
    lines = []
    for key, value in section.values.items():
        line = f"{key}={format_value(value)}"
        if line.count("=") != 1 or not is_label(line) or not key.strip():
            raise CompassError(f"'{line}' cannot be written as one key=value line", code="compass-ir")
        lines.append(line)
    return "\n".join(lines)
