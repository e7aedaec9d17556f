"""Masks, printing, profiling, cache, inline assembly and the fixed-function unit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from compass_core.errors import CompassError

from ..ir import exprs as E
from ..ir.dtypes import FLOAT32, INT32, UINT32, VOID, DataType, PointerType
from .args import int32_arg, int_arg, kind_of, lanes_arg, pointer_arg
from .core import Cost, Part, imm, scalar_cast, special_op
from .example import Example
from .masks import mask_error, mask_lanes
from .typing import Number, check_literal, is_literal, type_error

GROUP = "Miscellaneous"
NOT_COMPUTED: Mapping[Part, str] = {"definition": "it computes nothing that a kernel could store"}
MASK_NODE: Mapping[Part, str] = {
    "definition": "tests/agreement/test_tail_masks.py and test_operations.py have masks of every kind",
    "c": "an IR node of its own: a constant, or a comparison of lane numbers",
}

# ---------------------------------------------------------------------------------------------------------------- masks


def const_lanes(x: object) -> list[bool]:
    """The lanes of a constant mask; a string has at least as many lanes as characters."""
    found = mask_lanes(x)
    if found is None:
        raise mask_error(f"S.const_mask: {type(x).__name__} is not a constant mask")
    if isinstance(x, str):
        found += [False] * (len(x) - len(found))
    if len(found) < 2:
        raise mask_error(f"S.const_mask: a mask has more than 1 lane, got {len(found)}")
    return found


@special_op(
    group=GROUP,
    cost=Cost("mask", {"__vmov_*": "mask"}),
    example=Example('m = S.const_mask("4TF")\nS.vstore(S.vsel(S.vload(x), -1, m), out)'),
    exempt=MASK_NODE,
    types={"x": "str | Sequence[_bool] | Array"},
)
def const_mask(x: object) -> E.Expr:
    """A mask from bools, a NumPy bool array or a mask string, lane 0 first."""
    lanes = const_lanes(x)
    return E.ConstMask(sum(1 << i for i, on in enumerate(lanes) if on), len(lanes))


def _clamped(n: E.Expr, lanes: int) -> E.Expr:
    """`n` as an int32 from 0 to `lanes`."""
    if n.dtype.is_uint and n.dtype.bits == 32:  # may be more than an int32 holds
        return scalar_cast(E.Binary("min", n, E.IntImm(n.data_type, lanes)), INT32)
    count = scalar_cast(n, INT32)
    if not (type(count) is E.Binary and count.op == "min" and type(count.b) is E.IntImm and count.b.value <= lanes):
        count = E.Binary("min", count, E.IntImm(INT32, lanes))
    return E.Binary("max", count, E.IntImm(INT32, 0))


@special_op(
    group=GROUP,
    cost=Cost("mask"),
    example=Example("m = S.tail_mask(x[0], 8)\nS.vstore(S.vload(x, m), out, m)"),
    exempt=MASK_NODE,
    types={"lanes": "int"},
)
def tail_mask(n: object, lanes: object) -> E.Expr:
    """The mask of `lanes` lanes whose first `n` are active: all of them for a larger `n`, none for a negative one."""
    count = lanes_arg(lanes, "S.tail_mask")
    if type(n) is int:
        return E.ConstMask((1 << max(0, min(n, count))) - 1, count)
    return E.TailMask(_clamped(int_arg(n, "S.tail_mask: n"), count), count)


# -------------------------------------------------------------------------------------------------------------- printing

SPECIFIER = re.compile(r"%(v32hhx|v16hx|v8hlx|v16hf|v8hlf|[diuoxXfcsp%])")

VECTOR_BYTES = {"v32hhx": 1, "v16hx": 2, "v8hlx": 4, "v16hf": 2, "v8hlf": 4}

_ACCEPTS = {
    **dict.fromkeys("diuoc", "an integer scalar"),
    **dict.fromkeys("xX", "an integer or floating-point scalar"),
    "f": "a float16 or float32 scalar",
    "s": "a string",
    "p": "a scalar, a vector, a pointer or a string",
    **dict.fromkeys(("v32hhx", "v16hx", "v8hlx"), "a 256-bit vector"),
    **dict.fromkeys(("v16hf", "v8hlf"), "a 256-bit float vector"),
}


def parse_format(fmt: object) -> list[str]:
    """The specifiers of a format that take an argument."""
    if not isinstance(fmt, str):
        raise type_error(
            f"S.printf: the format must be a Python string, got {kind_of(fmt)}", 'write S.printf("%d\\n", x)'
        )
    found, position = [], fmt.find("%")
    while position >= 0:
        match = SPECIFIER.match(fmt, position)
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


def _accepts(spec: str, t: object) -> bool:
    """Whether a specifier takes an argument of type `t` (a DataType or PointerType; str for strings)."""
    if spec == "p":
        return t is str or isinstance(t, PointerType) or (isinstance(t, DataType) and not t.is_mask)
    if spec == "s" or not isinstance(t, DataType):
        return spec == "s" and t is str
    if spec in VECTOR_BYTES:
        return t.is_vector and t.total_bits == 256 and (spec[-1] == "x" or t.is_float)
    if not t.is_scalar:
        return False
    return t.is_float if spec == "f" else t.is_integer or (spec in "xX" and t.is_floating)


def check_printf(fmt: object, types: list[object]) -> list[str]:
    specs = parse_format(fmt)
    if len(specs) != len(types):
        raise CompassError(
            f"S.printf: the format takes {len(specs)} argument{'' if len(specs) == 1 else 's'}, got {len(types)}",
            code="printf",
        )
    for position, (spec, t) in enumerate(zip(specs, types), 1):
        if not _accepts(spec, t):
            shown = "a string" if t is str else str(t)
            raise type_error(f"S.printf: argument {position} is {shown}, but %{spec} takes {_ACCEPTS[spec]}")
    return specs


def print_dtype(x: object) -> object:
    """The type of a printf argument: `str` of a text, and the name of the Python type of what has none."""
    if isinstance(x, str) and not isinstance(x, DataType):
        return str
    return literal_print_dtype(x) if is_literal(x) else getattr(x, "dtype", type(x).__name__)


def literal_print_dtype(x: Number) -> DataType:
    """The type of a number that is printed."""
    return FLOAT32 if type(x) is float else INT32 if x <= INT32.range()[1] else UINT32


@special_op(
    group=GROUP,
    operands=("fmt", "*args"),
    effect="io",
    cost=Cost("print", {"__compass_printf": "print"}),
    example=Example('if S.get_local_id() == 0:\n    S.printf("x[0] is %d\\n", x[0])', lanes=1),
    exempt=NOT_COMPUTED,
    types={"args": "object"},
)
def printf(fmt: str, *args: object) -> E.Expr:
    """Print formatted text; no newline is added. Takes no flags, widths or precisions."""
    types = [print_dtype(x) for x in args]
    check_printf(fmt, types)
    return E.Call("printf", (E.StringImm(fmt), *map(_printed, args)), INT32)


def _printed(x: object) -> E.Expr:
    """An argument of printf, whose type is checked."""
    if is_literal(x):
        t = literal_print_dtype(x)
        check_literal(x, t)
        return imm(x, t)
    if isinstance(x, E.Expr):
        return x
    assert isinstance(x, str), "an argument of another type has no specifier"
    return E.StringImm(x)


# ---------------------------------------------------------------------------------------------------- cache and profiling


@special_op(
    group=GROUP,
    options=("invalidate",),
    effect="sync",
    c=[("invalidate", "__flush_cache((bool)1)"), "__flush_cache((bool)0)"],
    cost=Cost("event"),
    example=Example("out[0] = x[0]\nS.flush_cache(invalidate=False)", lanes=1),
    exempt=NOT_COMPUTED,
)
def flush_cache(invalidate: object = True) -> E.Expr:
    """Write the data cache back to DDR, and drop its content if `invalidate`. Nothing to do in PySim."""
    return E.Call("flush_cache", (), VOID, attrs=(("invalidate", bool(invalidate)),))


def _tick(name: str, cid: object) -> E.Expr:
    return E.Call(name, (int_arg(cid, f"S.{name}: cid"),), VOID)


REGION = Example("S.perf_tick_begin(0)\nS.vstore(S.vload(x), out)\nS.perf_tick_end(0)")


@special_op(
    group=GROUP,
    c="__perf_record_tick_begin({cid})",
    effect="io",
    cost=Cost("section"),
    example=REGION,
    exempt=NOT_COMPUTED,
    types={"cid": "int"},
)
def perf_tick_begin(cid: object) -> E.Expr:
    """Begin of the region `cid` for the profiler. Nothing to do in PySim."""
    return _tick("perf_tick_begin", cid)


@special_op(
    group=GROUP,
    c="__perf_record_tick_end({cid})",
    effect="io",
    cost=Cost("section"),
    example=REGION,
    exempt=NOT_COMPUTED,
    types={"cid": "int"},
)
def perf_tick_end(cid: object) -> E.Expr:
    """End of the region `cid` for the profiler. Nothing to do in PySim."""
    return _tick("perf_tick_end", cid)


# ------------------------------------------------------------------------------------------- assembly, fixed-function unit


def _asm_operands(
    given: Mapping[str, object] | None, what: str
) -> tuple[tuple[tuple[str, str], ...], tuple[E.Expr, ...]]:
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


@special_op(
    group=GROUP,
    operands=("*operands",),
    options=("clobbers", "inputs", "outputs", "qualifiers", "template"),
    effect="io",
    exempt={"cost": "it is not simulated", **NOT_COMPUTED},
    example=Example(
        'a = S.vload(x)\nb = S.i32x8(0)\nS.asm("{add %[b].w, %[a].w, %[a].w;}", outputs={"b": ("=t", b)}, '
        'inputs={"a": ("t", a)})\nS.vstore(b, out)',
        runs=False,
    ),
)
def asm(
    template: str,
    outputs: Mapping[str, object] | None = None,
    inputs: Mapping[str, object] | None = None,
    clobbers: Sequence[str] | None = None,
    qualifiers: str | None = None,
) -> E.Expr:
    """Inline assembly of the NPU, in the C text as it is given.

    `outputs` and `inputs` map names to pairs of a constraint and a value: a scalar, a register or a mask, for outputs a
    variable. Neither the simulator nor PySim runs it: both say so when a kernel comes to it.
    """
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


DESCRIPTORS = ("ctrl_desc", "param_desc", "act_desc")


def _descriptors(name: str, args: tuple[object, ...]) -> tuple[E.Expr, ...]:
    return tuple(pointer_arg(a, f"S.{name}: {part}") for a, part in zip(args, DESCRIPTORS))


@special_op(
    group=GROUP,
    effect="write",
    c="AIFF({ctrl_desc}, {param_desc}, {act_desc}, 0)",
    cost=Cost("event", {"__compass_aiff": "event"}),
    example=Example("S.aiff(x, y, out)", "u32", runs=False),
    exempt=NOT_COMPUTED,
)
def aiff(ctrl_desc: object, param_desc: object, act_desc: object) -> E.Expr:
    """Run the fixed-function unit (AIFF) on three descriptor chains and wait.

    Each argument points to the beginning of a chain, in a parameter of uint32 or int32 that a `DescChainArray` is passed
    for. Simulator and PySim have one model of the unit: what open programs prove to the bit runs, and everything else is
    refused, by register and value, before anything is written (docs/aiff.md).
    """
    return E.Call("aiff", _descriptors("aiff", (ctrl_desc, param_desc, act_desc)), VOID)


@special_op(
    group=GROUP,
    effect="write",
    c="ASYNC_AIFF({ctrl_desc}, {param_desc}, {act_desc}, {event}, 0)",
    cost=Cost("event", {"__compass_aiff": "event"}),
    example=Example("e = S.alloc_events(1)\nS.async_aiff(x, y, out, e)\nS.wait_events(e)", "u32", runs=False),
    exempt=NOT_COMPUTED,
)
def async_aiff(ctrl_desc: object, param_desc: object, act_desc: object, event: object) -> E.Expr:
    """Start the fixed-function unit (AIFF) in the background; `event` is set when it is done. Otherwise as `S.aiff`."""
    args = _descriptors("async_aiff", (ctrl_desc, param_desc, act_desc))
    return E.Call("async_aiff", (*args, int32_arg(event, "S.async_aiff: event")), VOID)
