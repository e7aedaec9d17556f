"""Wording of races between TECs, shared by all that find them: `compassc check`, PySim and checked runs."""

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
    """The message; `memory` names the memory that both access."""
    return f"data race: TEC {here.tec} {here.verb} {memory}, which TEC {there.tec} {there.verb} with no barrier between"


def note(there: Access) -> Note:
    """The note with the place of the other access."""
    return Note(f"TEC {there.tec} {there.verb} it here", there.span)


def error(memory: str, here: Access, there: Access, code: str) -> CompassError:
    """The error, at the place of `here`."""
    return CompassError(message(memory, here, there), here.span, code=code, notes=(note(there),), help=HELP)
