"""The forms of the declared operations: operand types and kinds, options, masks and sources of inactive lanes.

Everything here is asked of the declarations; a new operation gets its tests by being declared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

from compass_core.errors import CompassError
from compassc.ir.dtypes import BOOL, INT32, STORAGE, DataType, bool_of, make_dtype
from compassc.ops import core
from compassc.ops.typing import Typed

FLAGS = ("saturate", "with_round", "to_h", "return_idx")
REDUCTIONS = ("vrpmax", "vrpmin")
"""Operations that need an active lane; their masks are places whose names begin with `some`."""
TRAPPING = ("ceildiv",)
"""Operations whose divisor may not be 0 or -1; their operands are places whose names begin with `safe`."""
PARTS = {"vzip": ("all", "low", "high", "even", "odd")}


@dataclass(frozen=True)
class Place:
    """Something a kernel reads from its input: a value of a type; masks lie there as integers of `bits`."""

    name: str
    dtype: DataType
    bits: int = 0

    @property
    def stored(self) -> DataType:
        """The type of the bytes in memory."""
        return make_dtype("int", self.bits, self.dtype.lanes) if self.dtype.is_bool else self.dtype


@dataclass(frozen=True)
class Form:
    """One call. `operands`: places and literals; `mask` and `r`: a place, the text of a constant, or None; `live`: how
    many result lanes have a meaning, 0 for all. In `text`, `{NAME}` is a pointer to the place NAME; a statement writes
    its result itself, to `{out}`."""

    name: str
    text: str
    operands: tuple[Place | int | float, ...]
    result: DataType
    options: tuple[tuple[str, Any], ...] = ()
    mask: Place | str | None = None
    mask_lanes: int = 0
    r: Place | int | float | None = None
    live: int = 0
    targets: tuple[str, ...] = field(default=(), compare=False)

    @property
    def places(self) -> list[Place]:
        """What the call reads."""
        return [p for p in (*self.operands, self.mask, self.r) if isinstance(p, Place)]

    @property
    def op(self) -> core.Op:
        return core.get(self.name)


def vector_of(t: DataType, lanes: int) -> DataType:
    """The vector (for 1: scalar) of element type `t`; `lanes` 0 is one register."""
    return t.with_lanes(lanes or t.native_lanes)


def typed(op: core.Op, operands: list[Any], options: dict[str, Any]) -> Typed | None:
    """What the typing rule says; None where it refuses."""
    defaults = {name: op.signature.parameters[name].default for name in op.options}
    try:
        return core.infer(op, list(operands), {**defaults, **options})
    except CompassError:
        return None


def option_sets(op: core.Op) -> Iterator[dict[str, Any]]:
    """Every combination of the operation's options, defaults first."""
    axes: dict[str, tuple[Any, ...]] = {f: (False, True) for f in FLAGS if f in op.options}
    if "out_sign" in op.options:
        axes["out_sign"] = (None, "s", "u")
    if "part" in op.options:
        axes["part"] = PARTS[op.name]
    for chosen in product(*axes.values()):
        yield {k: v for k, v in zip(axes, chosen, strict=True) if v is not op.signature.parameters[k].default}


def operand_sets(op: core.Op, t: DataType, lanes: int) -> list[list[DataType]]:
    """Operand types of `lanes` lanes (0: native, 1: scalars) of element `t` that may suit; the last also in its other
    sign, an accumulator in every width."""
    x = vector_of(t, lanes)
    count = len(op.operands)
    others = [x] if t.is_bool or not t.is_integer else [x, x.with_uint() if x.is_int else x.with_int()]
    if op.operands[0] == "acc" and not t.is_bool:
        wider = [
            make_dtype(code, t.bits * by, x.lanes // by)
            for by in (1, 2, 4)
            if t.bits * by <= 32 and x.lanes % by == 0
            for code in (("float",) if t.is_floating else ("int", "uint"))
        ]
        return [[acc, x, other] for acc in wider for other in others]
    return [[x] * (count - 1) + [other] for other in others] if count > 1 else [[x]]


def mask_place(name: str, lanes: int, types: list[DataType]) -> Place:
    """A run-time mask, stored in elements as wide as those of the vector that it belongs to."""
    owner = next((t for t in types if t.lanes == lanes and not t.is_bool), None)
    bits = owner.bits if owner else {8: 32, 16: 16}.get(lanes, 8)
    return Place(f"{name}{lanes}_{bits}", bool_of(lanes), bits)


def place(start: str, position: int, t: DataType) -> Place:
    if t.is_mask:
        return mask_place(f"b{position}_", t.lanes, [])
    return Place(f"{start}{position}_{t}", t)


def call_text(op: core.Op, operands: list[str], options: dict[str, Any], mask: str | None, r: str | None) -> str:
    given = [*operands, *(f"{k}={v!r}" for k, v in options.items())]
    given += [] if mask is None else [f"mask={mask}"]
    given += [] if r is None else [f"r={r}"]
    return f"S.{op.name}({', '.join(given)})"


def make(op: core.Op, operands: list[Any], options: dict[str, Any], mask: Any = None, r: Any = None) -> Form | None:
    """A form of operands that are types or literals; None where the typing rule refuses. `mask`: text of a constant,
    or True for a run-time one. `r`: a literal, a function from the result type to one, or True for a vector."""
    found = typed(op, operands, options)
    if found is None:
        return None
    start = "safe" if op.name in TRAPPING else "a"
    places = [x if isinstance(x, (int, float)) else place(start, i, x) for i, x in enumerate(operands)]
    types = [x for x in (*operands, found.result) if isinstance(x, DataType)]
    lanes = core.mask_lanes_of(op, found)
    if mask is True:
        mask = mask_place("some" if op.name in REDUCTIONS else "m", lanes, types)
    if callable(r):
        r = r(found.result)
    elif r is True:
        r = Place(f"r_{found.result}", found.result)
    names = [p.name if isinstance(p, Place) else repr(p) for p in places]
    mask_text = mask.name if isinstance(mask, Place) else mask
    r_text = r.name if isinstance(r, Place) else None if r is None else repr(r)
    text = call_text(op, names, options, mask_text, r_text)
    return Form(
        op.name, text, tuple(places), found.result, tuple(options.items()), mask, lanes, r, targets=found.targets
    )


def expression(text: str, *places: Place, live: int = 0, **options: Any) -> Form:
    """A form given as text; its type is what the operations build."""
    from compassc.dsl import script
    from compassc.ir import exprs as E
    from compassc.language.dispatch import parsing

    scope = {p.name: E.Var(p.name, p.dtype) for p in places}
    with parsing(SimpleNamespace(operation=lambda op, args, kwargs: op.build(*args, **kwargs))):
        node = eval(text, {"S": script, "n": E.Var("n", INT32)}, scope)
    return Form("", text, places, node.dtype, live=live, **options)


def beside_others(form: Form) -> Form:
    """An `expression`, or statement, whose places are called after their types, so that those of others can be in its kernel."""
    names = {p.name: f"{p.name}_{p.dtype}" for p in form.places}
    text = re.sub(r"\w+", lambda word: names.get(word[0], word[0]), form.text)
    return replace(form, text=text, operands=tuple([replace(p, name=names[p.name]) for p in form.places]))


def value_ops() -> list[core.Op]:
    return [op for op in core.load().values() if not op.special]


def all_forms(t: DataType, lanes: int) -> Iterator[Form]:
    """Every accepted combination of operand types, options, and mask and r (none, run-time) of vectors."""
    for op in value_ops():
        for operands, options in product(operand_sets(op, t, lanes), option_sets(op)):
            plain = make(op, operands, options)
            if plain is None:
                continue
            yield plain
            if op.has_mask and plain.mask_lanes > 1:
                yield make(op, operands, options, mask=True)
                if op.r == "param":
                    yield make(op, operands, options, mask=True, r=True)


def literals(t: DataType) -> tuple[int | float, ...]:
    """Literals that meet the rules of adaptation and those of constant operands."""
    if t.is_floating:
        return (2, -0.5)
    return (3, 8, -1, 0, t.with_uint().range()[1] - 55)


def mixed_operands(op: core.Op, t: DataType) -> Iterator[tuple[list[Any], bool]]:
    """Operands of which one is a scalar or literal that is broadcast, and whether to try a mask too. What is left of two
    operands beside a literal may be of the other sign only: then it is for that type to try."""
    for position, name in enumerate(op.operands):
        if name == "acc" or len(op.operands) == 1:
            continue
        for operands in operand_sets(op, t, 0):
            before, after = operands[:position], operands[position + 1 :]
            for x in (operands[position].element_of, *(literals(t) if vector_of(t, 0) in (*before, *after) else ())):
                yield [*before, x, *after], isinstance(x, DataType) or x == 3


def mixed_forms(t: DataType) -> list[Form]:
    """Scalars and literals among the operands, each call once; some also with a run-time mask."""
    return list(dict.fromkeys(_mixed_forms(t)))


def _mixed_forms(t: DataType) -> Iterator[Form]:
    for op in value_ops():
        for operands, with_mask in mixed_operands(op, t):
            for mask in (None, True) if op.has_mask and with_mask else (None,):
                found = make(op, operands, {}, mask=mask, r=True if mask and op.r == "param" else None)
                if found is not None:
                    yield found


def mask_texts(lanes: int) -> list[str]:
    """Constant masks of every kind, and tail masks, as kernel text."""
    half = [i % 3 == 0 for i in range(lanes)]
    return [
        '"3T"',
        f'"{lanes}T"',
        '"2TF"' if lanes > 3 else '"T_FT"',
        repr(half),
        f"S.tail_mask({lanes // 2}, {lanes})",
        f"S.tail_mask(n, {lanes})",
        f"S.const_mask({half!r})",
    ]


def constant_forms(t: DataType, lanes: int) -> Iterator[Form]:
    """Constant and tail masks with every kind of r, for operations with default options; fewer unless native."""
    for op in value_ops():
        if not op.has_mask:
            continue
        for operands in operand_sets(op, t, lanes)[:1]:
            plain = make(op, operands, {})
            if plain is None or plain.mask_lanes < 2:
                continue
            rs: tuple[Any, ...] = (True, 1, scalar_r) if op.r == "param" else (None,)
            texts = mask_texts(plain.mask_lanes)
            for mask, r in product(texts if not lanes else texts[2::3], rs if not lanes else rs[:1]):
                yield make(op, operands, {}, mask=mask, r=r)


def scalar_r(result: DataType) -> Place:
    return Place(f"r_{result.element_of}", result.element_of)


def elements() -> list[DataType]:
    """All element types; bool stands for masks."""
    return [*STORAGE, BOOL]
