"""Kernels of layers as text in the DSL: statements and parameters are added, then the text is read like a user's file.

Numbers are scalar parameters, so that layers that differ in them alone have the same text, and one compiled object.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from compass_core.arrays import Array
from compassc import build
from compassc.build import Expression, Pointer, Value, recorded
from compassc.graph import LayerError, Tensor
from compassc.ir import exprs as E
from compassc.ir.dtypes import FLOAT32, INT32, dtype
from compassc.ir.stmts import PrimFunc
from compassc.language.functions import Macro
from compassc.layers.steps import LANES, Steps
from compassc.layers.vectors import WIDE, pointee


def named(name: str, kind: str, low: int = 0, high: int = 0) -> Value:
    """A variable that the text of a kernel defines, of `LANES` lanes; for integers the smallest and largest it can be."""
    return Value(E.Var(name, dtype(f"{kind}x{LANES}")), name, low, high)


class Parameter(NamedTuple):
    """A parameter of the kernel: `type` as it is annotated, and the argument."""

    name: str
    type: str
    argument: Tensor | Array | int | float


@dataclass
class KernelSource(Steps):
    """The text of a kernel in the making. `head` runs once, `body` for every pass of the loop around it."""

    parameters: list[Parameter] = field(default_factory=list)
    head: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    channel: str = ""
    """The expression of a pass's first output channel, in kernels whose lanes are channels."""
    padded_channels: int = 0
    """Elements that numbers per channel are padded to, so that every pass reads whole vectors."""
    stored_forms: dict[tuple[str, str], Value] = field(default_factory=dict)
    shifted_from: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    rounded_from: dict[str, Value] = field(default_factory=dict)
    float_forms: dict[str, Value] = field(default_factory=dict)
    called: dict[str, str] = field(default_factory=dict)
    """Functions that the text calls: the module of each."""
    _names: int = 0

    def fresh(self, prefix: str = "v") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def tensor(self, tensor: Tensor) -> str:
        """A pointer parameter for a tensor of the graph."""
        name = self.fresh("t")
        self.parameters.append(Parameter(name, f'S.ptr("{pointee(tensor.dtype)}", "global")', tensor))
        return name

    def pointer(self, array: Array) -> Pointer:
        name = self.fresh("c")
        self.parameters.append(Parameter(name, f'S.ptr("{array.dtype.name}", "global")', array))
        return build.pointer(name, dtype(array.dtype.name), "global")

    def constant(self, array: Array) -> str:
        """The name of a pointer parameter for constant data."""
        return self.pointer(array).name

    def table(self, array: Array) -> Pointer:
        self.take_for_table(array)
        pointer, name = self.pointer(array), self.fresh("table")
        self.head.append(f'{name} = S.alloc({array.size}, "{array.dtype.name}", scope="lsram")')
        self.head.append(f"S.dma_copy({name}, {pointer}, {array.size})")
        return build.pointer(name, pointer.elem, "lsram")

    def number(self, value: float | np.generic) -> Value:
        number = self.argument(value)
        name, real = self.fresh("p"), isinstance(number, float)
        self.parameters.append(Parameter(name, "S.fp32" if real else "S.i32", number))
        known = (0, 0) if isinstance(number, float) else (number, number)
        return build.variable(name, FLOAT32 if real else INT32, *known)

    def scalar(self, value: float | np.generic) -> str:
        """The name of a scalar parameter: int32, or float32 for a float. LayerError for an integer that is no int32."""
        return self.number(value).name

    def channels(self, numbers: Array) -> Value:
        name, kind = self.fresh("per"), dtype(numbers.dtype.name)
        per_lane = build.variable(name, kind.with_lanes(LANES))
        if not self.channel:
            raise LayerError("it has numbers per channel, but the channels are not the last axis")
        padded = np.zeros(max(self.padded_channels, numbers.size), numbers.dtype)
        padded[: numbers.size] = numbers
        self.body.append(f"{name} = S.vload({self.constant(padded)} + {self.channel}, lanes={LANES})")
        return per_lane

    @property
    def lanes_are_channels(self) -> bool:
        return bool(self.channel)

    @property
    def one_for_all(self) -> bool:
        return False

    @property
    def any_lanes(self) -> bool:
        return False

    def broadcast(self, numbers: Array) -> Value:
        raise LayerError(f"its numbers differ along {numbers.ndim} axes, for which this kernel has no form")

    def stored_channels(self, numbers: Array) -> Value:
        return self.channels(numbers)

    def let(
        self, expression: str | Expression, kind: str = "int32", low: int | None = None, high: int | None = None
    ) -> Value:
        """A new variable with the value of an expression."""
        name = self.fresh()
        if isinstance(expression, str):
            self.body.append(f"{name} = {expression}")
            return named(name, kind, low or 0, high or 0)
        known = recorded(expression).within(low, high)
        self.body.append(f"{name} = {known.source}")
        return build.variable(name, known.expr.data_type, known.low, known.high)

    def once(self, value: Expression) -> Value:
        name = self.fresh("entries")
        self.head.append(f"{name} = {recorded(value).source}")
        return build.variable(name, recorded(value).expr.data_type)

    def paste(self, macro: Macro, *arguments: Expression | Pointer | int) -> None:
        self.body.append(build.call_text(macro.__name__, arguments, {}))

    def assign(self, variable: Value, value: Expression) -> None:
        self.body.append(f"{variable} = {recorded(value).source}")

    def do(self, statement: str) -> None:
        self.body.append(statement)


@dataclass(frozen=True)
class Kernel:
    """A finished kernel: its text, and the arguments in the order of its parameters.

    `make`: gives the IR of one that was made as such; its text means the same. The parser makes that of all others.
    `modules`: those whose functions and macros the text calls. `read`: gives the text with the line of Python that made
    each line.
    """

    text: str
    arguments: tuple[Tensor | Array | int | float, ...]
    make: Callable[[], PrimFunc] | None = field(default=None, compare=False)
    modules: tuple[str, ...] = field(default=(), compare=False)
    read: Callable[[], str] | None = field(default=None, compare=False)
    is_program: bool = True
    """Whether the text is a program in the DSL, and not that of the IR."""

    @cached_property
    def function(self) -> PrimFunc | None:
        """The IR of a kernel that was made as such."""
        return self.make() if self.make else None

    @property
    def listing(self) -> str:
        """The text for whoever wants to read it."""
        return self.read() if self.read else self.text

    @cached_property
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


STORED = re.compile(r'\bnarrow\((\w+), "(\w+)"\)')
"""Lanes that are made what a data type stores."""
ASSIGNED = re.compile(r"\s*(\w+) = ")
WORD = re.compile(r"\w+")


@lru_cache(4096)
def _words(line: str) -> tuple[str, ...]:
    """The words of a line; kernels have most lines in common."""
    return tuple(WORD.findall(line))


def _stored(source: KernelSource, found: re.Match[str]) -> str:
    form = source.stored_forms.get((found[1], found[2]))
    return found[0] if form is None else form.source


def _tidy(source: KernelSource, lines: list[str]) -> list[str]:
    """The lines with known stored forms in the place of conversions, and without variables that nothing uses."""
    storing = {i: STORED.findall(line) for i, line in enumerate(lines) if "narrow(" in line}
    for unknown in {stored[1] for found in storing.values() for stored in found} - WIDE.keys():
        raise LayerError(f"kernels do not compute with {unknown}")
    lines = list(lines)
    for i in storing:
        lines[i] = STORED.sub(lambda m: _stored(source, m), lines[i])
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
    from compassc.layers import joins, remainder, vectors

    return {
        name: module.__name__
        for module in (joins, remainder, vectors)
        for name, found in vars(module).items()
        if name.islower() and not name.startswith("_") and callable(found)
    }


def finish(source: KernelSource, lines: list[str]) -> Kernel:
    """The kernel with these lines as its body."""
    kept = _tidy(source, lines)
    used = set(chain.from_iterable(map(_words, kept)))
    parameters = [p for p in source.parameters if p.name in used or isinstance(p.argument, Tensor)]
    known = _functions()
    called = {name: known[name] for name in chain.from_iterable(map(_calls, kept)) if name in known}
    text = kernel_text([(p.name, p.type) for p in parameters], kept, called)
    return Kernel(text, tuple(p.argument for p in parameters), None, tuple(set(called.values())))


def kernel_text(parameters: Sequence[tuple[str, str]], lines: Sequence[str], functions: Mapping[str, str]) -> str:
    """The file of a kernel with these lines as its body, and imports of the functions they use: the module of each. A
    parameter is a name and its type as it is annotated."""
    body = "\n".join("    " + line if line else "" for line in lines)
    listed = "\n".join(f"    {name}: {kind}," for name, kind in parameters)
    imports = "\n".join(
        f"from {module} import {', '.join(sorted(name for name, m in functions.items() if m == module))}"
        for module in sorted(set(functions.values()))
    )
    return HEADER.format(imports=imports, name="layer", parameters=listed, body=body)
