"""Options of profiled runs: the tables to print, and the files to write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import UsageError

if TYPE_CHECKING:
    from compass_runtime.profile.result import Profile
    from compass_runtime.program import Program
    from compass_sim import RunResult


@dataclass(frozen=True)
class ProfileOptions:
    """The forms in which `compass-run` shows a profile: tables, a page, a trace."""

    tables: bool
    page: Path | None
    trace: Path | None

    def __bool__(self) -> bool:
        return self.tables or self.page is not None or self.trace is not None

    def check(self, others: Mapping[str, bool]) -> None:
        """UsageError when one of the other options that are given needs a run that is not profiled."""
        if self and (other := next((name for name, given in others.items() if given), None)):
            raise UsageError(
                f"--profile does not go with {other}", code="profile-options", help="profile a run of its own"
            )

    def prepared(self, program: Program) -> Program:
        """The program to run: with counters when a profile is wanted."""
        if not self:
            return program
        from compass_runtime.profile.collect import counting

        return counting(program).program

    def profile(self, program: Program, result: RunResult) -> Profile:
        """Makes the profile of a run of the prepared program and writes the files."""
        from compass_runtime.profile.result import profile_of

        made = profile_of(program, result)
        self.write(made)
        return made

    def write(self, profile: Profile) -> None:
        """Writes the files. CompassError where that is not possible."""
        from compass_runtime.profile.page import page
        from compass_runtime.profile.trace import as_trace

        if self.page is not None:
            files.write(self.page, page(profile))
        if self.trace is not None:
            files.write(self.trace, json.dumps(as_trace(profile)))
