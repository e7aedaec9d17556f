"""Integer addresses of pointers in a PySim run, for S.reinterpret: elements that lie n bytes apart in memory have
numbers that are n apart. Every array that a number was asked for gets a place in an address space of 32 bits."""

from __future__ import annotations

import threading

from compass_core.arrays import Array, base_of
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compassc.ir.dtypes import DataType

from .memory import PyPointer, Storage

_FIRST = 0x10000
_ALIGNMENT = 0x1000
_GAP = 0x10000


@dataclass
class _Place:
    """An array of the host: where it lies there and in the run's address space. Holding it keeps its memory."""

    owner: Array
    host: int
    size: int
    device: int
    storages: list[Storage]


class Addresses:
    """The places of one run; all TECs share them."""

    def __init__(self) -> None:
        self._places: list[_Place] = []
        self._lock = threading.Lock()

    def number(self, pointer: PyPointer) -> int:
        """The number of a pointer; 0 of a null pointer."""
        storage = pointer.storage
        if storage is None:
            return 0
        place = self._place(storage)
        return (place.device + storage.data.ctypes.data - place.host + pointer.offset) & 0xFFFFFFFF

    def pointer(self, number: int, dtype: DataType, scope: str) -> PyPointer:
        """The pointer for an address number. CompassError if the number is outside of all memory that was given numbers."""
        number &= 0xFFFFFFFF
        if number == 0:
            return PyPointer(None, 0, dtype, scope)
        for place in self._places:
            if place.device <= number <= place.device + place.size:
                host = place.host + number - place.device
                for storage in place.storages:
                    offset = host - storage.data.ctypes.data
                    if 0 <= offset <= storage.data.size:
                        return PyPointer(storage, offset, dtype, scope)
        raise CompassError(
            f"{number:#x} is no address of memory that this run knows",
            code="pointer",
            help="make numbers of pointers with S.reinterpret(p, 'uint32') and calculate with these",
        )

    def _place(self, storage: Storage) -> _Place:
        owner = base_of(storage.data)
        host = owner.ctypes.data
        with self._lock:
            place = next((p for p in self._places if p.owner is owner), None)
            if place is None:
                end = self._places[-1].device + self._places[-1].size + _GAP if self._places else _FIRST
                device = -(-end // _ALIGNMENT) * _ALIGNMENT
                if device + owner.nbytes >= 1 << 32:
                    raise CompassError("the memory of this run has more than 32 bits of addresses", code="pointer")
                place = _Place(owner, host, owner.nbytes, device, [])
                self._places.append(place)
            if not any(s is storage for s in place.storages):
                place.storages.append(storage)
            return place
