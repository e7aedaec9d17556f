"""The pages on the sources against the tree: rooms and who imports whom, folders, files and functions that are named."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from compassc.layers.kernel_cache import NO_MAKERS
from tests import sources
from tests.sources import FOLDERS as SOURCES
from tests.sources import ROOT

TEXT = (ROOT / "docs/architecture.md").read_text()
FOLDERS_PAGE = (ROOT / "docs/internals/folders.md").read_text()
EVERYTHING = "\n".join([TEXT, *(page.read_text() for page in sorted((ROOT / "docs/internals").glob("*.md")))])
WALKTHROUGH = (ROOT / "docs/walkthrough.md").read_text()


def table(head: str, text: str = TEXT) -> list[list[str]]:
    """The rows of the table whose head starts so."""
    lines = text.split(head, 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def words(cell: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", cell))


def part_of(module: str) -> str:
    """What the table calls it: `compass_core`, `dsl` for `compassc.language.info`, `compassc` itself."""
    top, *rest = module.split(".")
    if rest == ["__main__"]:
        return module
    return rest[0] if top == "compassc" and rest else top


def imported(node: ast.Import | ast.ImportFrom, package: list[str]) -> Iterator[str]:
    """The modules that an import statement names; of `from compassc import dsl` that is `compassc.dsl`."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join(base + ([node.module] if node.module else []))
    yield from (f"{module}.{alias.name}" for alias in node.names) if module == "compassc" else (module,)


def is_module_name(node: ast.AST) -> bool:
    """Whether it is a text that names a module of ours, for `import_module` and what takes its place."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or node.value.split(".")[0] not in SOURCES:
        return False
    with contextlib.suppress(ImportError):
        return bool(re.fullmatch(r"\w+(\.\w+)+", node.value)) and importlib.util.find_spec(node.value) is not None
    return False


def loads(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The import statements that run when a module is loaded."""
    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        elif isinstance(node, ast.Try):
            yield from loads(node.body)


@cache
def imports() -> tuple[tuple[str, str, bool, bool, str], ...]:
    """What `_imports` finds."""
    return tuple(_imports())


def _imports() -> Iterator[tuple[str, str, bool, bool, str]]:
    """Every import of one part from another: who, whom, whether at load time, whether a text names the module, where."""
    for top, folder in SOURCES.items():
        for path in sorted((folder / top).rglob("*.py")):
            *package, name = path.relative_to(folder).with_suffix("").parts
            asking = part_of(".".join(package if name == "__init__" else [*package, name]))
            early = set(map(id, loads(sources.parsed(path).body)))
            for node in sources.nodes(path):
                if isinstance(node, (ast.Import, ast.ImportFrom)) or is_module_name(node):
                    others = imported(node, package) if not isinstance(node, ast.Constant) else (node.value,)
                    for other in others:
                        if other.split(".")[0] in SOURCES and part_of(other) != asking:
                            named = isinstance(node, ast.Constant)
                            yield (
                                asking,
                                part_of(other),
                                id(node) in early,
                                named,
                                f"{path.relative_to(ROOT)}:{node.lineno}",
                            )


ROOMS = {row[0]: words(row[1]) for row in table("| room | packages |")}
"""The packages of each room, the first one at the bottom."""
ASKS = {row[0]: row[3] for row in table("| room | packages |")}
NAMED = {("pass_manager", "passes"), ("pass_manager", "relay")}
"""Who names whom in text, upwards: the folders of passes."""


def asked(room: str) -> set[str]:
    """The rooms that a room may ask."""
    return set(ROOMS) - {room} if ASKS[room] == "all" else set(filter(None, ASKS[room].split(", ")))


def test_rooms_ask_those_above_them():
    above: set[str] = set()
    for room in ROOMS:
        assert ASKS[room] == "all" or asked(room) <= above, room
        above.add(room)
    assert 15 < len(ROOMS) <= 22


def test_imports_are_those_of_the_table():
    """Imports in functions and texts that name modules count."""
    room_of = {part: room for room, parts in ROOMS.items() for part in parts}
    wrong, seen = [], set()
    for asking, other, _, named, where in imports():
        mine, theirs = room_of[asking], room_of[other]
        seen.add((mine, theirs))
        if mine != theirs and theirs not in asked(mine) and not (named and (asking, other) in NAMED):
            wrong.append(f"{where}: {asking} imports {other}, but {mine} does not ask {theirs}")
    assert not wrong, "\n".join(wrong)
    assert not [(a, b) for a in ROOMS if ASKS[a] != "all" for b in asked(a) if (a, b) not in seen]


def test_what_makes_kernels_of_layers_asks_nothing_that_is_said_not_to():
    """The key of a plan has the state of all packages but those."""
    below, rooms = set[str](), {"layers", "tuning"}
    while rooms - below:
        below |= rooms
        rooms = {other for room in below for other in asked(room)}
    assert not set().union(*(ROOMS[room] for room in below)) & set(NO_MAKERS)


def test_no_circle_of_packages():
    """Imports in functions and for type checkers count; tables of modules that are imported by name do not."""
    asks: dict[str, set[str]] = {}
    for asking, other, _, named, _ in imports():
        if not named:
            asks.setdefault(asking, set()).add(other)
    assert len(asks) > 20
    TopologicalSorter(asks).prepare()


def modules() -> dict[str, Path]:
    """Every module of ours by its full name."""
    found = {}
    for top, folder in SOURCES.items():
        for path in (folder / top).rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def named_modules(name: str, path: Path) -> Iterator[tuple[str, int]]:
    """What a module of ours names in its imports, wherever they stand, and in texts, with the lines."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in sources.nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join(base + ([node.module] if node.module else []))
            full = [f"{module}.{alias.name}" for alias in node.names]
            yield from ((one if one in MODULES else module, node.lineno) for one in full)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and TEXTUAL.fullmatch(node.value):
            yield node.value.partition(":")[0], node.lineno


TEXTUAL = re.compile(rf"(?:{'|'.join(SOURCES)})(?:\.[a-z_]+)+(?::\w*)?")
NO_MODULES = {"compass_runtime.h"}
"""Texts that look like the name of a module."""


def test_imports_name_modules_that_exist():
    """Texts count too: tables of names that are imported when they are used."""
    missing = [
        f"{path.relative_to(ROOT)}:{line}: {other}"
        for name, path in MODULES.items()
        for other, line in named_modules(name, path)
        if other.split(".")[0] in SOURCES and other not in MODULES and other not in NO_MODULES
    ]
    assert not missing, "\n".join(missing)


def test_the_pages_name_modules_that_exist():
    """A full name is a module, or something that its module defines."""
    names = re.findall(rf"`((?:{'|'.join(SOURCES)})(?:\.\w+)+)`", EVERYTHING)
    owners = {name: name if name in MODULES else name.rpartition(".")[0] for name in names}
    assert len(names) > 10
    wrong = [
        name
        for name, owner in owners.items()
        if owner not in MODULES or (name != owner and name.rpartition(".")[2] not in MODULES[owner].read_text())
    ]
    assert not wrong


def test_no_circle_in_the_language():
    """Imports in functions, in texts and for type checkers count."""
    rooms = ("compassc.language", "compassc.pysim", "compassc.dsl", "compassc.settings")
    graph = {
        name: {other for other, _ in named_modules(name, path) if other in MODULES and other.startswith(rooms)} - {name}
        for name, path in MODULES.items()
        if name.startswith(rooms)
    }
    TopologicalSorter(graph).prepare()


def folders() -> Iterator[str]:
    """The folders with files of ours; `_bin`, `_lib` and `__pycache__` are made."""
    for top in ("compassc", "core", "runtime", "sim"):
        for path in sorted((ROOT / top).rglob("*")):
            where = path.parent.relative_to(ROOT)
            if path.is_file() and not any(name.startswith("_") for name in where.parts):
                yield str(where)


def test_every_folder_is_in_the_table():
    rows = table("| folder | package |", FOLDERS_PAGE)
    named = {folder for row in rows for folder in words(row[0])}
    named |= {
        f"{folder}/{name[:-1]}" for row in rows for folder in words(row[0]) for name in words(row[2]) if name[-1] == "/"
    }
    # a folder of families is named, each family's own is one of its kind
    found = {where for where in folders() if not where.startswith("compassc/layers/families")}
    assert found - named == {"compassc"}
    assert not [name for name in named if not (ROOT / name).is_dir()]


def defined(path: Path) -> set[str]:
    """The functions and classes of a file, methods as `Class.method`."""
    found = set()
    for node in sources.parsed(path).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def test_the_walkthrough_names_files_and_functions_that_exist():
    steps = re.findall(r"\| `([\w/]+\.py)` \| `([\w.]+)` \|", WALKTHROUGH)
    assert len(steps) > 30
    assert not [(file, name) for file, name in steps if name not in defined(ROOT / file)]
    named = re.findall(r"`((?:compassc|runtime)/[\w/]+(?:\.py)?)`", WALKTHROUGH)
    assert not [name for name in named if not (ROOT / name).exists()]
