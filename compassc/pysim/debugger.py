"""The debugger that `breakpoint()` starts in a kernel."""

from __future__ import annotations

import contextlib
import pdb  # noqa: T100  this is the debugger
from types import FrameType, TracebackType
from typing import Any, cast

from ..language.dispatch import LOCAL
from .code import MACRO_CODE
from .debug_turns import give_turn, take_turn
from .source_lines import is_user_code

_NEVER = -1
"""The line at which a debugger stops next that was told to continue."""


class TecPdb(pdb.Pdb):
    """The debugger of a TEC. While one debugger talks with the user or steps, those of other TECs wait; a step that comes to
    a barrier gives them their turn."""

    def interaction(self, frame: FrameType | None, traceback: TracebackType | None) -> None:
        take_turn()
        try:
            self.prompt = f"(TEC{LOCAL.tec.id}) " if LOCAL.tec is not None else "(pdb) "
            super().interaction(frame, traceback)
        finally:
            if self.quitting or self.stoplineno == _NEVER or LOCAL.tec is None:
                give_turn()

    def get_stack(self, f: FrameType | None, t: TracebackType | None) -> tuple[list[tuple[FrameType, int]], int]:
        """`where`, `up` and `down` show kernels and the user's other code only."""
        stack, current = super().get_stack(f, t)
        shown = [place for place in stack if place is stack[current] or is_user_code(place[0].f_code)]
        return shown, shown.index(stack[current])

    def setup(self, f: FrameType | None, tb: TracebackType | None) -> Any:
        found = super().setup(f, tb)  # whether .pdbrc has gone on, until 3.12
        self._name_arguments()
        return found

    def _select_frame(self, number: int) -> None:
        super()._select_frame(number)
        self._name_arguments()

    def _name_arguments(self) -> None:
        """In a macro, parameters can be asked for though its body has their arguments instead."""
        frame, names = self.curframe, cast("dict[str, object]", self.curframe_locals)
        if frame is None:
            return
        code = frame.f_code
        for name, text in MACRO_CODE.get(code, {}).items():
            if name not in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
                with contextlib.suppress(Exception):  # an argument that has no value here stays without a name
                    names[name] = eval(text, frame.f_globals, names)

    def stop_here(self, frame: FrameType) -> bool:
        """`step` goes into kernels and helpers of the user, not into PySim, NumPy or Python's own modules."""
        return bool(super().stop_here(frame)) and is_user_code(frame.f_code)
