"""The content of all AIFF registers for one start: control words, and arrays for operands passed by address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from compass_core.aiff.registers import CONTROL, AiffError, Generation, Register, Unit
from compass_core.errors.suggest import help_for

WORD = 0xFFFFFFFF


def _checked_array(where: str, value: object) -> Any:
    """0, or a NumPy array whose address can be passed."""
    if isinstance(value, (int, np.integer)) and value == 0:
        return 0
    if not isinstance(value, np.ndarray) or value.size == 0:
        given = "an empty one" if isinstance(value, np.ndarray) else type(value).__name__
        raise AiffError(f"{where} takes 0 or a non-empty NumPy array, not {given}", code="aiff-value")
    base = value.base
    if not value.flags.c_contiguous and (not isinstance(base, np.ndarray) or value.strides != base.strides):
        raise AiffError(
            f"{where}: the array is transposed or has gaps", code="aiff-value", help="use numpy.ascontiguousarray"
        )
    return value


def _checked_bits(where: str, value: object, most: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or not 0 <= value <= most:
        raise AiffError(f"{where} is {value!r}; valid: integers from 0 to {most}", code="aiff-value")
    return int(value)


class RegisterView:
    """One register of a configuration; its fields are attributes, `all_fields` is the whole word."""

    _values: dict[int, Any]
    _register: Register
    _address: int
    _where: str

    def __init__(self, values: Mapping[int, object], register: Register, address: int, where: str) -> None:
        for name, value in (("_values", values), ("_register", register), ("_address", address), ("_where", where)):
            object.__setattr__(self, name, value)

    @property
    def address(self) -> int:
        return self._address

    @property
    def all_fields(self) -> int:
        word: int = self._values.get(self._address, self._register.default)
        return word

    def _field(self, name: str) -> Any:
        found = self._register.by_name.get(name)
        if found is None:
            known = ", ".join(self._register.by_name) or "none"
            raise AiffError(f"{self._where} has no field '{name}'", code="aiff-field", help=f"its fields: {known}")
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        field = self._field(name)
        if self._register.kind != CONTROL:
            return self.all_fields
        return self.all_fields >> field.low & field.most

    def __setattr__(self, name: str, value: object) -> None:
        if name == "all_fields":
            self.assign(value)
            return
        field = self._field(name)
        if self._register.kind != CONTROL:
            self.assign(value)
            return
        bits = _checked_bits(f"{self._where}.{name}[{field.high}:{field.low}]", value, field.most)
        self._values[self._address] = self.all_fields & ~field.mask | bits << field.low

    def assign(self, value: object) -> None:
        """Sets the whole register: a word, of which bits outside the fields are dropped, or an array."""
        if self._register.kind != CONTROL:
            self._values[self._address] = _checked_array(self._where, value)
        else:
            self._values[self._address] = _checked_bits(self._where, value, WORD) & self._register.mask

    def __dir__(self) -> list[str]:
        return ["address", "all_fields", "assign", *self._register.by_name]


class UnitView:
    """A unit, or one of its sub-units, of a configuration: registers are attributes, sub-units are indexed."""

    _values: Mapping[int, object]
    _unit: Unit
    _sub: int | None
    _where: str

    def __init__(self, values: Mapping[int, object], unit: Unit, sub: int | None = None) -> None:
        where = unit.name if sub is None else f"{unit.name}[{sub}]"
        for name, value in (("_values", values), ("_unit", unit), ("_sub", sub), ("_where", where)):
            object.__setattr__(self, name, value)

    @property
    def _registers(self) -> dict[str, Register]:
        return self._unit.shared if self._sub is None else self._unit.repeated

    def _view(self, register: Register) -> RegisterView:
        address = register.address + (self._sub or 0) * self._unit.stride
        return RegisterView(self._values, register, address, f"{self._where}.{register.name}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._registers:
            raise AiffError(
                f"{self._where} has no register '{name}'",
                code="aiff-register",
                help=help_for(name, list(self._registers), "registers"),
            )
        return self._view(self._registers[name])

    def __setattr__(self, name: str, value: object) -> None:
        getattr(self, name).assign(value)

    def __getitem__(self, index: int) -> UnitView:
        if self._sub is not None or not 0 <= index < self._unit.count:
            raise AiffError(
                f"{self._where} has no sub-unit {index}: it has {self._unit.count if self._sub is None else 0}",
                code="aiff-register",
            )
        return UnitView(self._values, self._unit, index)

    def __len__(self) -> int:
        return self._unit.count if self._sub is None else 0

    def views(self) -> Iterator[RegisterView]:
        """All registers of this unit without its sub-units, or of this sub-unit, by address."""
        yield from sorted((self._view(r) for r in self._registers.values()), key=lambda view: view.address)

    def get_register(self, address: int) -> RegisterView:
        """The register at an address, sub-units included."""
        parts = [self, *(self[k] for k in range(len(self)))]
        for view in (view for part in parts for view in part.views()):
            if view.address == address:
                return view
        raise AiffError(f"{self._where} has no register at {address:#x}", code="aiff-register")

    def __dir__(self) -> list[str]:
        return ["get_register", "views", *self._registers]


class RegisterConfig:
    """All registers of one start of the AIFF; the units (`mtp`, `itp`, ...) are attributes."""

    def __init__(self, generation: Generation, values: dict[int, object] | None = None) -> None:
        self.generation = generation
        self.values: dict[int, Any] = {} if values is None else values

    def copy(self) -> RegisterConfig:
        """An independent copy; arrays are shared."""
        return RegisterConfig(self.generation, dict(self.values))

    def __deepcopy__(self, memo: object) -> RegisterConfig:
        return self.copy()

    def __getattr__(self, name: str) -> UnitView:
        if name.startswith("_") or name in ("generation", "values"):
            raise AttributeError(name)
        if name not in self.generation.units:
            raise AiffError(
                f"the AIFF of {self.generation.name} has no unit '{name}'",
                code="aiff-unit",
                help="its units: " + ", ".join(self.generation.units),
            )
        return UnitView(self.values, self.generation.units[name])

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and name not in ("generation", "values"):
            getattr(self, name)  # an error that names the units, where there is none
            raise AiffError(f"{name} is a unit, which has no value", code="aiff-value", help="set one of its registers")
        super().__setattr__(name, value)
