"""Questions to the text of an extents program: what a body defines, changes and may do."""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict

from compass_core.dataclass import dataclass

Term: TypeAlias = "int | float | str | list[Term] | None"
"""An expression as JSON: a number, a variable, or a word and its parts."""
Code = list[Any]
"""A statement as JSON: its word, then its parts, which are expressions and bodies."""


class Function(TypedDict):
    """A function: the names of its parameters, and its statements."""

    params: list[str]
    body: list[Code]


class Program(TypedDict):
    """A whole program, as `extents` describes it."""

    entry: str
    params: dict[str, int]
    functions: dict[str, Function]


BODIES = {"for": (5,), "tec": (4,), "while": (2,), "if": (2, 3), "kernel": (1,)}
"""The positions of nested bodies in statements."""


@dataclass(frozen=True)
class Summary:
    """Facts about a body that hold in all its runs."""

    changed: dict[str, object]
    """Variables that it gives a new value, in the order of the text: the expression of those that get one in just one
    statement of the body itself, None for others."""
    defined: frozenset[str]
    """Variables that it defines or gives a new value."""
    breaks: bool
    """Whether it may end the loop it is the body of, by a break."""
    returns: bool

    @property
    def leaves(self) -> bool:
        """Whether it may end the loop it is the body of."""
        return self.breaks or self.returns


class Structure:
    """Summaries of bodies; each body is read once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[list[Code], Summary]] = {}

    def of(self, body: list[Code]) -> Summary:
        known = self._known.get(id(body))
        if known is None:
            known = self._known[id(body)] = (body, self._read(body))  # the body, so that its id stays its own
        return known[1]

    def _read(self, body: list[Code]) -> Summary:
        changed: dict[str, object] = {}
        defined: set[str] = set()
        breaks = returns = False
        for s in body:
            kind = s[0]
            if kind in ("set", "let", "for", "tec"):
                defined.add(s[1])
            if kind == "set":
                changed[s[1]] = None if s[1] in changed else s[2]
            breaks, returns = breaks or kind == "break", returns or kind == "return"
            for position in BODIES.get(kind, ()):
                inner = self.of(s[position])
                changed |= dict.fromkeys(inner.changed)  # not just once in each iteration
                defined |= inner.defined
                breaks = breaks or (inner.breaks and kind not in ("for", "while"))
                returns = returns or inner.returns
        return Summary(changed, frozenset(defined), breaks, returns)


def size(body: list[Code]) -> int:
    """The approximate number of steps of a body: its parts but the words of statements and operators."""
    found, level = 1, list[Code]([body])
    while level:
        found += sum(map(len, level)) - len([x for x in level if x and type(x[0]) is str])
        level = [x for parent in level for x in parent if type(x) is list]
    return found


def mentions(e: object, names: frozenset[str]) -> bool:
    """Whether an expression depends on the variables, or on values unknown before the loop."""
    if isinstance(e, str):
        return e in names
    return isinstance(e, list) and (e[0] in ("?", "call") or any(mentions(x, names) for x in e[1:]))
