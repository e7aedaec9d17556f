"""Declaration of operations: all that is known of one is a field of its `Op`, everything else is derived.

Two kinds exist. A *value* operation (`value_op`) maps operands to a result lane by lane or register by register: its
typing rule is declared as data, and the decorated function is its definition. A *special* operation (`special_op`) is
known by the IR that its call becomes: the decorated function makes it, from expressions and literals.

What an operation does in PySim is in `pysim`, its C function in the headers of the simulator (`sim/include/compass`),
joined by name. Without a meaning of its own in PySim, a value operation is computed by its definition there.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from compass_core import vendor
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple

from ..ir import exprs as E
from ..ir.dtypes import FLOAT32, INT32, DataType, bool_of
from .example import Example
from .masks import mask_bits, mask_error
from .typing import Number, Operand, Typed, check_literal, fits, is_literal, literal_dtype, type_error

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .effects import Arg

REGISTRY: dict[str, Op] = {}
MODULES = (
    "arithmetic",
    "products",
    "bitwise",
    "compare",
    "math",
    "convert",
    "permute",
    "lanes",
    "memory",
    "atomics",
    "dma",
    "sync",
    "misc",
    "assertions",
)

TARGET: ContextVar[str] = ContextVar("target", default="")
"""Generation of the target being compiled for (`X2`, `X3P`, ...). Empty: unknown, every form is available."""


Definition = Callable[..., Array]
"""`f(*operands, to=result type, **options)` on matrices of one row per vector, with the arithmetic of `exact`. With
`Op.mask_aware` it takes `mask` (active lanes or None), and `r` if that is a parameter, and settles inactive lanes."""
Built = E.Expr | tuple[E.Expr, ...] | None
"""The IR of a call: a value, several, or nothing."""
Build = Callable[..., Built]
"""Makes it of the call's arguments."""
Let = Callable[[E.Expr], E.Var]
"""Gives the value of an expression a variable."""
Cases = tuple[tuple[str, str], ...]
Spelling = str | Iterable["str | tuple[str, str]"]
"""C templates, each with the condition under which it is used or without; the first that holds counts."""
Effect = Literal["pure", "read", "write", "sync", "io"]
Part = Literal["c", "cost", "definition", "example"]


@dataclass(frozen=True)
class Cost:
    """What profiles count an operation as: classes of `configurations/cost/classes.yaml`.

    `kind`: the class of the C functions in its templates; `scalar`: that of its all-scalar templates. `functions`:
    classes of other C functions (patterns) that it becomes. `borrows`: functions in its templates that other operations
    declare. `mask_is_data`: its mask is an operand, and does not choose the lanes that are computed.
    """

    kind: str
    functions: Mapping[str, str] = field(default_factory=dict)
    scalar: str = "scalar"
    borrows: tuple[str, ...] = ()
    mask_is_data: bool = False


Size: TypeAlias = "int | str | Arg | Sequence[Size] | None"
"""Bytes that an operation touches (see `effects`); None: anything from the address on."""


class Touch(NamedTuple):
    """Memory that an operation reads or writes: from the address in operand `operand` on, so many bytes (see `effects`;
    None: anywhere from there)."""

    operand: int
    how: Literal["r", "w"]
    size: Size


@dataclass(frozen=True, kw_only=True)
class Op:
    """One declared operation.

    `doc`, `arguments`: the text of its page, and what it says of arguments that mean something of their own here. `types`,
    `returns`: what editors are told of arguments that have a type of their own here, and of the result where it is not a
    value, nor nothing as of those that have an effect.
    `example`: the kernel on its page. `operands`: names of the IR node's arguments; one that begins with `*` stands for any
    number of them. `options`: names of compile-time options, which the IR node has as attributes. `exempt`: why a part is missing that every other operation has. `public`: kernels can call it.

    `typing`: the typing rule; None for special operations. `definition`: what it computes. `ulps`: by how many units in
    the last place of a float32 its C may differ from that. `mask_like`: the operand whose lanes the mask has, -1 for the
    result. `mask_aware`: the mask is part of the definition; of other operations inactive lanes take `r`, or are
    undefined. `scalar_mask`: the all-scalar form ignores a mask. `scalar_ir`: makes the IR of the all-scalar form from its
    converted operands. `alias_of`: (operation, options) that the IR holds instead.

    `expansion`: `f(let, *operands, **options)`, the IR of other operations that a call becomes in C, in a function of its
    own. `c`: (condition, template) pairs (see `spelling`); empty where codegen prints it by a form. `r`: "param" (the option r
    is the value of inactive lanes), "auto" (the C function needs such a value but the language gives none) or "none".
    `cost`: its class in profiles. `effect`, `touches`: what it does besides giving a value. `split`: the rule by which
    wide vectors are cut (`passes/_split_rules.py`). `signs`: the rule that brings operands to the signs of its
    instruction (`passes/legalize_signedness.py`). `operator`: the operator of the IR that it is on vectors. `commutative`: x
    and y may be exchanged.
    """

    name: str
    group: str
    doc: str
    signature: inspect.Signature
    operands: tuple[str, ...]
    build: Build
    options: tuple[str, ...] = ()
    example: Example | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    returns: str = ""
    exempt: Mapping[Part, str] = field(default_factory=dict)
    public: bool = True
    typing: Callable[..., Typed] | None = None
    definition: Definition | None = None
    ulps: int = 0
    mask_like: int = 0
    mask_aware: bool = False
    scalar_mask: bool = False
    scalar_ir: Callable[..., E.Expr] | None = None
    alias_of: tuple[str, Mapping[str, object]] | None = None
    expansion: Callable[..., E.Expr] | None = None
    c: Cases = ()
    r: Literal["none", "param", "auto"] = "none"
    cost: Cost | None = None
    effect: Effect = "pure"
    touches: tuple[Touch, ...] = ()
    split: str = "lanes"
    signs: str = ""
    operator: str = ""
    commutative: bool = False

    @cached_property
    def has_mask(self) -> bool:
        """Whether lanes can be switched off; an operand called `mask` is data."""
        return "mask" in self.signature.parameters and "mask" not in self.operands

    @property
    def special(self) -> bool:
        return self.typing is None

    @cached_property
    def _defaults(self) -> dict[str, object] | None:
        """The parameters in their order, with their defaults; None where one of them is no plain parameter."""
        parameters = self.signature.parameters.values()
        plain = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)
        return {p.name: p.default for p in parameters} if plain else None

    @cached_property
    def _required(self) -> frozenset[str]:
        """The parameters without default."""
        return frozenset(n for n, default in (self._defaults or {}).items() if default is inspect.Parameter.empty)

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The names of the options that a call keeps, sorted."""
        fixed = self.alias_of[1] if self.alias_of else {}
        return tuple(sorted({*self.options, *fixed} - {"out_sign"}))

    @cached_property
    def typed(self) -> Callable[[tuple[Operand, ...], tuple[tuple[str, object], ...], tuple[type, ...], bool], Typed]:
        """The typing rule, which remembers what it gave for operands and options of given types, under the vendor's names or
        not."""
        rule = self.typing
        assert rule is not None
        return lru_cache(maxsize=256)(lambda operands, options, *_: rule([*operands], **dict(options)))

    def given(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """The arguments of a call by their parameters. TypeError as `inspect.Signature.bind` has it."""
        known = self._defaults
        if known is not None and len(args) <= len(known) and kwargs.keys() <= known.keys():
            given = dict(zip(known, args))
            if given.keys().isdisjoint(kwargs):
                given.update(kwargs)
                if given.keys() >= self._required:
                    return given
        return dict(self.signature.bind(*args, **kwargs).arguments)

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """The value of every parameter of a call, defaults included. TypeError as `inspect.Signature.bind` has it."""
        given = self.given(args, kwargs)
        if self._defaults is not None:
            return {**self._defaults, **given}
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def expr(self, *args: object, **kwargs: object) -> E.Expr:
        """The IR of a call that is one value."""
        found = self.build(*args, **kwargs)
        assert isinstance(found, E.Expr), self.name
        return found

    def takes(self, count: int) -> bool:
        """Whether its IR node may have so many arguments."""
        named = sum(not name.startswith("*") for name in self.operands)
        return count == named or (count > named < len(self.operands))


def get(name: str) -> Op:
    """The declaration of an operation; imports the operation modules on first use."""
    if name not in REGISTRY:
        load()
    return REGISTRY[name]


@cache
def load() -> dict[str, Op]:
    """All declared operations by name."""
    for module in MODULES:
        importlib.import_module(f"{__package__}.{module}")
    return REGISTRY


def _register(op: Op) -> Op:
    if op.name in REGISTRY:
        raise ValueError(f"operation {op.name} is declared twice")
    REGISTRY[op.name] = op
    return op


def _cases(c: Spelling) -> Cases:
    """C spellings as (condition, template) pairs; a plain string has no condition."""
    return tuple(("", item) if isinstance(item, str) else item for item in ((c,) if isinstance(c, str) else c))


@cache
def _signature(params: str) -> inspect.Signature:
    """The signature for a parameter list; defaults are literals."""
    items = (item.partition("=") for item in params.split(", "))
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=ast.literal_eval(value) if equals else inspect.Parameter.empty,
            )
            for name, equals, value in items
        ]
    )


class Fields(TypedDict, total=False):
    """The fields of `Op` that declarations of both kinds give as they are; for type checkers."""

    example: Example
    arguments: Mapping[str, str]
    types: Mapping[str, str]
    returns: str
    exempt: Mapping[Part, str]
    public: bool
    cost: Cost
    effect: Effect
    touches: tuple[Touch, ...]


class ValueFields(Fields, total=False):
    """The fields of value operations."""

    ulps: int
    mask_like: int
    mask_aware: bool
    scalar_mask: bool
    scalar_ir: Callable[..., E.Expr]
    alias_of: tuple[str, Mapping[str, object]]
    expansion: Callable[..., E.Expr]
    r: Literal["none", "param", "auto"]
    split: str
    signs: str
    operator: str
    commutative: bool


class SpecialFields(Fields, total=False):
    """The fields of special operations."""

    definition: Definition
    signs: str


def value_op(
    *, group: str, parameters: str, typing: Callable[..., Typed], c: Spelling = (), **fields: Unpack[ValueFields]
) -> Callable[[Definition], Op]:
    """Declare a value operation; `fields` are those of `Op`.

    `parameters`: the signature as Python text; parameters without default are operands, `mask` and `r` are recognised,
    the others are compile-time options. `typing(operands, **options) -> Typed`. The decorated function is the definition,
    its docstring the text of the page.
    """

    def decorate(definition: Definition) -> Op:
        signature = _signature(parameters)
        given = list(signature.parameters.values())
        self = Op(
            name=definition.__name__,
            group=group,
            doc=inspect.getdoc(definition) or "",
            signature=signature,
            operands=tuple(p.name for p in given if p.default is p.empty),
            options=tuple(p.name for p in given if p.default is not p.empty and p.name not in ("mask", "r")),
            build=lambda *args, **kw: build_value(self, *args, **kw),
            typing=typing,
            definition=definition,
            c=_cases(c),
            **fields,
        )
        return _register(self)

    return decorate


def special_op(
    *,
    group: str,
    c: Spelling = (),
    operands: tuple[str, ...] | None = None,
    options: tuple[str, ...] = (),
    split: str = "none",
    **fields: Unpack[SpecialFields],
) -> Callable[[Build], Op]:
    """Declare a special operation; `fields` are those of `Op`.

    The decorated function makes the IR of a call, its docstring is the text of the page. `operands`: names of the IR
    node's arguments where they are not the parameters without default. `options`: names of its attributes.
    """

    def decorate(build: Build) -> Op:
        signature = inspect.signature(build)
        named = tuple(p.name for p in signature.parameters.values() if p.default is p.empty)
        return _register(
            Op(
                name=build.__name__,
                group=group,
                doc=inspect.getdoc(build) or "",
                signature=signature,
                operands=named if operands is None else operands,
                options=options,
                build=build,
                c=_cases(c),
                split=split,
                **fields,
            )
        )

    return decorate


# ------------------------------------------------------------------------------------------- building IR from operands


def operand_of(x: object) -> Operand:
    """The typing rules' view of an argument: its type, or the literal itself."""
    if isinstance(x, E.Expr):
        if isinstance(x, E.Pointer) or not isinstance(x.dtype, DataType):
            raise type_error(f"a pointer ({x.dtype}) cannot be a value operand", "load the value first")
        return x.dtype
    if is_literal(x):
        return x
    raise type_error(f"{type(x).__name__} is not a value", "pass a number, a variable or an expression")


def imm(value: float | bool, dtype: DataType) -> E.Expr:
    """A literal of a scalar type; values that do not fit keep a conversion, as C would."""
    dtype = dtype.element_of
    if dtype.is_floating:
        return E.FloatImm(dtype, value)
    if type(value) is float or not fits(value, dtype):
        own = literal_dtype(value)
        if type(value) is float:
            single = rounded(value, FLOAT32)
            if math.isfinite(single) and fits(int(single), dtype):
                return E.IntImm(dtype, int(single))
        return E.Cast(dtype, E.FloatImm(FLOAT32, value) if own is FLOAT32 else E.IntImm(INT32, int(value)))
    return E.IntImm(dtype, int(value))


def scalar_cast(e: E.Expr, dtype: DataType) -> E.Expr:
    """A scalar expression converted by C rules; constants are folded when they fit."""
    if e.dtype is dtype:
        return e
    if type(e) is E.IntImm and (dtype.is_floating or fits(e.value, dtype)):
        return imm(e.value, dtype)
    if type(e) is E.FloatImm:
        value = rounded(e.value, e.dtype)
        if dtype.is_floating or (math.isfinite(value) and fits(int(value), dtype)):
            return imm(value, dtype)
    return E.Cast(dtype, e)


def rounded(value: float, dtype: DataType) -> float:
    """The value of a literal of a floating-point type: rounded to nearest even, through float32 as in C."""
    try:
        single = struct.pack("<f", value)
        if dtype.bits == 32:
            found: float = struct.unpack("<f", single)[0]
            return found
        if dtype.is_float:
            found = struct.unpack("<e", struct.pack("<e", *struct.unpack("<f", single)))[0]
            return found
    except OverflowError:
        return math.copysign(math.inf, value)
    bits = int.from_bytes(single, "little")
    if not math.isnan(value):
        bits += 0x7FFF + (bits >> 16 & 1)
    found = struct.unpack("<f", (bits & 0xFFFF0000).to_bytes(4, "little"))[0]
    return found


def _literal(x: Number, dtype: DataType) -> E.Expr:
    """A literal as a constant of the elements of a type."""
    if type(x) is int and dtype.is_integer:
        low, high = dtype.integer_range()
        if low <= x <= high:  # as most are
            return E.IntImm(dtype.element_of, x)
    check_literal(x, dtype)
    return imm(x, dtype)


def convert(x: object, dtype: DataType) -> E.Expr:
    """An operand as an expression of `dtype`: literals become constants, scalars are cast and broadcast."""
    if is_literal(x):
        e = _literal(x, dtype)
    elif not isinstance(x, E.Expr):
        raise type_error(f"{type(x).__name__} is not a value")
    elif x.dtype is dtype:
        return x
    elif x.dtype.is_vector:
        return E.Call("cast", (x,), dtype, attrs=(("part", "all"), ("saturate", None)))
    else:
        e = scalar_cast(x, dtype.element_of)
    if dtype.is_scalar:
        return e
    if dtype.is_bool and type(e) is E.IntImm:
        return E.ConstMask((1 << dtype.lanes) - 1 if e.value else 0, dtype.lanes)
    return E.Broadcast(e, dtype.lanes)


def build_mask(mask: object, lanes: int) -> E.Expr | None:
    """A mask argument as an expression of `lanes` lanes; None when every lane is active."""
    if mask is None:
        return None
    if isinstance(mask, E.Expr):
        if not mask.dtype.is_mask and mask.dtype is not bool_of(lanes):
            raise mask_error(f"a mask is a vector of bools, got {mask.dtype}")
        if mask.dtype.lanes != lanes:
            raise mask_error(f"the mask has {mask.dtype.lanes} lanes, its vector {lanes}")
        return None if type(mask) is E.ConstMask and mask.all_true else mask
    bits = mask_bits(mask, lanes)
    return None if bits == (1 << lanes) - 1 else E.ConstMask(bits, lanes)


def r_dtype_ok(x: Operand, result: DataType) -> bool:
    """Whether an `r` argument can be converted to the result type."""
    if not is_literal(x) and x.element_of is result.element_of:
        return x.is_scalar or x.lanes == result.lanes
    is_float = type(x) is float if is_literal(x) else x.is_float
    if is_float and result.is_integer:
        return False
    own = literal_dtype(x) if is_literal(x) else x
    either_sign = own.is_integer and result.is_integer and not result.is_bool
    return fits(x, result) or (either_sign and fits(x, result.with_uint() if result.is_int else result.with_int()))


def build_r(r: object, result: DataType) -> E.Expr | None:
    """The `r` argument converted to the result type."""
    if r is None:
        return None
    x = operand_of(r)
    if not r_dtype_ok(x, result):
        what = f"{r!r}" if is_literal(r) else str(x)
        raise type_error(f"r ({what}) cannot be converted to {result}")
    return convert(r, result)


def require_target(what: str, targets: tuple[str, ...]) -> None:
    """Refuse a form that the generation being compiled for does not have; empty `targets` means all have it."""
    current = TARGET.get()
    if targets and current and current not in targets:
        raise CompassError(
            f"{what} does not exist on {current}", code="target", help=f"it needs {' or '.join(targets)}"
        )


def bind(op: Op, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
    """The value of every parameter of a call, defaults included."""
    try:
        return op.bind(args, kwargs)
    except TypeError as e:
        raise CompassError(
            f"S.{op.name}: {e}", code="arguments", help=f"its signature is S.{op.name}{op.signature}"
        ) from None


_REMEMBERED = frozenset((DataType, bool, int, str, type(None)))
"""Types whose values are the same where they are equal, and of the same type."""


def infer(op: Op, operands: list[Operand], options: dict[str, object]) -> Typed:
    """The operation's typing rule, with the check that the target has the form."""
    assert op.typing is not None
    kinds = tuple(map(type, (*operands, *options.values())))
    if _REMEMBERED.issuperset(kinds):
        typed = op.typed(tuple(operands), tuple(options.items()), kinds, vendor.names_in_use)
    else:
        typed = op.typing(operands, **options)
    require_target(f"this form of S.{op.name}", typed.targets)
    return typed


def mask_lanes_of(op: Op, typed: Typed) -> int:
    """How many lanes the mask of a call has."""
    return typed.mask_lanes or (typed.result if op.mask_like < 0 else typed.operands[op.mask_like]).lanes


def build_value(op: Op, *args: object, **kwargs: object) -> E.Expr:
    """The IR node of a value operation."""
    values = bind(op, args, kwargs)
    mask, r = values["mask"] if op.has_mask else None, values.get("r")
    options = {name: values[name] for name in op.options}
    operands = [values[name] for name in op.operands]
    typed = infer(op, [operand_of(x) for x in operands], options)
    converted = tuple(convert(typed.literals.get(i, x), t) for i, (x, t) in enumerate(zip(operands, typed.operands)))
    name, fixed = op.alias_of or (op.name, {})
    every = {**options, **fixed}
    attrs = tuple([(k, every[k]) for k in op.attributes])
    if typed.result.is_scalar and not any(t.is_vector for t in typed.operands):
        if mask is not None and not op.scalar_mask:
            raise type_error(f"S.{op.name}: a mask needs vector arguments")
        return op.scalar_ir(*converted) if op.scalar_ir else E.Call(name, converted, typed.result, attrs=attrs)
    mask_expr = build_mask(mask, mask_lanes_of(op, typed))
    r_expr = build_r(r, typed.result) if op.r == "param" else None
    if op.r == "param" and r_expr is None and not (mask_expr is not None and mask_expr.flags & E.F_FUNC):
        mask_expr = None  # inactive lanes are undefined; a sub-function in the mask is called all the same
    return E.Call(name, converted, typed.result, mask_expr, r_expr if mask_expr is not None else None, attrs)
