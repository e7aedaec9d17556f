"""What operations and transfers cost on each generation, estimated: the files `configurations/cost`.

Those of generations have a form that needs no YAML package, for every kernel that is planned asks them: `name: value` lines,
values that are `{name: value, ...}`, and blocks of such lines. They are YAML all the same.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from compass_core import targets
from compass_core.errors import CompassError, Span

Table = dict[str, Any]
"""Numbers and words by name, in tables within each other."""
_ONE = r"[\w.]+"
_LINE = re.compile(rf"(?P<inner> *)(?P<key>\w+):(?: +(?P<value>{_ONE}|\{{\w+: {_ONE}(?:, \w+: {_ONE})*\}}))? *(?:#.*)?")


@lru_cache(maxsize=16)
def estimates(generation: str) -> Table:
    """A generation's file; its entries override those of the file that it is based on. CompassError where there is no such
    file, or at the line that is wrong. The result is shared: nobody changes it."""
    content = _read(_file(generation))
    return {**estimates(content.pop("based_on")), **content} if "based_on" in content else content


@lru_cache(maxsize=16)
def listed(name: str) -> Table:
    """A file of lists that are the same for all generations; see `estimates`."""
    import yaml

    fastest = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    content: Table = yaml.load(_file(name).read_text(encoding="utf-8"), fastest)
    return content


def _file(name: str) -> Path:
    path = targets.folder() / "cost" / f"{name}.yaml"
    if not path.is_file():
        raise CompassError(f"there is no cost model for {name}", code="bad-target-file", help=f"it would be {path}")
    return path


def _read(path: Path) -> Table:
    content: Table = {}
    block = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None or (match["inner"] and not (block and match["value"])):
            raise CompassError("expected 'name: value'", Span(str(path), number), code="bad-target-file")
        key, value = match["key"], _value(match["value"]) if match["value"] else {}
        if match["inner"]:
            content[block][key] = value
        else:
            content[key], block = value, "" if match["value"] else key
    return content


def _value(text: str) -> object:
    if text.startswith("{"):
        return {key: _value(value) for key, value in (part.split(": ", 1) for part in text[1:-1].split(", "))}
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
