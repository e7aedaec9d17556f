"""Servers on which candidates run: those of a key, which a tracker gives out.

Candidates are built here, by as many processes as measure; each of them has a session of its own, which it keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core.aipubin import write
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_runtime.rpc import request
from compass_runtime.rpc.programs import RemoteProgram

if TYPE_CHECKING:
    from compass_runtime.program import Program
    from compass_runtime.rpc import Session

GONE = ("rpc-lost", "rpc-silent", "session-over")
"""Codes of errors after which a session is no more."""
_ATTEMPTS = 3


@dataclass(frozen=True)
class Place:
    """Whatever server of a key is free, by the tracker at `HOST:PORT`."""

    tracker: str
    key: str

    def load(self, program: Program) -> RemoteProgram:
        """The program on the server of this process, which is another one where the last was lost."""
        for left in reversed(range(_ATTEMPTS)):
            session = _sessions.get(self)
            if session is None or session.closed:
                session = _sessions[self] = request(self.key, self.tracker)
            try:
                return RemoteProgram(session, program, write(program.content))
            except CompassError as error:
                if error.code not in GONE or not left:
                    raise
                session.close()
        raise AssertionError


_sessions: dict[Place, Session] = {}
