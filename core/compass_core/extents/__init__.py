"""The extents of accesses: runs a kernel's index arithmetic for every TEC, to find how much of each tensor it accesses.

The compiler slices a kernel down to what addresses depend on (`compassc.analysis.extents`); that program, plain JSON,
is evaluated here: by the compiler when all scalars are known, and by the runtime with the scalars of a run. The time it
takes depends on the length of the program, not on the sizes it works on (`machine`).

Program: `{"entry": name, "params": {pointer: bytes per element}, "functions": {name: {"params": [...], "body": [...]}}}`.
Statements: `["let", var, e]` (definition), `["set", var, e]` (a new value), `["for", var, start, stop, step, body]`,
`["tec", var, start, stop, body]`, `["while", c, body]`, `["if", c, then, else]`,
`["access", pointer, first byte, bytes]`, `["do", e]`, `["break"]`, `["return", e or null]`.
Expressions: a number, `"name"`, `["?"]` (depends on data; `["?", least, most]` within bounds), or `[operator, ...]`: the
operators of `compass_core.operators`, `["i32", e]` and the like (cut to a type), `["between", least, most]` (a number
of that range), `["addr", pointer, bytes]`, and those that `machine` and `values` name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.extents.structure import Code, Program, Term
from compass_core.operators import OPERATORS

if TYPE_CHECKING:
    import numpy as np

PARTS_LIMIT = 1_000_000
"""Parts a program may have."""
DEPTH_LIMIT = 200
"""How deep statements and expressions may be nested."""


@dataclass(frozen=True)
class Extent:
    """What a kernel needs of a tensor, in elements from its start on.

    `elements` is what it can reach at most; None with a `reason` when the index arithmetic cannot tell. `certain` is
    what it accesses in any case: less than `elements` where accesses depend on data.
    """

    elements: int | None
    reason: str = ""
    certain: int = 0


def evaluate(
    program: Program, scalars: Mapping[str, float | np.generic], tec_count: int, nulls: Collection[str] = ()
) -> dict[str, Extent]:
    """The extent of every pointer parameter, over all TECs, with the given scalar values (NumPy's are taken as Python's).

    `nulls` are the parameters that are null pointers. CompassError for what is no program.
    """
    from .interpreter import Interpreter, TooLong
    from .values import Split

    plain = {name: value.item() if hasattr(value, "item") else value for name, value in scalars.items()}
    try:
        tids = tec_count if _uses_tid(program) else 1
        interpreter = Interpreter(program, plain, tec_count, nulls)
        try:
            interpreter.run(program["entry"], tids)
        except (TooLong, RecursionError, Split):
            interpreter.reach.blame_all("the index arithmetic takes too long to follow")
        reach = interpreter.reach
        return {
            name: Extent(
                None if name in reach.unknown else -(-reach.most[name] // elem),
                reach.unknown.get(name, ""),
                -(-reach.certain[name] // elem),
            )
            for name, elem in program["params"].items()
        }
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
        raise _damaged(f"{type(error).__name__}: {error!s:.80}") from error


def _damaged(why: str) -> CompassError:
    return CompassError(
        f"the extents program of the kernel is damaged ({why})", code="invalid-gbin", help="build the kernel again"
    )


def _uses_tid(program: Program) -> bool:
    """Whether it matters which TEC runs. CompassError for a program that is too large or nested too deeply."""
    level: list[Code] = [f["body"] for f in program["functions"].values()]
    found, parts = False, 0
    for _ in range(DEPTH_LIMIT):
        # Counted before they are gathered: a short file can name one list a thousand times, at each level.
        parts += sum(map(len, level))
        if parts > PARTS_LIMIT:
            raise _damaged(f"more than {PARTS_LIMIT} parts")
        level = [x for parent in level for x in parent if type(x) is list]
        if not level:
            return found
        found = found or any(x and x[0] in ("tid", "tec") for x in level)
    raise _damaged(f"nested more than {DEPTH_LIMIT} levels deep")


def apply(op: str, *args: int) -> int | None:
    """The value of an operator on whole numbers; None where there is none that is an address."""
    from . import values

    found = values.apply(op, list(args), False)
    return found if isinstance(found, int) else None


def fold(op: str, *args: Term) -> Term:
    """The expression `[op, *args]`, shorter where whole numbers among the arguments allow it."""
    if op == "select" and isinstance(args[0], (bool, int)):
        return args[1] if args[0] else args[2]
    whole = [a for a in args if type(a) is int]
    if not whole and op != "strided":
        return [op, *args]
    if op in OPERATORS and len(whole) == len(args):
        shift = op in ("shl", "shr")
        return [op, *whole] if shift and not 0 <= whole[1] < 64 else OPERATORS[op].evaluate(*whole)
    if op == "strided" and args[0] == args[1] == args[2]:
        return fold("max", 0, args[2])
    if op in ("add", "mul"):
        neutral = 0 if op == "add" else 1
        for one, other in (args, args[::-1]):
            if type(one) is int and one == neutral:
                return other
            if type(one) is int and op == "mul" and one == 0:
                return 0
    return [op, *args]


__all__ = ["DEPTH_LIMIT", "PARTS_LIMIT", "Extent", "apply", "evaluate", "fold"]
