"""The form of the errors that parts of the parser raise."""

from __future__ import annotations

from compass_core.errors import CompassError, Note


def language_error(code: str, message: str, help: str = "", *notes: Note | str) -> CompassError:
    """Something that the language does not allow; the parser adds where it stands."""
    return CompassError(message, code=code, help=help, notes=notes)
