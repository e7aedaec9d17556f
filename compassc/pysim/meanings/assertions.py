"""Conditions that a kernel states."""

from __future__ import annotations

from compassc.ops.assertions import ASSUMED, assertion_text, failed
from compassc.ops.typing import type_error

from ..values import PyVar
from . import meaning


def _holds(what: str, cond: object) -> bool:
    if type(cond) is bool:
        return cond
    help = "use S.vall or S.vany" if type(cond) is PyVar and cond.dtype.is_mask else "compare: n != 0"
    raise type_error(f"{what}: the condition must be a scalar bool, got {cond!r}", help)


@meaning
def assert_(cond: object, text: object = "") -> None:
    message = assertion_text(text)
    if not _holds("S.assert_", cond):
        raise failed(message)


@meaning
def assume(cond: object) -> None:
    if not _holds("S.assume", cond):
        raise failed(ASSUMED)


@meaning
def assume_unclipped() -> None:
    """Sums are clipped here in any case."""
