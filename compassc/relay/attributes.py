"""Attributes of calls: records of declared fields, by the type keys that texts name (`relay.attrs.Conv2DAttrs`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from compass_core.dataclass import dataclass
from compass_core.errors.suggest import help_for
from compassc.ir.errors import ExpressionError
from compassc.ir.exprs import FloatImm, IntImm
from compassc.relay.types import element_type

PREFIX = "relay.attrs."
PARAM_DEVICES, RESULT_DEVICE = "param_virtual_devices", "result_virtual_device"
"""Attributes of functions: the devices of parameters and of the result."""
NOTED_DEVICE = "virtual_device"
"""By what the device of a parameter, or of the result of a function, is written."""
REQUIRED = ...
"""The default of a field that must be given."""


class AttributeError_(ExpressionError, AttributeError):
    """A field that a record does not have, or one that is missing."""


@dataclass(frozen=True)
class Record:
    """A kind of attributes: its type key and its fields, in the order they are printed in, with their defaults."""

    key: str
    fields: Mapping[str, object]

    def __call__(self, **values: object) -> Attrs:
        """A record with these values and defaults. AttributeError_ for unknown fields and missing ones."""
        for name in values:
            if name not in self.fields:
                raise AttributeError_(
                    f"{self.key} has no field '{name}'", help_for(name, list(self.fields), "fields") or "remove it"
                )
        made = {name: _kept(name, values.get(name, default)) for name, default in self.fields.items()}
        missing = [name for name, value in made.items() if value is REQUIRED]
        if missing:
            raise AttributeError_(f"{self.key} needs a value for '{missing[0]}'", f"give {missing[0]}=...")
        return Attrs(self, made)


RECORDS: dict[str, Record] = {}
"""Every record by its type key."""


def record(name: str, **fields: object) -> Record:
    """Declare `relay.attrs.NAME`."""
    key = PREFIX + name
    assert key not in RECORDS, f"{key} is declared twice"
    made = RECORDS[key] = Record(key, fields)
    return made


TYPES_OF_ELEMENTS = ("dtype", "out_dtype")
"""Fields that name a type of elements; "" for none."""


def _kept(name: str, value: object) -> object:
    """A value as records keep it: sequences as tuples, whole numbers of NumPy and of expressions as Python's."""
    if name in TYPES_OF_ELEMENTS and value is not REQUIRED:
        return element_type(value) if value else ""
    if isinstance(value, (list, tuple)):
        return tuple([_kept("", v) for v in value])
    if isinstance(value, (IntImm, FloatImm)):
        return value.value
    if isinstance(value, (np.generic, np.ndarray)) and not value.shape:
        return value.item()
    return value


class Attrs(Mapping[str, Any]):
    """The attributes of a call: `attrs.strides`, `attrs["strides"]`, a mapping from names to values."""

    __slots__ = ("_values", "record")

    def __init__(self, kind: Record, values: dict[str, object]) -> None:
        self.record, self._values = kind, values

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._values:
            known = list(self._values) if not name.startswith("_") else []
            raise AttributeError_(f"{self.record.key} has no field '{name}'", help_for(name, known, "fields"))
        return self._values[name]

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash((self.record.key, *self._values.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attrs) and self.record is other.record and self._values == other._values

    def __repr__(self) -> str:
        return f"{self.record.key}({', '.join(f'{k}={v!r}' for k, v in self._values.items())})"

    def get_int(self, name: str) -> int:
        """A field that is a whole number."""
        return int(getattr(self, name))

    def get_str(self, name: str) -> str:
        """A field that is text."""
        return str(getattr(self, name))

    def get_int_tuple(self, name: str) -> tuple[int, ...]:
        """A field of whole numbers."""
        return tuple(int(v) for v in getattr(self, name))

    def changed(self, **values: object) -> Attrs:
        """The record with other values in some fields."""
        return self.record(**{**self._values, **values})


class DictAttrs(Mapping[str, Any]):
    """The attributes of a function or a module: any names."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, object] | None = None) -> None:
        self._values = {name: _kept("", value) for name, value in (values or {}).items()}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self._values == dict(other)

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __repr__(self) -> str:
        return f"DictAttrs({self._values!r})"
