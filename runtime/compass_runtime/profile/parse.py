"""The syntax tree of a kernel's C text, from clang: preprocessed, with the text's own functions in it and no others."""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from compass_core.hostcc.command import behind_header
from compass_core.hostcc.foreign import STDIN, examine
from compass_core.hostcc.sources import Source
from compass_runtime.profile.regions import Place

Node = dict[str, Any]
OWN = "__compass_own_"
"""What the names of the text's functions begin with while it is parsed: clang's dump is filtered by it."""

_TOKEN = re.compile(
    r'(?P<line>^#[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*(?:"|$)|\'(?:\\.|[^\'\\\n])*(?:\'|$))|(?P<name>[A-Za-z_]\w*)|(?P<mark>[(){};])',
    re.MULTILINE,
)
_MARKER = re.compile(r'^# (\d{1,9}) "((?:\\.|[^"\\\n])*)"[^\n]*$', re.MULTILINE)
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
    def _markers(self) -> tuple[list[int], list[Place]]:
        found = [(m.end() + 1, (json.loads(f'"{m[2]}"'), int(m[1]))) for m in _MARKER.finditer(self.text)]
        return [at for at, _ in found], [place for _, place in found]

    def place(self, offset: int) -> Place:
        """The source line that the character at `offset` comes from."""
        starts, places = self._markers
        which = bisect.bisect_right(starts, offset) - 1
        if which < 0:
            return "?", 1 + self.text.count("\n", 0, offset)
        file, line = places[which]
        return file, line + self.text.count("\n", starts[which], offset)


def parse(source: Source, clang: str | None = None) -> Text:
    """The tree of a translation unit. ToolchainError when clang is missing or cannot read it; see `examine`."""
    plain = own_text(examine(source, source.unit, ("-E",), clang), source.name)
    functions = own_functions(plain)
    marked = with_own_names(plain, functions)
    filter = ("-Xclang", "-ast-dump=json", "-Xclang", "-ast-dump-filter", "-Xclang", OWN)
    dump = examine(source, marked, ("-fsyntax-only", *filter), clang)
    declared = tuple(node for node in _objects(dump) if node["kind"] == "FunctionDecl")
    return Text(marked, functions, declared)


def own_text(preprocessed: str, name: str) -> str:
    """What follows the header in the output of the preprocessor; pragmas as operators, before which text may stand."""
    text = f"# 1 {json.dumps(name)}" + behind_header(preprocessed, STDIN)
    return _PRAGMA.sub(lambda pragma: f"_Pragma({json.dumps(pragma[1])})", text)


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


def _objects(dump: str) -> Iterator[Node]:
    """The JSON objects of a dump, which stand one behind the other."""
    decoder, at = json.JSONDecoder(), dump.find("{")
    while at >= 0:
        node, end = decoder.raw_decode(dump, at)
        yield node
        at = dump.find("{", end)
