"""Regular expressions that a file brings: compiled where matching them takes little time, else refused.

Python's matcher tries one way after the other; a repetition within a repetition has more ways than anybody can wait for.
"""

from __future__ import annotations

import re
from typing import Any

from compass_core.reading.limits import PATTERN_STEPS

LONGEST = 4096
"""Characters of a pattern."""
MANY = 1 << 62


def compiled(pattern: str, longest: int) -> re.Pattern[str]:
    """The pattern, for texts of up to `longest` characters. ValueError where it is none, CompassError (`limit-exceeded`)
    where matching one of these may take too many steps."""
    if len(pattern) > LONGEST:
        raise ValueError(f"a pattern of {len(pattern)} characters is too long")
    try:
        found = re.compile(pattern)
        tree = _tree(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"'{pattern}' is no regular expression: {error}") from None
    PATTERN_STEPS.check(min(_ways(tree, longest) * (longest + 1), MANY), f"the pattern '{pattern}'")
    return found


def _tree(pattern: str) -> object:
    """What Python's compiler sees: pairs of an operation and its parts."""
    from importlib import import_module

    # one module of two names: `re._parser` since 3.11
    parser = getattr(re, "_parser", None) or import_module("sre_parse")
    return parser.parse(pattern)


def _ways(tree: Any, longest: int) -> int:
    """How many ways the matcher may try at one place of a text; at most `MANY`."""
    ways = 1
    for operation, parts in tree:
        ways = min(ways * _ways_of(str(operation), parts, longest), MANY)
    return ways


def _ways_of(operation: str, parts: Any, longest: int) -> int:
    if operation in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, inside = int(parts[0]), int(parts[1]), parts[2]
        # no more often than there are characters, unless nothing is to be matched often
        times, each = max(min(most, longest), 0 if inside.getwidth()[0] else least), _ways(inside, longest)
        if each == 1:
            return times + 1
        return MANY if times > 62 else min((each + 1) ** times, MANY)
    if operation == "POSSESSIVE_REPEAT":
        return _ways(parts[2], longest)
    if operation == "BRANCH":
        return min(sum(_ways(branch, longest) for branch in parts[1]), MANY)
    if operation == "GROUPREF_EXISTS":
        return sum(_ways(branch, longest) for branch in parts[1:] if branch is not None)
    if operation in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        return _ways(parts[-1], longest)
    return _ways(parts, longest) if operation == "ATOMIC_GROUP" else 1
