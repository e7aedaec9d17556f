"""The generator's own program tree: enough structure to print a kernel and to make it smaller.

Expressions and statements are templates with children, so that a reduction needs to know nothing of the language: it
puts a child in the place of its parent, or drops a statement, and looks whether the program still fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from compassc.ir.dtypes import DataType

INDENT = "    "


@dataclass(eq=False)
class Expr:
    """`template` has one `{}` per argument. `width`: of masks, the element bits of the vectors they govern."""

    template: str
    args: list[Expr]
    type: DataType
    width: int = 0

    def text(self) -> str:
        return self.template.format(*[a.text() for a in self.args])

    def walk(self) -> Iterator[Expr]:
        yield self
        for arg in self.args:
            yield from arg.walk()


@dataclass(eq=False)
class Clause:
    """A line (or several that belong together) with expressions in it, and the block below it if it has one."""

    template: str
    args: list[Expr]
    body: list[Stmt] | None = None


@dataclass(eq=False)
class Stmt:
    """One statement: more than one clause for `if ... elif ... else`."""

    clauses: list[Clause]

    def lines(self, indent: str) -> Iterator[str]:
        for clause in self.clauses:
            text = clause.template.format(*[a.text() for a in clause.args])
            yield from (indent + line for line in text.split("\n"))
            if clause.body is not None:
                yield from block_lines(clause.body, indent + INDENT)


def block_lines(body: list[Stmt], indent: str) -> Iterator[str]:
    if not body:
        yield indent + "pass"
    for stmt in body:
        yield from stmt.lines(indent)


def simple(template: str, *args: Expr) -> Stmt:
    return Stmt([Clause(template, list(args))])


@dataclass(eq=False)
class Function:
    """`head`: the text from the decorator to the name; `params`: name -> annotation."""

    decorator: str
    name: str
    params: dict[str, str]
    returns: str
    body: list[Stmt] = field(default_factory=list)

    def text(self) -> str:
        params = ", ".join(f"{name}: {kind}" if kind else name for name, kind in self.params.items())
        arrow = f" -> {self.returns}" if self.returns else ""
        lines = [self.decorator, f"def {self.name}({params}){arrow}:", *block_lines(self.body, INDENT)]
        return "\n".join(lines) + "\n"


@dataclass(eq=False)
class Program:
    """A kernel: its entry, with the parameters it may use, and the functions and macros it calls."""

    entry: Function
    functions: list[Function]
    data_seed: int
    target: str

    def used_params(self) -> list[str]:
        """The entry's parameters that occur in the text (macros see them too), in order."""
        bodies = [self.entry.body, *(f.body for f in self.functions)]
        words = set(re.findall(r"\w+", "\n".join(line for body in bodies for line in block_lines(body, ""))))
        return [name for name in self.entry.params if name in words]

    def text(self) -> str:
        """The functions that are used, and the entry with the parameters it uses."""
        params = {name: self.entry.params[name] for name in self.used_params()}
        own = Function(self.entry.decorator, self.entry.name, params, "", self.entry.body).text()
        parts = [own]
        for function in reversed(self.functions):
            if any(re.search(rf"\b{function.name}\b", part) for part in parts):
                parts.insert(0, function.text())
        return "\n\n".join(parts)
