"""Names of a specification that the script module lacks.

Two sources: headings that hold a call, such as ``### `S.vload(ptr, mask=None)` ``, name a script call with its
signature; headings that hold `S.name` alone name an export; and the section "Names exported by `S`" of language.md
lists names.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compass_core.errors import UsageError
from compass_core.namedtuple import NamedTuple

LANGUAGE = "language.md"
OPERATIONS = "ops-*.md"

_HEADING = re.compile(r"#+ ")
_CALL = re.compile(r"\bS\.([\w.]*\w)\(((?:[^()]|\([^()]*\))*)\)")
_NAME = re.compile(r"\bS\.(\w+)(?![\w.(])")
_EXPORTS = re.compile(r"## .*Names exported by `S`")
_GROUP = re.compile(r"(\w+) \((\w+(?:, \w+)*)\)")


class Item(NamedTuple):
    """A name of the specification, where it stands, and its parameters (None: any)."""

    name: str
    place: str
    parameters: str | None = None


def missing(folder: Path, script: object) -> list[str]:
    """One line per name or signature of the specification in `folder` that `script` does not have.

    Raises UsageError when the folder holds no specification.
    """
    items = list(_items(folder))
    if not items:
        raise UsageError(
            f"no specification in {folder}", code="input", help=f"it needs {OPERATIONS} or {LANGUAGE} with headings"
        )
    checked = (_problem(item, script) for item in dict.fromkeys(items))
    return [line for line in checked if line]


def _items(folder: Path) -> Iterator[Item]:
    for path in sorted(folder.glob(OPERATIONS)):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if _HEADING.match(line):
                yield from _heading_items(line, f"{path.name}:{number}")
    language = folder / LANGUAGE
    if language.is_file():
        yield from _exported(language.read_text(encoding="utf-8"))


def _heading_items(line: str, place: str) -> Iterator[Item]:
    for name, parameters in _CALL.findall(line):
        yield Item(name, place, parameters)
    for name in _NAME.findall(line):
        yield Item(name, place)


def _exported(text: str) -> Iterator[Item]:
    """The names of the list of exports: items of one word, and `name (attribute, ...)`."""
    found = _EXPORTS.search(text)
    if found is None:
        return
    section = text[found.end() :].partition("\n## ")[0]
    for bullet in re.split(r"\n- ", section)[1:]:
        names = " ".join(bullet.split()).partition(": ")[2].rstrip(".")
        for name, attributes in _GROUP.findall(names):
            yield from (Item(f"{name}.{attribute}", LANGUAGE) for attribute in attributes.split(", "))
        plain = re.sub(r" ?\([^()]*\)", "", names)
        words = plain.split(", ") if "," in plain else plain.split()
        yield from (Item(word, LANGUAGE) for word in words if word.isidentifier())


def _problem(item: Item, script: Any) -> str:
    """What is wrong with a name; empty when nothing is."""
    found = script
    for part in item.name.split("."):
        found = getattr(found, part, None)
        if found is None:
            return f"S.{item.name} ({item.place}): there is no such name"
    if item.parameters is None or not hasattr(found, "__name__"):  # data type names convert one value
        return ""
    signature, wanted = _plain(inspect.signature(found)), _declared(item.parameters)
    return "" if signature == wanted else f"S.{item.name} ({item.place}): takes {signature}, not {wanted}"


def _declared(parameters: str) -> str:
    """The signature a heading shows, written as Python writes it."""
    scope: dict[str, Any] = {}
    exec(f"def declared({parameters}): pass", {}, scope)  # noqa: S102  a parameter list, checked by _CALL
    return _plain(inspect.signature(scope["declared"]))


_STARS: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def _plain(signature: inspect.Signature) -> str:
    """Names and defaults. How a parameter may be passed and its annotation do not count, nor that a decorator can take
    the function itself."""
    parts = []
    for p in signature.parameters.values():
        stars = _STARS.get(p.kind, "")
        parts.append(stars + p.name + ("" if p.default is p.empty else f"={p.default!r}"))
    return f"({', '.join(parts[parts[:1] == ['func=None'] :])})"
