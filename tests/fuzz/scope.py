"""What a generated program has defined so far: variables, memory, pointers, functions."""

from __future__ import annotations

from dataclasses import dataclass, field

from compassc.ir.dtypes import DataType

from .tree import Expr

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
    """Memory behind a name, `size` elements of `type`, all initialised.

    `raw`: it holds input bytes, nothing that arithmetic produced, so that NaN bits in it are known. `shared`: other TECs
    read it. `buffer`: it is indexed but no pointer, and has no address arithmetic.
    """

    name: str
    type: DataType
    size: int
    scope: str
    writable: bool
    raw: bool = False


@dataclass
class SubFunction:
    """A callable function: parameters in order are variables or regions."""

    name: str
    params: list[Variable | Region]
    returns: DataType | None
    width: int = 0
    defaults: int = 0


@dataclass
class Frame:
    variables: list[Variable] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)


class Scope:
    """Frames of one function, innermost last."""

    def __init__(self) -> None:
        self.frames = [Frame()]

    @property
    def variables(self) -> list[Variable]:
        return [v for frame in self.frames for v in frame.variables]

    @property
    def regions(self) -> list[Region]:
        return [r for frame in self.frames for r in frame.regions]

    def add(self, item: Variable | Region) -> None:
        own = self.frames[-1]
        (own.variables if isinstance(item, Variable) else own.regions).append(item)  # type: ignore[arg-type]
