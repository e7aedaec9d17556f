"""Masks, printing, profiling, the AIFF, and what is not simulated."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.errors.rendering import for_stream
from compassc.ir.dtypes import INT32, pointer_type
from compassc.ops.args import lanes_arg
from compassc.ops.misc import SPECIFIER, VECTOR_BYTES, check_printf, const_lanes, literal_print_dtype, print_dtype
from compassc.ops.numeric import literal
from compassc.ops.typing import is_literal

from ..accelerator import prepare
from ..masks import first_lanes, mask_var
from ..memory import PyBuffer, PyPointer, index_of
from ..values import number
from . import meaning
from .sync import sim_event

if TYPE_CHECKING:
    from compassc.pysim.descriptors import PyDescPointer
    from compassc.pysim.values import PyVar


@meaning
def const_mask(x: object) -> PyVar:
    return mask_var(np.array(const_lanes(x), bool))


@meaning
def tail_mask(n: object, lanes: object) -> PyVar:
    total = lanes_arg(lanes, "S.tail_mask")
    count = n if type(n) is int else index_of(n, "S.tail_mask: n")
    return mask_var(first_lanes(max(0, min(count, total)), total))


def _truncated(x: Array) -> str:
    """A float with 6 decimals, truncated; nothing for nan and infinities."""
    v = float(x)
    if not math.isfinite(v):
        return ""
    whole = int(abs(v))
    digits = int((abs(v) - whole) * 1_000_000)
    return f"{'-' if v < 0 else ''}{whole}.{digits:06d}"


def _word(x: object) -> int:
    """A scalar as 32 unsigned bits; floats by their float32 pattern."""
    array = np.asarray(x)
    return int(array.astype(np.float32).view(np.uint32)) if array.dtype.kind not in "iub" else int(array) & 0xFFFFFFFF


_FORMATS: dict[str, Callable[[Array], str]] = {
    **dict.fromkeys("di", lambda x: str((_word(x) ^ 0x80000000) - 0x80000000)),
    "u": lambda x: str(_word(x)),
    "o": lambda x: f"0{_word(x):o}",
    "x": lambda x: f"0x{_word(x):x}",
    "X": lambda x: f"0x{_word(x):X}",
    "f": _truncated,
    "c": lambda x: chr(_word(x) & 0xFF),
    "s": str,
    "p": lambda x: "%p",
}


def _formatted(spec: str, x: Any) -> str:
    if spec not in VECTOR_BYTES:
        return _FORMATS[spec](x)
    if spec[-1] == "f":
        return ",".join(_truncated(v) for v in x)
    return ",".join(f"0x{int(v):x}" for v in x.view(f"u{VECTOR_BYTES[spec]}"))


def _print_type(x: object) -> object:
    """The type of a printf argument; pointers and buffers say that of what they point to."""
    if isinstance(x, (PyPointer, PyBuffer)):
        return pointer_type(x.dtype, x.scope)
    return print_dtype(x)


@meaning
def printf(fmt: str, *args: object) -> PyVar:
    types = [_print_type(x) for x in args]
    specs = check_printf(fmt, types)
    raw = [literal(x, literal_print_dtype(x)) if is_literal(x) else getattr(x, "value", x) for x in args]
    texts = iter([_formatted(spec, x) for spec, x in zip(specs, raw)])
    text = SPECIFIER.sub(lambda m: "%" if m.group(1) == "%" else next(texts), fmt)
    sys.stdout.write(for_stream(text, sys.stdout))
    return number(0, INT32)


@meaning
def flush_cache(invalidate: object = True) -> None:
    pass


@meaning
def perf_tick_begin(cid: object) -> None:
    pass


@meaning
def perf_tick_end(cid: object) -> None:
    pass


class NoModel(CompassError, NotImplementedError):
    """PySim cannot run an operation."""


def not_simulated(what: str) -> CompassError:
    """The error for features that PySim does not model, worded as the simulator's fault for the same."""
    return NoModel(f"the kernel {what}, which is not simulated", code="kernel-unsupported", help="run it on hardware")


@meaning
def asm(
    template: object, outputs: object = None, inputs: object = None, clobbers: object = None, qualifiers: object = None
) -> None:
    raise not_simulated("runs inline assembly of the NPU")


@meaning
def aiff(ctrl_desc: PyDescPointer, param_desc: PyDescPointer, act_desc: PyDescPointer) -> None:
    prepare("aiff", (ctrl_desc, param_desc, act_desc))()


@meaning
def async_aiff(ctrl_desc: object, param_desc: object, act_desc: object, event: object) -> None:
    owner = sim_event(event, "S.async_aiff")
    owner.finish()  # a start that has the event now is done before this one begins
    owner.pending.append(prepare("async_aiff", (ctrl_desc, param_desc, act_desc)))
