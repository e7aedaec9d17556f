"""Descriptors of the AIFF, the fixed-function unit that `S.aiff` starts.

    aiff = Aiff("X2_1204")
    aiff.mtp[0].ctrl.op_mode = 1
    aiff.wrb.region0_oact_addr = out
    chains = aiff.gen_descriptor()

`print(aiff)` shows what is set as a table. docs/aiff.md says what the model of the unit runs, and what it refuses.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from compass_core import files
from compass_core.aiff.registers import AiffError, generation
from compass_core.arrays import Array
from compass_core.errors import CompassError

from ...settings.options import canonical_target
from .chain import ACTIVATION_CHAIN, CONTROL_CHAIN, PARAMETER_CHAIN, DescChain, DescChainArray
from .config import RegisterConfig, UnitView
from .encode import compress, read_control
from .report import text

__all__ = ["Aiff", "AiffError", "DescChain", "DescChainArray", "RegisterConfig"]


class Aiff:
    """The register configurations of consecutive AIFF starts, `reg_cfgs`; units as attributes are those of the last.

    `descriptor`: a control chain to start from, as words or as the name of a file of them; without it there is one
    default configuration.
    """

    def __init__(self, target: str | None = None, descriptor: str | Array | None = None) -> None:
        self._generation = generation(canonical_target(target))
        if descriptor is None:
            self.reg_cfgs = [RegisterConfig(self._generation)]
        else:
            self.reg_cfgs = read_control(_words(descriptor), self._generation)

    def add_new_register_config(self, idx: int | None = None, copy_idx: int | None = None) -> None:
        """Inserts a configuration at `idx` (default: at the end): a default one, or a copy of number `copy_idx`."""
        count = len(self.reg_cfgs)
        for name, index, end in (("idx", idx, count + 1), ("copy_idx", copy_idx, count)):
            if index is not None and not 0 <= index < end:
                raise AiffError(f"{name} is {index}; valid: 0 to {end - 1}", code="aiff-index")
        new = RegisterConfig(self._generation) if copy_idx is None else self.reg_cfgs[copy_idx].copy()
        self.reg_cfgs.insert(count if idx is None else idx, new)

    def gen_descriptor(self) -> DescChainArray:
        """The chains: control, parameter, activation. Equal control descriptors in a row become one."""
        kinds = (CONTROL_CHAIN, PARAMETER_CHAIN, ACTIVATION_CHAIN)
        chains = zip(kinds, compress(self.reg_cfgs), strict=True)
        return DescChainArray(DescChain(kind, self._generation.name, words) for kind, words in chains)

    def __str__(self) -> str:
        return text(self.reg_cfgs)

    def __getattr__(self, name: str) -> UnitView:
        if name.startswith("_") or name == "reg_cfgs":
            raise AttributeError(name)
        unit: UnitView = getattr(self.reg_cfgs[-1], name)
        return unit

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") or name == "reg_cfgs":
            super().__setattr__(name, value)
        else:
            setattr(self.reg_cfgs[-1], name, value)


def _words(descriptor: str | Array) -> list[int]:
    if isinstance(descriptor, (str, Path)):
        try:
            data = files.read(Path(descriptor))
        except CompassError as error:
            raise AiffError(error.message, code="aiff-descriptor") from None
        if len(data) % 4:
            raise AiffError(f"'{descriptor}' has {len(data)} bytes: no whole number of words", code="aiff-descriptor")
        words: list[int] = np.frombuffer(data, np.uint32).tolist()
        return words
    if not isinstance(descriptor, np.ndarray) or descriptor.dtype != np.uint32:
        raise AiffError("a descriptor is a file name or an array of uint32", code="aiff-descriptor")
    return descriptor.reshape(-1).tolist()
