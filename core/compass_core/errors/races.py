"""How a race between TECs is told, by whoever found it: `compassc check`, PySim and checked runs."""

from __future__ import annotations

from typing import Literal, NamedTuple

from . import CompassError, Note, Span

HELP = "put S.barrier() between the two, or let each TEC work on a part of its own"


class Access(NamedTuple):
    """One side of a race: which TEC does what, and where the access stands."""

    tec: int
    verb: Literal["reads", "writes"]
    span: Span | None


def message(memory: str, here: Access, there: Access) -> str:
    """What is wrong; `memory` names what both touch."""
    return f"data race: TEC {here.tec} {here.verb} {memory}, which TEC {there.tec} {there.verb} with no barrier between"


def note(there: Access) -> Note:
    """Where the other access stands."""
    return Note(f"TEC {there.tec} {there.verb} it here", there.span)


def error(memory: str, here: Access, there: Access, code: str) -> CompassError:
    """The error, at the place of `here`."""
    return CompassError(message(memory, here, there), here.span, code=code, notes=(note(there),), help=HELP)
