"""Executables as bytes: what `save` writes and `load` reads. Kernels are in a module of their own.

The bytes are a hash, fields in JSON (functions, primitives, constructors) and constants as a file of parameters; what was damaged is
refused, as is an instruction that numbers something that there is not, with its function and place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from compass_core.errors import CompassError, UsageError
from compass_core.reading.jsontext import Json
from compass_runtime.module import Module, sealed, unsealed
from compass_runtime.ndarray import NDArray
from compass_runtime.param_dict import load_param_dict, save_param_dict
from compassc.relay.backend.vm import instructions as vm
from compassc.relay.backend.vm.primitives import Kernel, Primitive, Reference, Reshape
from compassc.relay.expr import Constructor, Function, Var
from compassc.relay.module import MAIN, IRModule
from compassc.relay.parser import parse_expr
from compassc.relay.passes import infer_type
from compassc.relay.types import GlobalTypeVar, IncompleteType, Open, TensorType, TupleType, Type

if TYPE_CHECKING:
    from compassc.relay.backend.vm.executable import VMFunction

FORMAT = "compass.vm.1"

_CLASSES = {c.NAME: c for c in vm.Instruction.__subclasses__()}


def refused(why: str) -> UsageError:
    """The error for bytes that are no executable."""
    return UsageError(f"this is no executable of the virtual machine: {why}", code="relay-vm", help="save it again")


# ------------------------------------------------------------------------------------------------------------------- types


def _type(t: Type | None) -> Json:
    if isinstance(t, TensorType):
        return {"shape": [d if isinstance(d, int) else "?" for d in t.shape], "dtype": t.dtype}
    return [_type(f) for f in t.fields] if isinstance(t, TupleType) else None


def _as_type(given: object) -> Type | None:
    if given is None:
        return None
    if isinstance(given, list):
        return TupleType([_as_type(f) or IncompleteType() for f in given])
    if not isinstance(given, dict):
        raise refused(f"{given!r:.40} is no type")
    return TensorType([Open() if d == "?" else _count(d) for d in given["shape"]], str(given["dtype"]))


def _count(given: object, most: int = 1 << 62) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= most:
        raise refused(f"{given!r:.40} is no number of something")
    return given


# ------------------------------------------------------------------------------------------------------------------ writing


def save(
    functions: Sequence[VMFunction],
    constants: Mapping[int, NDArray],
    primitives: Sequence[Primitive],
    constructors: Sequence[Constructor],
) -> bytes:
    """The bytes of an executable but its kernels. `constants`: those that are in it, by their numbers."""
    described = {
        "format": FORMAT,
        "functions": [
            {
                "name": f.name,
                "params": [[p.name_hint, _type(p.type_annotation or p.checked_type_)] for p in f.params],
                "registers": f.registers,
                "code": [[i.NAME, *[getattr(i, field.name) for field in fields(i)]] for i in f.code],
            }
            for f in functions
        ],
        "primitives": [_primitive(p) for p in primitives],
        "constructors": [[c.name_hint, c.belong_to.name_hint, c.tag, len(c.inputs)] for c in constructors],
    }
    return sealed(described, bytes(save_param_dict({str(n): c for n, c in constants.items()})))


def _primitive(p: Primitive) -> Json:
    if isinstance(p, Reference):
        return {"kind": "reference", "name": p.name, "why": p.why, "function": p.function.astext()}
    kind = "kernel" if isinstance(p, Kernel) else "view"
    return {"kind": kind, "name": p.name, "result": _type(p.result)}


# ------------------------------------------------------------------------------------------------------------------ reading


def load(
    code: bytes,
    lib: Module | None,
    function: Callable[[str, tuple[Var, ...], int, tuple[vm.Instruction, ...]], VMFunction],
) -> tuple[list[VMFunction], dict[int, NDArray], list[Primitive], list[Constructor]]:
    """Functions, constants by number, primitives and constructors of what `save` wrote. `function` makes a function of its name,
    parameters, registers and code. UsageError for other bytes, and where `lib` has no kernel of a name."""
    try:
        described, content = unsealed(bytes(code), "an executable")
        if described.get("format") != FORMAT:
            raise refused(f"its format is {described.get('format')!r:.40}, not {FORMAT!r}")
        functions = [
            function(
                str(f["name"]),
                tuple([_param(p) for p in f["params"]]),
                _count(f["registers"], len(code)),
                _code(str(f["name"]), f["code"]),
            )
            for f in described["functions"]
        ]
        primitives = [_as_primitive(p, lib) for p in described["primitives"]]
        constructors = [_constructor(*c) for c in described["constructors"]]
        constants = {int(name): array for name, array in load_param_dict(content).items()}
    except UsageError:
        raise
    except (CompassError, ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise refused(str(error)) from None
    return functions, constants, primitives, constructors


def _param(given: Sequence[object]) -> Var:
    name, t = given
    return Var(str(name), _as_type(t))


def _code(name: str, given: Sequence[Sequence[object]]) -> tuple[vm.Instruction, ...]:
    return tuple([_instruction(f"@{name}, instruction {place}", *i) for place, i in enumerate(given)])


def _instruction(where: str, name: object = "", *values: object) -> vm.Instruction:
    if not isinstance(name, str) or name not in _CLASSES:
        raise refused(f"{where}: there is no instruction {name!r:.40}")
    wanted = fields(_CLASSES[name])
    if len(values) != len(wanted):
        raise refused(f"{where}: {name} of {len(values)} operands")
    made = []
    for field, value in zip(wanted, values):
        several = "tuple" in str(field.type)
        numbers = value if several else [value]
        if not isinstance(numbers, list) or any(
            not isinstance(n, int) or isinstance(n, bool) or n < 0 for n in numbers
        ):
            raise refused(f"{where}: {field.name} of {name} is {value!r:.40}")
        made.append(tuple(numbers) if several else value)
    return _CLASSES[name](*made)


def _as_primitive(given: Mapping[str, Any], lib: Module | None) -> Primitive:
    name = str(given["name"])
    if given["kind"] == "reference":
        f = parse_expr(given["function"])
        typed = infer_type.run(IRModule.from_expr(f))[MAIN]
        assert isinstance(typed, Function), "a function stays one"
        return Reference(name, typed, str(given["why"]))
    result = _as_type(given["result"])
    if result is None:
        raise refused(f"the primitive {name} has no type")
    if given["kind"] == "view":
        return Reshape(name, result)
    if given["kind"] != "kernel":
        raise refused(f"there are no primitives of kind {given['kind']!r:.40}")
    if lib is None or not lib.implements_function(name, True):
        raise UsageError(
            f"the library has no kernel {name}",
            code="relay-vm",
            help="give the library that `save` gave with this code",
        )
    return Kernel(name, result, lib.get_function(name, True), lib)


def _constructor(name: object, of: object, tag: object, inputs: object) -> Constructor:
    made = Constructor(str(name), [IncompleteType()] * _count(inputs), GlobalTypeVar(str(of)))
    made.tag_with(_count(tag))
    return made
