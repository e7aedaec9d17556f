"""The Python side of declared operations.

A value operation becomes one flat function with the operation's own signature. What its typing rule decides (operand
conversions, result type) is computed once per combination of operand types, literals and options, and kept as a plan.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import numpy as np

from compass_core.arrays import Array
from compassc.ir.dtypes import DataType
from compassc.ops.core import Op, infer, mask_lanes_of, r_dtype_ok, require_target
from compassc.ops.numeric import convert
from compassc.ops.typing import Operand, is_literal, type_error

from ..language.tiles.tile import Tile, apply
from .checks import DIVIDING, PLANS, arithmetic_checked, wanted
from .fast_paths import direct
from .masks import mask_array
from .meanings import Meaning, meaning_of
from .values import Conversion, PyVar, python_number, to_element

Side = Callable[..., object]
"""The function that a running kernel calls for an operation."""
_MAX_PLANS = 4096


class Plan:
    """How to evaluate an operation on operands of given types."""

    __slots__ = ("converters", "is_bool", "mask_lanes", "meaning", "plain", "result", "targets", "typed")

    def __init__(self, op: Op, operands: tuple[object, ...], options: dict[str, object]) -> None:
        typed = infer(op, [operand_type(op.name, x) for x in operands], options)
        self.typed = typed
        self.targets = typed.targets
        self.result = typed.result
        is_scalar = typed.result.is_scalar
        self.is_bool = is_scalar and typed.result.is_bool
        all_scalar = not any(t.is_vector for t in typed.operands) and is_scalar
        self.mask_lanes = 0 if all_scalar else mask_lanes_of(op, typed)
        self.converters = tuple(
            converter(typed.literals.get(i, x), t) for i, (x, t) in enumerate(zip(operands, typed.operands))
        )
        fixed = {k: v for k, v in options.items() if k != "out_sign"}
        self.meaning: Meaning = functools.partial(meaning_of(op), dtype=typed.result, **fixed)
        without = {"mask": None, **({"r": None} if op.r == "param" else {})} if op.mask_aware else {}
        simple = direct(op.name, typed, options)
        plain = simple or functools.partial(self.meaning, **without)
        if is_scalar:
            self.meaning, plain = _scalar(self.meaning), simple or _scalar(plain)
        self.plain = (
            plain if options.get("saturate") else arithmetic_checked(op.name, plain, typed.operands[0].element_of)
        )
        if is_scalar:
            if simple:
                self.converters = tuple(c if callable(c) or c is None else c[()] for c in self.converters)
        elif simple:  # NumPy's function broadcasts a scalar by itself
            self.converters = tuple(
                None if type(x) is PyVar and x.dtype is t.element_of else c
                for x, t, c in zip(operands, typed.operands, self.converters)
            )


def _scalar(fn: Meaning) -> Meaning:
    """`fn` with its result as a NumPy scalar."""

    def run(*args: Array, **kwargs: object) -> Array | np.generic:
        out = fn(*args, **kwargs)
        return out if isinstance(out, np.generic) else np.asarray(out)[()]

    return run


def operand_type(name: str, x: object) -> Operand:
    """The typing rules' view of an operand."""
    if type(x) is PyVar:
        return x.dtype
    if is_literal(x):
        return x
    if is_literal(number := python_number(x)):
        return number
    raise type_error(f"S.{name}: {type(x).__name__} is not a value", "pass a number, a variable or an expression")


def key_of(x: object) -> object:
    """The part of a plan's key for an operand that is not a PyVar."""
    x = python_number(x)
    if isinstance(x, Tile):
        return x  # no plan is kept for it
    return (type(x), x if x or type(x) is not float else str(x))  # -0.0 is not 0.0


def converter(x: object, target: DataType) -> Conversion:
    """The conversion of an operand to `target`: None (take its value), a function of its value, or the array itself."""
    elem, lanes = target.element_of, target.lanes
    if type(x) is not PyVar:
        value = to_element(x, elem)
        constant = filled(lanes, value) if lanes > 1 else np.asarray(value)
        constant.flags.writeable = False
        return constant
    source = x.dtype
    if source.is_vector:
        return None if source is target else lambda value: convert(value, source, elem)
    if lanes == 1:
        return None if source is elem else lambda value: np.asarray(convert(value, source, elem, scalar=True))
    if source is elem:
        return lambda value: filled(lanes, value)
    return lambda value: filled(lanes, convert(value, source, elem, scalar=True)[()])


def converted(x: object, target: DataType) -> Array:
    """An operand as an array of `target`."""
    how = converter(x, target)
    if type(x) is PyVar and (how is None or callable(how)):
        return x.value if how is None else how(x.value)
    assert how is not None and not callable(how), "what is no variable is a constant"
    return how


def filled(lanes: int, value: Array) -> Array:
    """A fresh array with a NumPy scalar in every lane."""
    out = np.empty(lanes, value.dtype)
    out[:] = value
    return out


def masked(op: Op, plan: Plan, arrays: tuple[Array, ...], mask: PyVar, r: object) -> Array:
    """The result array of a call with a mask."""
    if not plan.mask_lanes:
        if op.scalar_mask:
            return plan.plain(*arrays)
        raise type_error(f"S.{op.name}: a mask needs vector arguments", "use an if on scalars")
    active = mask_array(mask, plan.mask_lanes)
    source = None if r is None else r_array(op, r, plan.result)
    if active is None or (op.r == "param" and source is None):
        return plan.plain(*arrays)
    if op.mask_aware:
        found: Array = plan.meaning(*arrays, mask=active, **({"r": source} if op.r == "param" else {}))
        return found
    if op.name in DIVIDING and wanted("division"):
        arrays = arrays[0], np.where(active, arrays[1], 1)
    value = plan.plain(*arrays)
    if source is None:
        return value
    out = source.copy()
    np.copyto(out, value, where=active)
    return out


def r_array(op: Op, r: object, result: DataType) -> Array:
    """The `r` argument as an array of the result type."""
    if type(r) is PyVar and r.dtype is result:
        return r.value
    x = operand_type(op.name, r)
    if not r_dtype_ok(x, result):
        raise type_error(f"r ({x!r}) cannot be converted to {result}", f"give {result} or a scalar that fits")
    return converted(r, result)


_TEMPLATE = """
def {name}({signature}):
    key = ({keys},)
    try:
        plan = plans[key]
    except KeyError:
        if {on_tiles}:
            return tiles(op, {operands}, {given})
        plan = new_plan({operands}, options={options}, key=key)
    except TypeError:
        plan = Plan(op, {operands}, {options})
    {names} = plan.converters
{converts}
    {masked}
    if plan.targets:
        require_target("this form of S.{name}", plan.targets)
    out = plan.plain({arrays})
    return bool(out) if plan.is_bool else PyVar(out, plan.result)
"""

_MASKED = """if mask is not None:
        out = masked(op, plan, ({arrays},), mask, {r})
        return bool(out) if plan.is_bool else PyVar(out, plan.result)"""


def _source(op: Op) -> str:
    """The text of the Python side of a value operation."""
    operands = ", ".join(op.operands)
    keys = [f"{x}.dtype if type({x}) is PyVar else key_of({x})" for x in op.operands] + list(op.options)
    r = "r" if op.r == "param" else "None"
    arrays = ", ".join(f"a_{x}" for x in op.operands)
    masked_text = _MASKED.format(arrays=arrays, r=r) if op.has_mask else "pass"
    return _TEMPLATE.format(
        name=op.name,
        signature=str(op.signature)[1:-1],
        keys=", ".join(keys),
        operands=f"({operands},)",
        on_tiles=" or ".join(f"isinstance({x}, Tile)" for x in op.operands) or "False",
        options=_dictionary(op.options),
        given=_dictionary([o for o in op.signature.parameters if o not in op.operands]),
        names=", ".join(f"c_{x}" for x in op.operands) + ",",
        converts="\n".join(
            f"    a_{x} = {x}.value if c_{x} is None else c_{x}({x}.value) if callable(c_{x}) else c_{x}"
            for x in op.operands
        ),
        masked=masked_text,
        arrays=arrays,
    )


def _dictionary(names: Iterable[str]) -> str:
    """The text of a dictionary of variables by their names."""
    return "{" + ", ".join(f"{n!r}: {n}" for n in names) + "}"


def _value_side(op: Op) -> Side:
    plans: dict[object, Plan] = {}
    PLANS.append(plans)

    def new_plan(operands: tuple[object, ...], options: dict[str, object], key: object) -> Plan:
        plan = Plan(op, operands, options)
        if len(plans) >= _MAX_PLANS:
            plans.clear()
        plans[key] = plan
        return plan

    scope: dict[str, object] = {
        "op": op,
        "plans": plans,
        "new_plan": new_plan,
        "Tile": Tile,
        "tiles": apply,
        "Plan": Plan,
        "PyVar": PyVar,
        "key_of": key_of,
        "masked": masked,
        "require_target": require_target,
    }
    exec(compile(_source(op), f"<PySim S.{op.name}>", "exec"), scope)  # noqa: S102  the text comes from the declaration
    made = scope[op.name]
    assert callable(made)
    return made


def pysim_impl(op: Op) -> Side:
    """The function that a running PySim kernel calls for an operation."""
    return _SIDES.get(op.name) or _SIDES.setdefault(op.name, _special_side(op) if op.special else _value_side(op))


def _special_side(op: Op) -> Side:
    """The meaning of an operation; of a conversion also on tiles."""
    meaning = meaning_of(op)
    if op.name != "cast":
        return meaning

    @functools.wraps(meaning)
    def cast(x: object, *args: object, **kwargs: object) -> object:
        return apply(op, (x, *args), kwargs) if isinstance(x, Tile) else meaning(x, *args, **kwargs)

    return cast


_SIDES: dict[str, Side] = {}
