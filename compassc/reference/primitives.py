"""Pages of the steps of schedules: what each does to the loops of a small example, which is run to make the page.

python -m compassc.reference.primitives

A step is a method; its page has its signature and docstring, the program, the loops before and after, and what a wrong
step is told. The examples are tables (`EXAMPLES` of a module per family).
"""

from __future__ import annotations

import importlib
import inspect
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc import te

FAMILIES = ("classic_steps", "block_steps")
"""The modules of this package with examples, which lie in `docs/schedules/FAMILY`."""


@dataclass(frozen=True)
class Example:
    """A step on a small program. `program` ends with a schedule; `step` follows it; `wrong` is refused.

    `full`: show what becomes of the loops on the NPU, not the plain loops.
    """

    program: str
    step: str
    wrong: str = ""
    full: bool = False


@dataclass(frozen=True)
class Family:
    """The steps of one kind of schedule: `owners` have them as methods; `show` gives the loops of an example's variables."""

    title: str
    folder: str
    owners: tuple[type, ...]
    show: Callable[[dict[str, Any], bool], str]
    examples: dict[str, Example]

    def method(self, name: str) -> Any:
        """The method that a step is."""
        return next(getattr(owner, name) for owner in self.owners if hasattr(owner, name))


def page(family: Family, name: str) -> str:
    """The page of a step."""
    example, method = family.examples[name], family.method(name)
    shown = str(inspect.signature(method)).replace("(self, ", "(").replace("(self)", "()").replace("'", "")
    text = inspect.getdoc(method) or ""
    before, after = _run(family, example.program, example), _run(family, example.program + example.step, example)
    parts = [
        f"# {name}",
        f"```python\n{name}{shown.partition(' -> ')[0]}\n```",
        text,
        "## Example",
        f"```python\n{example.program.strip()}\n```",
        _code("", before),
        f"```python\n{example.step.strip()}\n```",
        _code("", after),
    ]
    if example.wrong:
        parts += ["A step that is not legal is refused:", f"```python\n{example.wrong.strip()}\n```"]
        parts.append(_code("", _refusal(family, example)))
    return "\n\n".join(parts) + "\n"


def _code(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def _variables(code: str, path: str) -> dict[str, object]:
    namespace: dict[str, object] = {"te": te}
    exec(compile(code, path, "exec", dont_inherit=True), namespace)  # noqa: S102 - text of this package
    return namespace


@contextmanager
def _file(code: str) -> Iterator[str]:
    """A file with the code: kernels in it are read from there."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "example.py"
        path.write_text(code)
        yield str(path)


def _run(family: Family, code: str, example: Example) -> str:
    with _file(code) as path:
        return family.show(_variables(code, path), example.full)


def _refusal(family: Family, example: Example) -> str:
    try:
        _run(family, example.program + example.wrong, example)
    except CompassError as error:
        return f"error: {error.message}"
    raise AssertionError(f"nothing is wrong with {example.wrong!r}")


def index(family: Family) -> str:
    """The list of all steps."""
    rows = [f"| [{n}]({n}.md) | {_summary(family.method(n))} |" for n in sorted(family.examples)]
    return "\n".join([f"# {family.title}", "", "| step | what it does |", "|---|---|", *rows]) + "\n"


def _summary(method: object) -> str:
    return " ".join((inspect.getdoc(method) or "").split("\n\n")[0].split()).partition(". ")[0].rstrip(".")


def families() -> list[Family]:
    """All families of steps."""
    return [importlib.import_module(f"compassc.reference.{name}").FAMILY for name in FAMILIES]


def pages(family: Family) -> dict[str, str]:
    """All pages of a family by file name, the index included."""
    return {"README.md": index(family), **{f"{name}.md": page(family, name) for name in family.examples}}


def main(docs: Path) -> None:
    for family in families():
        files.write_pages(docs / "schedules" / family.folder, pages(family))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
