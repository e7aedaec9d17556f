"""Which cases the clauses of a `Match` leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from itertools import product

from compassc.relay.expr import (
    Constructor,
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)
from compassc.relay.infer.errors import error

MOST_CASES = 10_000
"""More cases than this are not looked through."""
Constructors = Callable[[Constructor], Sequence[Constructor]]
"""All constructors of the type that one makes."""


class _Fit(Enum):
    COVERED = "the pattern takes all of the case"
    CLASH = "the pattern takes none of it"
    OPEN = "the pattern takes a part of it"


def unmatched_cases(match: Match, constructors: Constructors) -> list[Pattern]:
    """The cases that no clause takes, as patterns: what is tried first is a wildcard, of which a clause that takes a part
    makes the cases of its constructor's type."""
    left: list[Pattern] = []
    cases: list[Pattern] = [PatternWildcard()]
    tried = 0
    while cases:
        case = cases.pop(0)
        tried += 1
        if tried > MOST_CASES:
            raise error(match, f"the match has more than {MOST_CASES} cases", help="match one after another")
        for clause in match.clauses:
            fit = _fit(clause.lhs, case)
            if fit is _Fit.OPEN:
                cases.extend(_expanded(clause.lhs, case, constructors))
            if fit is not _Fit.CLASH:
                break
        else:
            left.append(case)
    return left


def _fit(pattern: Pattern, case: Pattern) -> _Fit:
    if isinstance(pattern, (PatternWildcard, PatternVar)):
        return _Fit.COVERED
    if isinstance(case, PatternWildcard):
        return _Fit.OPEN
    if getattr(pattern, "constructor", None) is not getattr(case, "constructor", None):
        return _Fit.CLASH
    fits = [_fit(p, c) for p, c in zip(_fields(pattern), _fields(case))]
    return next((fit for fit in (_Fit.CLASH, _Fit.OPEN) if fit in fits), _Fit.COVERED)


def _fields(pattern: Pattern) -> Sequence[Pattern]:
    return pattern.patterns if isinstance(pattern, (PatternConstructor, PatternTuple)) else ()


def _wildcards(count: int) -> list[Pattern]:
    return [PatternWildcard() for _ in range(count)]


def _expanded(pattern: Pattern, case: Pattern, constructors: Constructors) -> Iterator[Pattern]:
    """The cases that a case consists of, as far as a pattern that takes a part of it tells them apart."""
    if isinstance(case, PatternWildcard):
        if isinstance(pattern, PatternConstructor):
            for one in constructors(pattern.constructor):
                yield PatternConstructor(one, _wildcards(len(one.inputs)))
        elif isinstance(pattern, PatternTuple):
            yield PatternTuple(_wildcards(len(pattern.patterns)))
        return
    choices = [
        list(_expanded(p, c, constructors)) if _fit(p, c) is _Fit.OPEN else [c]
        for p, c in zip(_fields(pattern), _fields(case))
    ]
    for fields in product(*choices):
        if isinstance(case, PatternConstructor):
            yield PatternConstructor(case.constructor, fields)
        else:
            yield PatternTuple(fields)


def text(pattern: Pattern) -> str:
    """A case as it is shown in errors: `Cons(_, Nil)`."""
    name = pattern.constructor.name_hint if isinstance(pattern, PatternConstructor) else ""
    fields = ", ".join(map(text, _fields(pattern)))
    if isinstance(pattern, PatternTuple):
        return f"({fields})"
    return f"{name}({fields})" if fields else name or "_"
