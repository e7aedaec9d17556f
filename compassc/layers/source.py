"""Kernels of layers as text in the DSL: statements and parameters are added, then the text is read like a user's file.

Numbers are scalar parameters, so that layers that differ in them alone have the same text, and one compiled object.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from compassc.graph import LayerError, Tensor
from compassc.ir.dtypes import VECTOR_BITS
from compassc.layers.arithmetic import Array
from compassc.layers.machine import Share
from compassc.layers.vectors import LANE_KINDS, WIDE, pointee

LANES = VECTOR_BITS // 8
"""Elements that one pass of an element-wise loop takes: bytes of a register."""
TABLES = Share(2)
"""LSRAM for the tables of a kernel."""


class Value(NamedTuple):
    """A variable of the kernel that holds `LANES` lanes; for integers the smallest and largest it can be."""

    name: str
    kind: str
    low: int = 0
    high: int = 0

    @property
    def magnitude(self) -> int:
        return max(abs(self.low), abs(self.high))


class Parameter(NamedTuple):
    """A parameter of the kernel: `type` as it is annotated, and the argument."""

    name: str
    type: str
    argument: Tensor | Array | int | float


@dataclass
class KernelSource:
    """The text of a kernel in the making. `head` runs once, `body` for every pass of the loop around it."""

    parameters: list[Parameter] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    channel: str = ""
    """The expression of a pass's first output channel, in kernels whose lanes are channels."""
    choice: str = ""
    """Instead: the expression of the index of the one number that counts for all lanes of a pass."""
    padded_channels: int = 0
    """Elements that numbers per channel are padded to, so that every pass reads whole vectors."""
    arrange: Callable[[Array], Array] | None = None
    """How numbers of all channels lie in memory, where groups of channels are padded."""
    loads: list[str] | None = None
    """Where vectors of numbers per channel are loaded, in kernels whose passes share them; None: in the body."""
    channel_shape: tuple[int, ...] = ()
    """Instead, in kernels of any shape: how the numbers of the present step lie along the output; set by the step."""
    lanes_of: Callable[[str], str] | None = None
    """Instead, where channels lie in any way: the expression of a pass's numbers, of the pointer to those of all channels."""
    spread: list[tuple[str, Array]] | None = None
    """The numbers of such steps as operands that broadcast: the variable of the pass, and the array; None: not taken."""
    stored_forms: dict[tuple[str, str], str] = field(default_factory=dict)
    """The lanes of variables as a data type stores them, where they are known: (variable, type) -> expression."""
    shifted_from: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Variables that are others over a power of two, rounded: (the other, the shift)."""
    rounded_from: dict[str, str] = field(default_factory=dict)
    """Variables that are rounded products of floats: the words that `vectors.rounded_word` makes."""
    float_forms: dict[str, str] = field(default_factory=dict)
    """Whole numbers as float32, where they are known: variable -> variable."""
    table_bytes: int = 0
    """Of the LSRAM that its tables take."""
    _names: int = 0

    def fresh(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def tensor(self, tensor: Tensor) -> str:
        """A pointer parameter for a tensor of the graph."""
        name = self.fresh("t")
        self.parameters.append(Parameter(name, f'S.ptr("{pointee(tensor.dtype)}", "global")', tensor))
        return name

    def constant(self, array: Array) -> str:
        """A pointer parameter for constant data."""
        name = self.fresh("c")
        self.parameters.append(Parameter(name, f'S.ptr("{array.dtype.name}", "global")', array))
        return name

    def table(self, array: Array) -> str:
        """Constant data copied into LSRAM."""
        self.table_bytes += array.nbytes
        if self.table_bytes > TABLES.size:
            raise LayerError(f"its tables take {self.table_bytes} bytes of the LSRAM, which has {TABLES.size} for them")
        pointer, name = self.constant(array), self.fresh("table")
        self.head.append(f'{name} = S.alloc({array.size}, "{array.dtype.name}", scope="lsram")')
        self.head.append(f"S.dma_copy({name}, {pointer}, {array.size})")
        return name

    def scalar(self, value: float | np.generic) -> str:
        """A scalar parameter: int32, or float32 for a float. LayerError for an integer that is no int32."""
        number = value.item() if isinstance(value, np.generic) else value
        if not isinstance(number, float) and not -(2**31) <= number < 2**31:
            raise LayerError(f"the number {number} does not fit 32 bits, which kernels compute with")
        name = self.fresh("p")
        self.parameters.append(Parameter(name, "S.fp32" if isinstance(number, float) else "S.i32", number))
        return name

    def channels(self, numbers: Array) -> str:
        """Numbers per channel: a vector of those of the pass, or the one of its index."""
        name = self.fresh("per")
        if self.choice:
            self.body.append(f"{name} = {self.constant(numbers)}[{self.choice}]")
            return name
        if self.lanes_of is not None:
            self.body.append(f"{name} = {self.lanes_of(self.constant(numbers))}")
            return name
        if not self.channel and self.channel_shape and self.spread is not None:
            self.spread.append((name, numbers.reshape(self.channel_shape)))
            return name
        if not self.channel:
            raise LayerError("it has numbers per channel, but the channels are not the last axis")
        numbers = self.arrange(numbers) if self.arrange else numbers
        padded = np.zeros(max(self.padded_channels, numbers.size), numbers.dtype)
        padded[: numbers.size] = numbers
        lines = self.body if self.loads is None else self.loads
        lines.append(f"{name} = S.vload({self.constant(padded)} + {self.channel}, lanes={LANES})")
        return name

    def broadcast(self, numbers: Array) -> str:
        """Numbers that broadcast to the output: a vector of those of the pass. LayerError in kernels of other shapes than
        their output's."""
        if self.channel or self.choice or self.lanes_of is not None or self.spread is None:
            raise LayerError(f"its numbers differ along {numbers.ndim} axes, for which this kernel has no form")
        name = self.fresh("per")
        self.spread.append((name, numbers))
        return name

    def stored_channels(self, numbers: Array) -> str:
        """As `channels`, a vector of the numbers as they are stored."""
        name = self.channels(numbers)
        spread = self.spread is not None and not self.channel and WIDE[numbers.dtype.name] != numbers.dtype.name
        return f"{name}_raw" if spread else name

    def let(self, expression: str, kind: str = "int32", low: int = 0, high: int = 0) -> Value:
        """A new variable with the value of an expression."""
        name = self.fresh()
        self.body.append(f"{name} = {expression}")
        return Value(name, kind, low, high)

    def do(self, statement: str) -> None:
        self.body.append(statement)

    def shifted(self, value: Value, offset: int) -> Value:
        """An integer plus a number."""
        if not offset:
            return value
        moved = f"{value.name} + {self.scalar(offset)}"
        return self.let(moved, "int32", value.low + offset, value.high + offset)


@dataclass(frozen=True)
class Kernel:
    """A finished kernel: its text, and the arguments in the order of its parameters."""

    text: str
    arguments: tuple[Tensor | Array | int | float, ...]

    @property
    def name(self) -> str:
        """A name that identifies the kernel."""
        return "layer_" + hashlib.sha256(self.text.encode()).hexdigest()[:12]


HEADER = """\
from compassc.dsl import script as S
{imports}


@S.prim_func
def {name}(
{parameters}
):
{body}
"""


def loaded(name: str, place: str, dtype: str, mask: str = "") -> list[str]:
    """Statements that load lanes in their wide form into a variable."""
    given = f"S.vload({place}, {mask}, lanes={LANES})" if mask else f"S.vload({place}, lanes={LANES})"
    return widened(name, given, dtype)


def widened(name: str, given: str, dtype: str) -> list[str]:
    """Statements that put stored lanes in their wide form into a variable; each step has a name, so that it is done
    once."""
    if LANE_KINDS[dtype] == dtype:
        return [f"{name} = {given}"]
    lines, held = [f"{name}_raw = {given}"], f"{name}_raw"
    if dtype in ("int8", "uint8", "bool"):
        lines.append(f'{name}_half = S.cast({held}, "{pointee(dtype).replace("8", "16")}")')
        held = f"{name}_half"
    return [*lines, f'{name} = S.cast({held}, "{WIDE[dtype]}")']


def last_cleared(tile: str, count: str, dtype: str) -> str:
    """The statement that sets the vector in which `count` elements end to 0, so that whole vectors may be read."""
    return f'S.vstore(S.vbcast(S.cast(0, "{pointee(dtype)}"), lanes={LANES}), {tile} + ({count} & {-LANES}))'


STORED = re.compile(r'\bnarrow\((\w+), "(\w+)"\)')
"""Lanes that are made what a data type stores."""
ASSIGNED = re.compile(r"\s*(\w+) = ")
WORD = re.compile(r"\w+")


def invariant(lines: list[str], changing: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """(assignments that are the same in every pass of a loop over `lines`, the others); `changing` are its variables."""
    assigned = [m[1] if (m := ASSIGNED.match(line)) else "" for line in lines]
    # what a statement that assigns nothing is given may be changed by it
    told = {word for line, name in zip(lines, assigned, strict=True) if not name for word in WORD.findall(line)}
    once = {name for name, uses in Counter(assigned).items() if uses == 1}
    varying = {*changing, *assigned} - {""}
    shared: list[str] = []
    for line, name in zip(lines, assigned, strict=True):
        if (
            name
            and name in once
            and line[0] != " "
            and name not in told
            and not varying & set(WORD.findall(line[line.index("=") :]))
        ):
            shared.append(line)
            varying.remove(name)
    return shared, [line for line in lines if line not in shared]


@lru_cache(4096)
def _words(line: str) -> tuple[str, ...]:
    """The words of a line; kernels have most lines in common."""
    return tuple(WORD.findall(line))


def _tidy(source: KernelSource, lines: list[str]) -> list[str]:
    """The lines with known stored forms in the place of conversions, and without variables that nothing uses."""
    storing = {i: STORED.findall(line) for i, line in enumerate(lines) if "narrow(" in line}
    for dtype in {stored[1] for found in storing.values() for stored in found} - WIDE.keys():
        raise LayerError(f"kernels do not compute with {dtype}")
    lines = list(lines)
    for i in storing:
        lines[i] = STORED.sub(lambda m: source.stored_forms.get((m[1], m[2]), m[0]), lines[i])
    uses = Counter(chain.from_iterable(map(_words, lines)))
    while True:
        kept: list[str] = []
        dropped: list[str] = []
        for line in lines:
            assigned = ASSIGNED.match(line) if " = " in line else None
            (dropped if assigned and uses[assigned[1]] == 1 else kept).append(line)
        if not dropped:
            return kept
        lines = kept
        uses.subtract(chain.from_iterable(map(_words, dropped)))


CALLED = re.compile(r"(?<![\w.])([a-z]\w*)\(")
"""The name of a function that is called, but not of one of the DSL."""


@lru_cache(4096)
def _calls(line: str) -> tuple[str, ...]:
    return tuple(CALLED.findall(line))


@cache
def _functions() -> dict[str, str]:
    """The functions that kernels may call: the module of each."""
    from compassc.layers import inverse, joins, vectors

    return {
        name: module.__name__
        for module in (inverse, joins, vectors)
        for name, found in vars(module).items()
        if name.islower() and not name.startswith("_") and callable(found)
    }


def finish(source: KernelSource, lines: list[str]) -> Kernel:
    """The kernel with these lines as its body and imports of the functions they use."""
    kept = _tidy(source, lines)
    body = "\n".join("    " + line if line else "" for line in kept)
    modules = _functions()
    called = sorted({(modules[name], name) for name in chain.from_iterable(map(_calls, kept)) if name in modules})
    used = set(chain.from_iterable(map(_words, kept)))
    parameters = [p for p in source.parameters if p.name in used or isinstance(p.argument, Tensor)]
    listed = "\n".join(f"    {p.name}: {p.type}," for p in parameters)
    imports = "\n".join(
        f"from {module} import {', '.join(name for m, name in called if m == module)}"
        for module in dict.fromkeys(m for m, _ in called)
    )
    text = HEADER.format(imports=imports, name="layer", parameters=listed, body=body)
    return Kernel(text, tuple(p.argument for p in parameters))
