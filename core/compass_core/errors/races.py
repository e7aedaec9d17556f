"""Wording of races between TECs and between groups, shared by all that find them: `compassc check`, PySim and checked
runs."""

from __future__ import annotations

from typing import Literal

from compass_core.namedtuple import NamedTuple

from . import CompassError, Note, Span

HELP = "put S.barrier() between the two, or let each TEC work on a part of its own"
GROUP_HELP = "nothing orders groups: let each work on a part of its own, or use atomic operations"


class Access(NamedTuple):
    """One side of a race: which TEC (or group) does what, and where the access stands."""

    who: int
    verb: Literal["reads", "writes"]
    span: Span | None
    kind: Literal["TEC", "group"] = "TEC"

    def __str__(self) -> str:
        return f"{self.kind} {self.who}"


def message(memory: str, here: Access, there: Access) -> str:
    """The message; `memory` names the memory that both access."""
    order = " with no barrier between" if here.kind == "TEC" else ", and nothing orders groups"
    return f"data race: {here} {here.verb} {memory}, which {there} {there.verb}{order}"


def note(there: Access) -> Note:
    """The note with the place of the other access."""
    return Note(f"{there} {there.verb} it here", there.span)


def error(memory: str, here: Access, there: Access, code: str) -> CompassError:
    """The error, at the place of `here`."""
    help = HELP if here.kind == "TEC" else GROUP_HELP
    return CompassError(message(memory, here, there), here.span, code=code, notes=(note(there),), help=help)
