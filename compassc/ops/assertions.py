"""Conditions that a kernel states: those that are checked, and those that the compiler may count on. They are ours."""

from __future__ import annotations

from collections.abc import Mapping

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import BOOL, VOID
from .args import kind_of
from .core import Part, special_op
from .example import Example
from .typing import type_error

GROUP = "Assertions"
NOTHING: Mapping[Part, str] = {
    "definition": "it computes nothing that a kernel could store",
    "cost": "there is nothing of it in plain runs",
}
ASSUMED = "what S.assume says does not hold"


def stated(what: str, cond: object) -> bool | E.Expr:
    """A condition: a Python bool, or a run-time one."""
    if type(cond) is bool or (isinstance(cond, E.Expr) and cond.dtype is BOOL):
        return cond
    help = "use S.vall or S.vany" if getattr(getattr(cond, "dtype", None), "is_mask", False) else "compare: n != 0"
    raise type_error(f"{what}: the condition must be a scalar bool, got {kind_of(cond)}", help)


def assertion_text(text: object) -> str:
    """The text of an assertion."""
    if type(text) is not str or not text.isprintable():
        shown = repr(text) if type(text) is str else kind_of(text)
        raise type_error(f"S.assert_: text must be a string of one line, got {shown}", "S.printf shows numbers")
    return text


def failed(text: str) -> CompassError:
    """The error of a condition that does not hold."""
    return CompassError(
        f"an assertion does not hold: {text}" if text else "an assertion does not hold",
        code="assertion",
        help="the kernel's author expects this of its arguments or of its own work",
    )


def turns_apart(memory: str, early: bool, late: bool) -> str:
    """What holds of the turns of vectorized loops; `early`, `late`: whether the former, the latter access writes."""
    words = {True: "writes", False: "reads"}
    return (
        f"a turn of this vectorized loop {words[early]} no element of {memory} before a later turn {words[late]} it "
        "(all run a statement at once)"
    )


@special_op(
    group=GROUP,
    operands=("cond", "text"),
    effect="io",
    exempt=NOTHING,
    example=Example('S.assert_(x[0] > 0, "the first element is positive")\nout[0] = x[0]', lanes=1),
    types={"text": "str"},
)
def assert_(cond: object, text: object = "") -> E.Expr | None:
    """State that a condition holds: PySim and checked runs stop with `text` where it does not. Ours.

    Plain runs have no code of it. A condition that is known when the kernel is compiled is checked then.
    """
    condition, message = stated("S.assert_", cond), assertion_text(text)
    if condition is False:
        raise failed(message)
    return None if condition is True else E.Call("assert_", (condition, E.StringImm(message)), VOID)


@special_op(
    group=GROUP,
    operands=("cond",),
    effect="io",
    exempt=NOTHING,
    example=Example("S.assume(x[0] >= 0)\nout[0] = x[0]", lanes=1),
)
def assume(cond: object) -> E.Expr | None:
    """Promise that a condition holds from here to the end of the block, so that the compiler counts on it. Ours.

    Comparisons of integers that do not change, and `n % 16 == 0`, take away masks of tails, bounds and divisions that are
    not needed then. Where a promise does not hold the results are undefined in plain runs; PySim and checked runs tell it,
    as they do of `S.assert_`.
    """
    condition = stated("S.assume", cond)
    if condition is False:
        raise failed(ASSUMED)
    return None if condition is True else E.Call("assume", (condition,), VOID)


@special_op(
    group=GROUP,
    operands=(),
    effect="io",
    exempt=NOTHING,
    example=Example(
        "S.assume_unclipped()\nacc = S.i32x8(1000)\nS.vstore(S.vqdpa(acc, S.vload(x), S.vload(y)), out)",
        "i8",
        out="i32",
    ),
)
def assume_unclipped() -> E.Expr:
    """Promise that no sum of `S.vdpa` or `S.vqdpa` in this kernel file leaves the range of its accumulator. Ours.

    The simulator then needs not look for sums to clip, which hosts without an instruction for it spend a third of the time
    of products on; for the NPU it changes nothing. Where the promise does not hold the results are undefined in plain runs;
    PySim and checked runs clip as always.
    """
    return E.Call("assume_unclipped", (), VOID)
