"""Masks, printing, profiling, cache, inline assembly and the fixed-function unit."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from typing import Any

from compass_core.errors import CompassError
from compass_core.errors.rendering import for_stream

from ..ir import exprs as E
from ..ir.dtypes import FLOAT32, INT32, UINT32, VOID, DataType
from .args import int32_arg, int_arg, kind_of, lanes_arg, pointer_arg
from .core import LazyModule, imm, np, scalar_cast, special_op
from .masks import mask_error, mask_lanes
from .numeric import literal
from .typing import check_literal, is_literal, type_error

GROUP = "Miscellaneous"

values: Any = LazyModule("compassc.pysim.values")
mem: Any = LazyModule("compassc.pysim.memory")
desc: Any = LazyModule("compassc.pysim.descriptors")
masks: Any = LazyModule("compassc.pysim.masks")


# ---------------------------------------------------------------------------------------------------------------- masks


def _const_lanes(x: Any) -> list[bool]:
    """The lanes of a constant mask; a string has at least as many lanes as characters."""
    found = mask_lanes(x)
    if found is None:
        raise mask_error(f"S.const_mask: {type(x).__name__} is not a constant mask")
    if isinstance(x, str):
        found += [False] * (len(x) - len(found))
    if len(found) < 2:
        raise mask_error(f"S.const_mask: a mask has more than 1 lane, got {len(found)}")
    return found


def _build_const_mask(x: Any) -> E.Expr:
    lanes = _const_lanes(x)
    return E.ConstMask(sum(1 << i for i, on in enumerate(lanes) if on), len(lanes))


@special_op(GROUP, _build_const_mask)
def const_mask(x: Any) -> Any:
    """A mask from bools, a NumPy bool array or a mask string, lane 0 first."""
    return masks.mask_var(np.array(_const_lanes(x), bool))


def _clamped(n: E.Expr, lanes: int) -> E.Expr:
    """`n` as an int32 from 0 to `lanes`."""
    if n.dtype.is_uint and n.dtype.bits == 32:  # may be more than an int32 holds
        return scalar_cast(E.Binary("min", n, E.IntImm(n.dtype, lanes)), INT32)
    count = scalar_cast(n, INT32)
    if not (type(count) is E.Binary and count.op == "min" and type(count.b) is E.IntImm and count.b.value <= lanes):
        count = E.Binary("min", count, E.IntImm(INT32, lanes))
    return E.Binary("max", count, E.IntImm(INT32, 0))


def _build_tail_mask(n: Any, lanes: Any) -> E.Expr:
    count = lanes_arg(lanes, "S.tail_mask")
    if type(n) is int:
        return E.ConstMask((1 << max(0, min(n, count))) - 1, count)
    return E.TailMask(_clamped(int_arg(n, "S.tail_mask: n"), count), count)


@special_op(GROUP, _build_tail_mask)
def tail_mask(n: Any, lanes: Any) -> Any:
    """The mask of `lanes` lanes whose first `n` are active: all of them for a larger `n`, none for a negative one."""
    total = lanes_arg(lanes, "S.tail_mask")
    count = n if type(n) is int else mem.index_of(n, "S.tail_mask: n")
    return masks.mask_var(masks.first_lanes(max(0, min(count, total)), total))


# -------------------------------------------------------------------------------------------------------------- printing

_SPECIFIER = re.compile(r"%(v32hhx|v16hx|v8hlx|v16hf|v8hlf|[diuoxXfcsp%])")
_VECTOR_BYTES = {"v32hhx": 1, "v16hx": 2, "v8hlx": 4, "v16hf": 2, "v8hlf": 4}
_ACCEPTS = {
    **dict.fromkeys("diuoc", "an integer scalar"),
    **dict.fromkeys("xX", "an integer or floating-point scalar"),
    "f": "a float16 or float32 scalar",
    "s": "a string",
    "p": "anything",
    **dict.fromkeys(("v32hhx", "v16hx", "v8hlx"), "a 256-bit vector"),
    **dict.fromkeys(("v16hf", "v8hlf"), "a 256-bit float vector"),
}


def parse_format(fmt: Any) -> list[str]:
    """The specifiers of a format that take an argument."""
    if not isinstance(fmt, str):
        raise type_error(f"S.printf: the format must be a Python string, got {kind_of(fmt)}")
    found, position = [], fmt.find("%")
    while position >= 0:
        match = _SPECIFIER.match(fmt, position)
        if match is None:
            raise CompassError(
                f"S.printf: {fmt[position:]!r} does not start with a known specifier",
                code="printf",
                help="known are %%, %" + ", %".join(_ACCEPTS),
            )
        if match.group(1) != "%":
            found.append(match.group(1))
        position = fmt.find("%", match.end())
    return found


def _accepts(spec: str, t: Any) -> bool:
    """Whether a specifier takes an argument of type `t` (a DataType; str for strings)."""
    if spec == "p":
        return True
    if spec == "s" or not isinstance(t, DataType):
        return spec == "s" and t is str
    if spec in _VECTOR_BYTES:
        return t.is_vector and t.total_bits == 256 and (spec[-1] == "x" or t.is_float)
    if not t.is_scalar:
        return False
    return t.is_float if spec == "f" else t.is_integer or (spec in "xX" and t.is_floating)


def _check_printf(fmt: Any, types: list[Any]) -> list[str]:
    specs = parse_format(fmt)
    if len(specs) != len(types):
        raise CompassError(f"S.printf: the format takes {len(specs)} arguments, got {len(types)}", code="printf")
    for position, (spec, t) in enumerate(zip(specs, types), 1):
        if not _accepts(spec, t):
            shown = "a string" if t is str else str(t)
            raise type_error(f"S.printf: argument {position} is {shown}, but %{spec} takes {_ACCEPTS[spec]}")
    return specs


def _print_dtype(x: Any) -> Any:
    """The type of a printf argument."""
    if isinstance(x, str) and not isinstance(x, DataType):
        return str
    if is_literal(x):
        return FLOAT32 if type(x) is float else INT32 if x <= INT32.range()[1] else UINT32
    return getattr(x, "dtype", type(x).__name__)


def _build_printf(fmt: Any, *args: Any) -> E.Expr:
    types = [_print_dtype(x) for x in args]
    _check_printf(fmt, types)
    for x, t in zip(args, types):
        if t is not str:
            check_literal(x, t)
    exprs = [imm(x, t) if is_literal(x) else E.StrImm(x) if t is str else x for x, t in zip(args, types)]
    return E.Call("printf", (E.StrImm(fmt), *exprs), INT32)


def _truncated(x: Any) -> str:
    """A float with 6 decimals, truncated; nothing for nan and infinities."""
    v = float(x)
    if not math.isfinite(v):
        return ""
    whole = int(abs(v))
    digits = int((abs(v) - whole) * 1_000_000)
    return f"{'-' if v < 0 else ''}{whole}.{digits:06d}"


def _word(x: Any) -> int:
    """A scalar as 32 unsigned bits; floats by their float32 pattern."""
    array = np.asarray(x)
    return int(array.astype(np.float32).view(np.uint32)) if array.dtype.kind not in "iub" else int(array) & 0xFFFFFFFF


_FORMATS: dict[str, Callable[[Any], str]] = {
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
    if spec not in _VECTOR_BYTES:
        return _FORMATS[spec](x)
    if spec[-1] == "f":
        return ",".join(_truncated(v) for v in x)
    return ",".join(f"0x{int(v):x}" for v in x.view(f"u{_VECTOR_BYTES[spec]}"))


@special_op(GROUP, _build_printf, effect="io")
def printf(fmt: Any, *args: Any) -> Any:
    """Print formatted text; no newline is added. Takes no flags, widths or precisions."""
    types = [_print_dtype(x) for x in args]
    specs = _check_printf(fmt, types)
    raw = [literal(x, t) if is_literal(x) else getattr(x, "value", x) for x, t in zip(args, types)]
    texts = iter([_formatted(spec, x) for spec, x in zip(specs, raw)])
    text = _SPECIFIER.sub(lambda m: "%" if m.group(1) == "%" else next(texts), fmt)
    sys.stdout.write(for_stream(text, sys.stdout))
    return values.pyvar(0, INT32)


# ---------------------------------------------------------------------------------------------------- cache and profiling


def _build_flush_cache(invalidate: Any = True) -> E.Expr:
    return E.Call("flush_cache", (), VOID, attrs=(("invalidate", bool(invalidate)),))


@special_op(GROUP, _build_flush_cache, effect="sync")
def flush_cache(invalidate: Any = True) -> None:
    """Write the data cache back to DDR, and drop its content if `invalidate`. Nothing to do in PySim."""


def _tick(name: str) -> Callable[[Any], E.Expr]:
    def build(cid: Any) -> E.Expr:
        return E.Call(name, (int_arg(cid, f"S.{name}: cid"),), VOID)

    return build


@special_op(GROUP, _tick("perf_tick_begin"), c="__perf_record_tick_begin({cid})", effect="io")
def perf_tick_begin(cid: Any) -> None:
    """Begin of the region `cid` for the profiler. Nothing to do in PySim."""


@special_op(GROUP, _tick("perf_tick_end"), c="__perf_record_tick_end({cid})", effect="io")
def perf_tick_end(cid: Any) -> None:
    """End of the region `cid` for the profiler. Nothing to do in PySim."""


# ------------------------------------------------------------------------------------------- assembly, fixed-function unit


class NoModel(CompassError, NotImplementedError):
    """PySim cannot run an operation."""


def not_simulated(what: str) -> CompassError:
    """The error of what PySim does not model; the simulator's fault for the same has the same words."""
    return NoModel(f"the kernel {what}, which is not simulated", code="kernel-unsupported", help="run it on hardware")


def _asm_operands(given: Any, what: str) -> tuple[tuple[tuple[str, str], ...], tuple[E.Expr, ...]]:
    """Names with constraints, and expressions, of the operands of inline assembly."""
    names, exprs = [], []
    for name, operand in (given or {}).items():
        if not isinstance(operand, (tuple, list)) or len(operand) != 2 or not isinstance(operand[0], str):
            raise type_error(f"S.asm: {what} {name!r} must be a pair of constraint and value, such as ('t', x)")
        constraint, e = operand
        t = e.dtype if isinstance(e, E.Expr) else None
        if not isinstance(t, DataType) or not (t.is_scalar or t.is_native):
            raise type_error(f"S.asm: {what} {name!r} is {kind_of(e)}; scalars, registers and masks are possible")
        names.append((name, constraint))
        exprs.append(e)
    return tuple(names), tuple(exprs)


def _build_asm(
    template: Any, outputs: Any = None, inputs: Any = None, clobbers: Any = None, qualifiers: Any = None
) -> E.Expr:
    if not isinstance(template, str):
        raise type_error(f"S.asm: the template must be a string, got {kind_of(template)}")
    if qualifiers not in (None, "inline", "volatile"):
        raise CompassError(f"S.asm: qualifiers must be None, 'inline' or 'volatile', got {qualifiers!r}", code="option")
    out_names, out_exprs = _asm_operands(outputs, "output")
    in_names, in_exprs = _asm_operands(inputs, "input")
    for name, e in zip(out_names, out_exprs):
        if type(e) is not E.Var:
            raise type_error(f"S.asm: the output {name[0]!r} must be a variable")
    if isinstance(clobbers, str) or not all(isinstance(c, str) for c in clobbers or ()):
        raise type_error(f"S.asm: clobbers must be a list of strings, got {clobbers!r}")
    attrs = (
        ("clobbers", tuple(clobbers or ())),
        ("inputs", in_names),
        ("outputs", out_names),
        ("qualifiers", qualifiers),
        ("template", template),
    )
    return E.Call("asm", (*out_exprs, *in_exprs), VOID, attrs=attrs)


@special_op(GROUP, _build_asm, effect="io")
def asm(template: Any, outputs: Any = None, inputs: Any = None, clobbers: Any = None, qualifiers: Any = None) -> None:
    """Inline assembly of the NPU, in the C text as it is given.

    `outputs` and `inputs` map names to pairs of a constraint and a value: a scalar, a register or a mask, for outputs a
    variable. Neither the simulator nor PySim runs it: both say so when a kernel comes to it.
    """
    raise not_simulated("runs inline assembly of the NPU")


_DESCRIPTORS = ("ctrl_desc", "param_desc", "act_desc")


def _descriptors(name: str, args: tuple[Any, ...]) -> tuple[E.Expr, ...]:
    return tuple(pointer_arg(a, f"S.{name}: {part}") for a, part in zip(args, _DESCRIPTORS))


def _build_aiff(ctrl_desc: Any, param_desc: Any, act_desc: Any) -> E.Expr:
    return E.Call("aiff", _descriptors("aiff", (ctrl_desc, param_desc, act_desc)), VOID)


def _build_async_aiff(ctrl_desc: Any, param_desc: Any, act_desc: Any, event: Any) -> E.Expr:
    args = _descriptors("async_aiff", (ctrl_desc, param_desc, act_desc))
    return E.Call("async_aiff", (*args, int32_arg(event, "S.async_aiff: event")), VOID)


def _start_aiff(name: str, args: tuple[Any, ...]) -> CompassError:
    """The error of starting the unit: of the descriptors when they are wrong, else that there is no model of it."""
    for part, pointer in zip(_DESCRIPTORS, args, strict=True):
        if isinstance(pointer, desc.PyDescPointer):
            pointer.get_current_desc_chain()
        else:
            mem.pointer_of(pointer, f"S.{name}: {part}")
    return not_simulated("starts the AIFF accelerator")


@special_op(GROUP, _build_aiff, effect="write")
def aiff(ctrl_desc: Any, param_desc: Any, act_desc: Any) -> None:
    """Run the fixed-function unit (AIFF) on three descriptor chains and wait.

    Each argument points to the beginning of a chain, in a parameter of uint32 or int32 that a `DescChainArray` is passed
    for. Neither the simulator nor PySim models the unit: both say so when a kernel starts it.
    """
    raise _start_aiff("aiff", (ctrl_desc, param_desc, act_desc))


@special_op(GROUP, _build_async_aiff, effect="write")
def async_aiff(ctrl_desc: Any, param_desc: Any, act_desc: Any, event: Any) -> None:
    """Start the fixed-function unit (AIFF) in the background; `event` is set when it is done. Otherwise as `S.aiff`."""
    raise _start_aiff("async_aiff", (ctrl_desc, param_desc, act_desc))
