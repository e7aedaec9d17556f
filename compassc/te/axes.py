"""The axes that programs make: those to reduce over, and threads."""

from __future__ import annotations

import re
from typing import Any

from compassc.ir.errors import ExpressionError, ExpressionTypeError, warn
from compassc.ir.iter_vars import IterKind, IterVar, Range

_THREAD_TAG = re.compile(r"(threadIdx|blockIdx|vthread)(\.[xyz])?\Z")


def _range(dom: object) -> Range:
    if isinstance(dom, Range):
        return dom
    if isinstance(dom, (tuple, list)) and len(dom) == 2:
        return Range(dom[0], dom[1])
    raise ExpressionTypeError(f"an axis needs a range, (begin, end), got {dom!r}")


def reduce_axis(dom: object, name: str = "rv", thread_tag: str = "") -> IterVar:
    """An axis to reduce over: `dom` is (begin, end) or a Range."""
    return IterVar(_range(dom), name or "iter", IterKind.REDUCTION, thread_tag)


def thread_axis(dom: Any = None, tag: str = "", name: str = "") -> IterVar:
    """The index of a thread: `threadIdx.x` is the number of the TEC, `blockIdx.*` that of a core or a block.

    `dom`: its range, or the tag. ExpressionError without a tag, or with one that means nothing.
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    if tag in ("vthread", "cthread"):
        warn(f"the thread '{tag}' is better called 'vthread.x', with its dimension")
    return thread_of(dom, tag, name)


def thread_of(dom: Any, tag: Any, name: str = "") -> IterVar:
    """A thread axis by its tag, as `thread_axis` makes it."""
    tag = tag.replace("cthread", "vthread") if isinstance(tag, str) else tag  # as it was called before
    if not tag:
        raise ExpressionError("a thread axis needs a tag", 'write te.thread_axis("threadIdx.x")')
    if not _THREAD_TAG.match(tag):
        raise ExpressionError(
            f"'{tag}' is no thread", "tags are threadIdx.x, blockIdx.x and vthread, also with y and z"
        )
    return IterVar(None if dom is None else _range(dom), name or tag, IterKind.THREAD, tag)


class AxisSeparator:
    """A boundary between physical dimensions, in what a map of indices gives."""

    def __repr__(self) -> str:
        return "AXIS_SEPARATOR"


AXIS_SEPARATOR = AxisSeparator()
