"""What a generated program has defined so far: variables, memory, pointers, functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from compassc.ir.dtypes import DataType

from .tree import Expr

IN_SIZE, OUT_SIZE, TECS = 256, 128, 4
"""Elements of an input, of a TEC's part of an output, and the TECs."""
SHORT = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
SHORT.update({f"{full}{bits}": f"{full[0]}{bits}" for full in ("int", "uint") for bits in (8, 16, 32)})


def short(t: DataType) -> str:
    """The name of a type in `S`."""
    if t.is_bool:
        return str(t)
    elem = SHORT[t.element_of]
    return elem if t.is_scalar else f"{elem}x{t.lanes}"


@dataclass
class Variable:
    """`fixed`: the generator does not assign to it (parameters that count loops)."""

    name: str
    type: DataType
    width: int = 0
    fixed: bool = False

    def expr(self) -> Expr:
        return Expr(self.name, [], self.type, self.width)


@dataclass
class Region:
    """Memory behind a pointer, `size` elements of `type`, all initialised.

    `name` may also be an expression that gives the pointer, as long as the region is in no scope. `raw`: it holds input
    bytes, nothing that arithmetic produced, so that NaN bits in it are known. `buffer`: it is indexed but no pointer,
    and has no address arithmetic. `root`: pointers of one root point into the same memory. `movable`: the pointer is a
    variable that may be set to another address.
    """

    name: str
    type: DataType
    size: int
    scope: str
    writable: bool
    raw: bool = False
    buffer: bool = False
    root: str = ""
    movable: bool = False

    def __post_init__(self) -> None:
        self.root = self.root or self.name


@dataclass
class Matrix:
    """A buffer of several dimensions. `row`: the only first index it may have, if it is not empty."""

    name: str
    type: DataType
    shape: tuple[int, ...]
    writable: bool
    row: str = ""


@dataclass
class Constant:
    """A name for an integer that is known when the kernel is compiled."""

    name: str
    value: int


@dataclass
class SubFunction:
    """A callable function: parameters in order are variables or regions, the last `defaults` of them can be left out.
    `gives`: what is behind the pointer it returns, at least."""

    name: str
    params: list[Variable | Region]
    returns: DataType | None
    width: int = 0
    defaults: int = 0
    gives: Region | None = None


Named = Variable | Region | Matrix | Constant


@dataclass
class Frame:
    variables: list[Variable] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    matrices: list[Matrix] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)

    def add(self, item: Named) -> None:
        kinds = {Variable: self.variables, Region: self.regions, Matrix: self.matrices, Constant: self.constants}
        kinds[type(item)].append(item)  # type: ignore[attr-defined]

    def names(self) -> list[str]:
        return [item.name for item in (*self.variables, *self.regions, *self.matrices, *self.constants)]


class Scope:
    """Frames of one function, innermost last. `retired`: names whose frames are left."""

    def __init__(self) -> None:
        self.frames = [Frame()]
        self.retired: list[str] = []

    def push(self) -> None:
        self.frames.append(Frame())

    def pop(self) -> None:
        self.retired += self.frames.pop().names()

    @property
    def variables(self) -> list[Variable]:
        return [v for frame in self.frames for v in frame.variables]

    @property
    def regions(self) -> list[Region]:
        return [r for frame in self.frames for r in frame.regions]

    @property
    def matrices(self) -> list[Matrix]:
        return [m for frame in self.frames for m in frame.matrices]

    @property
    def constants(self) -> list[Constant]:
        return [c for frame in self.frames for c in frame.constants]

    def names(self) -> list[str]:
        return [name for frame in self.frames for name in frame.names()]

    def add(self, item: Named) -> None:
        self.frames[-1].add(item)

    def frame_of(self, item: Named) -> int:
        """The number of the frame a variable or region is defined in."""
        return next(
            i for i, frame in enumerate(self.frames) if any(r is item for r in (*frame.variables, *frame.regions))
        )
