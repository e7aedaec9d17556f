"""The syntax tree of a kernel's C text, from clang: preprocessed, with the text's own functions in it and no others."""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from compass_core.dataclass import dataclass
from compass_core.hostcc import pch
from compass_core.hostcc.command import behind_header
from compass_core.hostcc.foreign import STDIN, examine
from compass_core.hostcc.sources import Source
from compass_runtime.profile.regions import Location

Node = dict[str, Any]
OWN = "__compass_own_"
"""What the names of the text's functions begin with while it is parsed: clang's dump is filtered by it."""

_TOKEN = re.compile(
    r'(?P<line>^#[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*(?:"|$)|\'(?:\\.|[^\'\\\n])*(?:\'|$))|(?P<name>[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)|(?P<mark>[(){};])',
    re.MULTILINE,
)
_MARKER = re.compile(r'^# (\d{1,9}) "((?:\\.|[^"\\\n])*)"(?P<flags>[^\n]*)$', re.MULTILINE)
_ESCAPE = re.compile(rb"\\\\([0-7]{1,3}|.)", re.DOTALL)
_PRAGMA = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+([^\n]*)$", re.MULTILINE)
_NO_FUNCTION = ("__attribute__", "__asm__", "asm")


@dataclass(frozen=True)
class Text:
    """A preprocessed text whose own functions have names that begin with OWN, and the definitions of those functions."""

    text: str
    functions: frozenset[str]
    declarations: tuple[Node, ...]
    """Every declaration of an own function, definitions among them."""

    def end(self, node: Node) -> int:
        """Where an expression's text ends. clang leaves the last parenthesis of casts to vectors, `(int8)(x)`, out."""
        first, last = node["range"]["begin"]["offset"], node["range"]["end"]
        at: int = last["offset"] + last["tokLen"]
        marks = [token["mark"] for token in _TOKEN.finditer(self.text, first, at)]
        for _ in range(marks.count("(") - marks.count(")")):
            at = self.text.index(")", at) + 1
        return at

    @cached_property
    def _markers(self) -> tuple[list[int], list[Location]]:
        found = [(m.end() + 1, (_unescaped(m[2]), int(m[1]))) for m in _MARKER.finditer(self.text)]
        return [at for at, _ in found], [place for _, place in found]

    def place(self, offset: int) -> Location:
        """The source line that the character at `offset` comes from."""
        starts, places = self._markers
        which = bisect.bisect_right(starts, offset) - 1
        if which < 0:
            return "?", 1 + self.text.count("\n", 0, offset)
        file, line = places[which]
        return file, line + self.text.count("\n", starts[which], offset)


def parse(source: Source, clang: str | None = None) -> Text:
    """The tree of a translation unit. ToolchainError when clang is missing or cannot read it; see `examine`."""
    plain = own_text(examine(source, source.unit, ("-E",), clang, pch.MACROS), source.name)
    functions = own_functions(plain)
    marked = with_own_names(plain, functions)
    filter = ("-Xclang", "-ast-dump=json", "-Xclang", "-ast-dump-filter", "-Xclang", OWN)
    dump = examine(source, marked, ("-fsyntax-only", *filter), clang, pch.DECLARATIONS)
    declared = tuple(node for node in _objects(dump, marked) if node["kind"] == "FunctionDecl")
    return Text(marked, functions, declared)


def own_text(preprocessed: str, name: str) -> str:
    """What follows the header in the output of the preprocessor; pragmas as operators, before which text may stand, and
    the names of files as clang reads them: what it writes, such as `\\303` for a byte, it takes for a mistake."""
    text = f'# 1 "{name}"' + behind_header(preprocessed, STDIN)
    text = _MARKER.sub(lambda marker: f'# {marker[1]} "{_escaped(_unescaped(marker[2]))}"{marker["flags"]}', text)
    return _PRAGMA.sub(lambda pragma: f"_Pragma({json.dumps(pragma[1])})", text)


def _unescaped(literal: str) -> str:
    """The name of a file as a line marker has it between its quotes; `?` for characters that cannot be printed."""
    data = _ESCAPE.sub(_byte, literal.encode(errors="surrogateescape"))
    return "".join(one if one.isprintable() else "?" for one in data.decode(errors="replace"))


def _byte(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 8) & 0xFF]) if escape[1][:1].isdigit() else escape[1]


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def own_functions(text: str) -> frozenset[str]:
    """The functions that a preprocessed text defines itself: those with debug information."""
    found = set()
    depth = parens = 0
    names: list[str] = []
    candidate = None
    for token in _TOKEN.finditer(text):
        mark = token["mark"]
        if mark in ("(", ")"):
            if mark == "(" and parens == depth == 0 and candidate is None and names and names[-1] not in _NO_FUNCTION:
                candidate = names[-1]
            parens += 1 if mark == "(" else -1
        elif mark == "{":
            if depth == 0 and candidate is not None and "nodebug" not in names:
                found.add(candidate)
            depth += 1
        elif mark:
            depth -= mark == "}"
            if depth == 0:
                names, candidate = [], None
        elif token["name"] and depth == 0:
            names.append(token["name"])
    return frozenset(found)


def with_own_names(text: str, functions: frozenset[str]) -> str:
    """The text with OWN before every use of the functions' names."""
    return _TOKEN.sub(lambda token: OWN + token[0] if token["name"] in functions else token[0], text)


def _objects(dump: str, text: str) -> Iterator[Node]:
    """The JSON objects of a dump of `text`, which stand one behind the other. Places are in characters of the text, where
    clang counts bytes."""
    decoder, at = json.JSONDecoder(object_hook=_in_characters(text)), dump.find("{")
    while at >= 0:
        node, end = decoder.raw_decode(dump, at)
        yield node
        at = dump.find("{", end)


def _in_characters(text: str) -> Callable[[Node], Node] | None:
    """Turns a place in bytes into one in characters; None where they are the same."""
    if text.isascii():
        return None
    import numpy as np

    data = np.frombuffer(text.encode(errors="surrogateescape"), np.uint8)
    before = np.concatenate(([0], np.cumsum((data & 0xC0) != 0x80)))

    def place(node: Node) -> Node:
        if "offset" in node:
            begin = node["offset"]
            node["offset"] = int(before[begin])
            node["tokLen"] = int(before[begin + node["tokLen"]]) - node["offset"]
        return node

    return place
