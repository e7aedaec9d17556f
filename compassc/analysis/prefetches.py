"""Accesses that a loop makes for its later turns, in an extents program.

`for i in ...: if i + ahead < stop: access(i + ahead)` accesses what the turns from `start + ahead` on would; with what the
first turns need in front of it, what all turns would. Written as such there is no condition that tells turns apart, and a
pipelined loop has the program of a plain one.
"""

from __future__ import annotations

from itertools import count

from compass_core.extents import fold
from compass_core.extents.structure import BODIES, Code, Structure, Term

_CUTS = ("i32", "i64")
_MOST = 8
"""Turns that accesses are ahead."""


def apart(body: list[Code]) -> list[Code]:
    """The body with such accesses where the turns are that they are for."""
    found: list[Code] = []
    for s in body:
        places = BODIES.get(s[0], ())
        s = [apart(x) if k in places else x for k, x in enumerate(s)]
        if s[0] == "for":
            _add_loop(s, found)
        else:
            found.append(s)
    return found


def _add_loop(loop: Code, found: list[Code]) -> None:
    """Add a loop behind the statements `found`, of which the last may be its first turns."""
    _, var, start, stop, step, body = loop
    rest: list[Code] = []
    own: list[Code] = []
    for s in body:
        turns = _ahead(s, loop)
        if not turns:
            rest.append(s)
            continue
        (_, name, _), *accesses = s[2]
        if found and _are_first_turns(found[-1], loop, s[2], turns):
            found.pop()
            own += [["let", name, var], *accesses]
            continue
        later = f"{var}~{name}"  # a name that no variable of a kernel has
        first = fold("add", start, fold("mul", step, turns))
        found.append(["for", later, first, stop, step, [["let", name, later], *accesses]])
    found.append([*loop[:5], [*own, *rest]])


def _mentions(e: object, names: frozenset[str]) -> bool:
    return e in names if isinstance(e, str) else isinstance(e, list) and any(_mentions(x, names) for x in e)


def _ahead(s: Code, loop: Code) -> int:
    """How many turns ahead the accesses of a statement `if i + ahead < stop: later = i + ahead; ...` are; 0 for others, and
    where they depend on anything else that turns change."""
    _, var, _, stop, step, body = loop
    if s[0] != "if" or s[3] or not s[2] or s[2][0][0] != "let":
        return 0
    whole, inner = Structure().of(body), Structure().of(s[2])
    if whole.leaves or inner.changed or _mentions([stop, step], whole.defined):
        return 0
    if _mentions(s[2][1:], (whole.defined | {var}) - inner.defined):
        return 0
    condition, later = _plain(s[1]), _plain(s[2][0][2])
    for turns in range(1, _MOST + 1):
        gone = _plain(fold("mul", step, turns))
        conditions = (["lt", gone, _minus(stop, var)], ["lt", ["add", var, gone], _plain(stop)])
        if condition in conditions and later == ["add", var, gone]:
            return turns
    return 0


def _are_first_turns(s: Code, loop: Code, ahead: list[Code], turns: int) -> bool:
    """Whether a statement is the accesses of the first turns of a loop, as `ahead` has them for later ones."""
    _, _, start, stop, step, _ = loop
    for k in count():
        if k == turns:
            return not s
        gone = _plain(fold("mul", step, k))
        condition = ["lt", start, stop] if not k else ["lt", gone, _minus(stop, start)]
        if not s or s[0] != "if" or s[3] or _plain(s[1]) != _plain(condition):
            return False
        first, last = s[2][: len(ahead)], s[2][len(ahead) :]
        if (
            not first
            or first[0][0] != "let"
            or _plain(first[0][2]) != _plain(fold("add", start, gone))
            or len(last) > 1
        ):
            return False
        if not _same(first[1:], ahead[1:], {first[0][1]: ahead[0][1]}):
            return False
        s = last[0] if last else []
    return False


def _same(a: object, b: object, names: dict[str, str]) -> bool:
    """Whether statements are the same but for the names of what they define; `names`: those of the first by the second's."""
    if isinstance(a, list) and isinstance(b, list):
        if a and b and a[0] == b[0] and a[0] in ("let", "for", "tec"):
            names[a[1]] = b[1]
        if len(a) != len(b):
            return False
        for x, y in zip(a, b):  # a loop, as most are words and numbers
            if not _same(x, y, names):
                return False
        return True
    return bool(names.get(a, a) == b) if isinstance(a, str) else type(a) is type(b) and bool(a == b)


def _minus(a: Term, b: Term) -> Term:
    return _plain(a) if b == 0 else fold("sub", _plain(a), _plain(b))


def _plain(e: Term) -> Term:
    """An expression without cuts to types that hold every index."""
    if not isinstance(e, list):
        return e
    return _plain(e[1]) if e[0] in _CUTS else [e[0], *map(_plain, e[1:])]
