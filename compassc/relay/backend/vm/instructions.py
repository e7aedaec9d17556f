"""The instructions of the virtual machine, as data: each field says what it is a number of, which prints and checks them all.

Registers are numbered per function; its parameters are the first ones.
"""

from __future__ import annotations

from dataclasses import field, fields
from enum import Enum
from typing import Any, ClassVar

from compass_core.dataclass import dataclass


class Kind(Enum):
    """What a field of an instruction is a number of; the value is how the text writes it."""

    REGISTER = "${}"
    FUNCTION = "VMFunc[{}]"
    PRIMITIVE = "PackedFunc[{}]"
    CONSTANT = "Const[{}]"
    CONSTRUCTOR = "Constructor[{}]"
    PLACE = "{}"
    NUMBER = "[{}]"


def _of(kind: Kind) -> Any:
    return field(metadata={"kind": kind})


@dataclass(frozen=True)
class Instruction:
    """Base of the instructions. `NAME` begins its text, `dst` is the register of what it gives."""

    NAME: ClassVar[str] = ""

    def operands(self) -> list[tuple[str, Kind, tuple[int, ...]]]:
        """Of each field its name, what it numbers, and its numbers."""
        found = [(f.name, f.metadata["kind"], getattr(self, f.name)) for f in fields(self)]
        return [(name, kind, value if isinstance(value, tuple) else (value,)) for name, kind, value in found]

    def __str__(self) -> str:
        shown = ((name, ", ".join([kind.value.format(n) for n in numbers])) for name, kind, numbers in self.operands())
        words = [f"{name}: {text or '-'}" if name in ("args", "dst") else text or "-" for name, text in shown]
        return f"{self.NAME} {' '.join(words)}"


@dataclass(frozen=True)
class Move(Instruction):
    """The same value in another register."""

    NAME = "move"
    source: int = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class Ret(Instruction):
    """Leave the function with a value."""

    NAME = "ret"
    result: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class Invoke(Instruction):
    """Call a function. Where `Ret` of the result follows, the caller's registers are given up."""

    NAME = "invoke"
    function: int = _of(Kind.FUNCTION)
    args: tuple[int, ...] = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class InvokeClosure(Instruction):
    """Call a function that is a value, with the values that it keeps before the arguments."""

    NAME = "invoke_closure"
    closure: int = _of(Kind.REGISTER)
    args: tuple[int, ...] = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class InvokePacked(Instruction):
    """Compute a primitive of tensors and tuples of them."""

    NAME = "invoke_packed"
    primitive: int = _of(Kind.PRIMITIVE)
    args: tuple[int, ...] = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class ReshapeTensor(Instruction):
    """The tensor of a register with another shape, that of a primitive which only changes shapes: the memory is the same."""

    NAME = "reshape_tensor"
    primitive: int = _of(Kind.PRIMITIVE)
    args: tuple[int, ...] = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class AllocTuple(Instruction):
    """A tuple of values."""

    NAME = "alloc_tuple"
    args: tuple[int, ...] = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class AllocADT(Instruction):
    """A value of a data type."""

    NAME = "alloc_data"
    constructor: int = _of(Kind.CONSTRUCTOR)
    args: tuple[int, ...] = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class AllocClosure(Instruction):
    """A function as a value, with the values of its first parameters."""

    NAME = "alloc_closure"
    function: int = _of(Kind.FUNCTION)
    args: tuple[int, ...] = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class GetField(Instruction):
    """A field of a tuple or a value of a data type."""

    NAME = "get_field"
    object: int = _of(Kind.REGISTER)
    index: int = _of(Kind.NUMBER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class If(Instruction):
    """Go on at another place unless a scalar is true."""

    NAME = "if"
    test: int = _of(Kind.REGISTER)
    otherwise: int = _of(Kind.PLACE)


@dataclass(frozen=True)
class IfTag(Instruction):
    """Go on at another place unless a constructor made a value."""

    NAME = "if_tag"
    object: int = _of(Kind.REGISTER)
    constructor: int = _of(Kind.CONSTRUCTOR)
    otherwise: int = _of(Kind.PLACE)


@dataclass(frozen=True)
class Goto(Instruction):
    """Go on at another place."""

    NAME = "goto"
    place: int = _of(Kind.PLACE)


@dataclass(frozen=True)
class LoadConst(Instruction):
    """A constant."""

    NAME = "load_const"
    constant: int = _of(Kind.CONSTANT)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class AllocRef(Instruction):
    """A reference to a value."""

    NAME = "alloc_ref"
    value: int = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class ReadRef(Instruction):
    """The value that a reference has now."""

    NAME = "read_ref"
    ref: int = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class WriteRef(Instruction):
    """Give a reference another value; the result is the empty tuple."""

    NAME = "write_ref"
    ref: int = _of(Kind.REGISTER)
    value: int = _of(Kind.REGISTER)
    dst: int = _of(Kind.REGISTER)


@dataclass(frozen=True)
class Fatal(Instruction):
    """Stop: no clause takes a value."""

    NAME = "fatal"
    object: int = _of(Kind.REGISTER)
