"""The text form of Compass IR: sections of `key=value` lines, the first one the header, each further one a layer.

`parse(format_ir(ir))` gives an equal IR as long as its strings are not spelled like another kind of value.
"""

from __future__ import annotations

from dataclasses import field

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span
from compass_core.reading.limits import GRAPH_LAYERS
from compass_core.reading.names import is_label
from compassc.graph.values import Value, format_value, parse_value

WORDS = frozenset(
    "model_name subgraph_name layer_name layer_type layer_bottom layer_top input_tensors output_tensors".split()
)
"""Keys whose values are names, whatever they look like; so are the expressions of keys that begin with `ds_`."""


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
            raise CompassError(
                "the line has characters that cannot be printed",
                Span(path, number),
                code="compass-ir",
                help="a graph is a text of 'key=value' lines; of a model `compassc import` makes one",
            )
        parts = line.split("=")
        if len(parts) != 2:
            raise CompassError(
                f"expected one 'key=value', found {len(parts) - 1} '='", Span(path, number), code="compass-ir"
            )
        try:
            key = parts[0].strip()
            current.values[key] = parse_value(parts[1].strip(), words=key in WORDS or key.startswith("ds_"))
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
