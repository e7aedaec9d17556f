"""What has no text of its own: tensors, records, open types. A program refers to it by `meta[KEY][i]`; a section of JSON at
its end holds it."""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.reading import jsontext
from compass_core.reading.jsontext import Json
from compass_runtime.devices import Device
from compass_runtime.ndarray import NDArray
from compass_runtime.program import numpy_dtype
from compassc.ir import PrimFunc
from compassc.ir.errors import ExpressionError
from compassc.relay import declared
from compassc.relay.attributes import PREFIX, RECORDS, Attrs, DictAttrs
from compassc.relay.expr import Constant
from compassc.relay.types import IncompleteType, SizeVar, TypeKind
from compassc.targets import Target
from compassc.targets.virtual_device import VirtualDevice
from compassc.te.construct import size_var

SECTION = "#[metadata]"
CONSTANT, INCOMPLETE, SIZE_VAR, KERNEL, VALUE = (
    "relay.Constant",
    "IncompleteType",
    "tir.SizeVar",
    "tir.PrimFunc",
    "Value",
)
DEVICE = "VirtualDevice"
_CODE = "relay-metadata"


class Metadata:
    """The objects that the text of a program refers to, in the order of the references."""

    def __init__(self) -> None:
        self.entries: dict[str, list[object]] = {}
        self._known: dict[int, str] = {}

    def reference(self, value: object) -> str:
        """The text that stands for an object."""
        if id(value) not in self._known:
            kept = self.entries.setdefault(_key(value), [])
            self._known[id(value)] = f"meta[{_key(value)}][{len(kept)}]"
            kept.append(value)
        return self._known[id(value)]

    def section(self) -> str:
        """The section. ExpressionError for an object that no text can hold."""
        encoded = {key: [_encoded(v) for v in kept] for key, kept in self.entries.items()}
        return f"{SECTION}\n{json.dumps(encoded, indent=1)}"


def _key(value: object) -> str:
    if isinstance(value, Attrs):
        return value.record.key
    kinds = (
        (Constant, CONSTANT),
        (IncompleteType, INCOMPLETE),
        (SizeVar, SIZE_VAR),
        (PrimFunc, KERNEL),
        (VirtualDevice, DEVICE),
    )
    return next((key for kind, key in kinds if isinstance(value, kind)), VALUE)


def _encoded(value: object) -> Json:
    """An object as JSON: what JSON has not is a mapping of one key, which says what it is."""
    if value is None or isinstance(value, (bool, str, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, float):
        return {"float": str(value)}
    if isinstance(value, np.generic):
        return _encoded(value.item())
    if isinstance(value, (list, tuple)):
        return [_encoded(v) for v in value]
    if isinstance(value, Attrs):
        return {"attrs": value.record.key, "fields": {k: _encoded(v) for k, v in value.items()}}
    if isinstance(value, Mapping):
        return {"map": {str(k): _encoded(v) for k, v in value.items()}}
    if isinstance(value, (np.ndarray, NDArray)):
        return {"array": _array(np.asarray(value))}
    if isinstance(value, Constant):
        return {"constant": _array(value.array)}
    if isinstance(value, IncompleteType):
        return {"open": int(value.kind)}
    if isinstance(value, SizeVar):
        return {"size": value.name}
    if isinstance(value, PrimFunc):
        return value.script()
    if isinstance(value, VirtualDevice):
        device: list[Json] = [value.device_type_int, value.virtual_device_id]
        return {"device": device, "target": str(value.target or ""), "scope": value.memory_scope}
    raise ExpressionError(
        f"a {type(value).__name__} among the attributes has no text",
        "print with astext(show_meta_data=False), or keep the program as an object",
    )


def _array(array: Array) -> Json:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    data = base64.b64encode(little.tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": data}


def read(text: str, where: str) -> dict[str, list[object]]:
    """The objects of a section by key. CompassError for anything that `Metadata` does not write."""
    found = jsontext.parse(text, where, _CODE, "the metadata of a program")
    if not isinstance(found, dict) or not all(isinstance(kept, list) for kept in found.values()):
        raise _damaged(where, "it is no mapping of lists")
    return {key: [_decoded(v, where) for v in kept] for key, kept in found.items()}


def _damaged(where: str, why: str) -> CompassError:
    return CompassError(f"{where}: the metadata is damaged: {why}", code=_CODE, help="take it as astext() writes it")


def _decoded(value: object, where: str) -> object:
    if isinstance(value, list):
        return tuple([_decoded(v, where) for v in value])
    if not isinstance(value, dict):
        return value
    kind = next(iter(value), "")
    decode = _DECODERS.get(kind)
    if decode is None:
        raise _damaged(where, f"there is no object of kind '{kind}'")
    try:
        return decode(value, where)
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as error:
        raise _damaged(where, f"a value of kind '{kind}' does not hold ({error})") from None


def _tensor(given: Mapping[str, Any]) -> Array:
    dtype = numpy_dtype(given["dtype"]).newbyteorder("<")
    data = base64.b64decode(given["data"], validate=True)
    shape = tuple([int(d) for d in given["shape"]])
    if any(d < 0 for d in shape) or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"{len(data)} bytes are no {given['dtype']} tensor of shape {shape}")
    return np.frombuffer(data, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _attrs(value: Mapping[str, Any], where: str) -> Attrs:
    key = value["attrs"]
    declared.load()
    if not isinstance(key, str) or key not in RECORDS:
        raise ValueError(f"there is no record {key}, of those named {PREFIX}...")
    return RECORDS[key](**{k: _decoded(v, where) for k, v in value["fields"].items()})


def _device(value: Mapping[str, Any], where: str) -> VirtualDevice:
    code, number = map(int, value["device"])
    target = Target(str(value["target"])) if value["target"] else None
    return VirtualDevice(Device(code, number) if number >= 0 else None, target, str(value["scope"]))


_DECODERS: Mapping[str, Callable[[Mapping[str, Any], str], object]] = {
    "float": lambda value, _: float(value["float"]),
    "attrs": _attrs,
    "map": lambda value, where: DictAttrs({k: _decoded(v, where) for k, v in value["map"].items()}),
    "array": lambda value, _: NDArray(_tensor(value["array"])),
    "constant": lambda value, _: Constant(NDArray(_tensor(value["constant"]))),
    "open": lambda value, _: IncompleteType(TypeKind(value["open"])),
    "device": _device,
    "size": lambda value, _: size_var(str(value["size"])),
}
