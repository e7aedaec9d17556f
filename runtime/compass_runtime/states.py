"""States of a program: outputs of a run that are inputs of the next one. A file's note names them (`GraphNote.states`); no
driver knows of them, so that hosts keep them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import files
from compass_core.arrays import Array
from compass_core.errors import CompassError, UsageError
from compass_core.files import claims
from compass_core.reading import arrays

if TYPE_CHECKING:
    from compass_runtime.program import Program, TensorInfo


class States:
    """What runs of a program keep for the next one, by the names of inputs, as elements of these."""

    def __init__(self, program: Program, reset_every: int | None = None) -> None:
        """`reset_every`: so many samples follow each other (`turn`)."""
        self._every = reset_every
        inputs = {info.name: info for info in program.inputs}
        outputs = {info.name: info for info in program.outputs}
        self._shapes = {info.name: info.shape or () for info in program.inputs}
        self._ends = {s.input: (inputs[s.input], outputs[s.output], s.initial) for s in program.states}
        self.kept: dict[str, Array] = {}
        self.reset()

    @classmethod
    def begun(cls, program: Program, file: Path | None, reset_every: int | None) -> States:
        """The states of a program, with the content of a file, where there is one. UsageError where the program has none, but
        somebody asks for some."""
        if not program.states and (file is not None or reset_every is not None):
            raise UsageError(
                f"{'--state-file' if file is not None else '--reset-every'}: the program keeps nothing from run to run",
                code="usage",
                help="compassc build MODEL --state OUTPUT=INPUT names what is kept",
            )
        states = cls(program, reset_every)
        if file is not None:
            claims.writes(file, "--state-file")
            if file.exists():
                states.set({name: arrays.load(file, name) for name in arrays.names_in(file)})
        return states

    def save(self, file: Path | None) -> None:
        """Writes the states to a file that `begun` reads."""
        if file is not None:
            with io.BytesIO() as content:
                arrays.write_archive(content, self.kept)
                files.write(file, content.getvalue())

    def turn(self, number: int) -> None:
        """Begins anew where the sample `number` is the first of those that follow each other."""
        if self._every is not None and number and number % self._every == 0:
            self.reset()

    def begin(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Begins with the states among arrays, where these are one sample and the others several; gives the rest."""
        found = self.beginning(given)
        self.set(found)
        return {name: array for name, array in given.items() if name not in found}

    def beginning(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """The states among arrays that are one sample, where the others are several."""
        several = any(array.shape != self._shapes.get(name) for name, array in given.items() if name not in self._ends)
        own = {name: array for name, array in given.items() if name in self._ends}
        return {name: array for name, array in own.items() if several and array.shape == self._shapes[name]}

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs that are states."""
        return tuple(self._ends)

    def reset(self) -> None:
        """Begins anew: the next run is the first one."""
        import numpy as np

        for name, (info, _, initial) in self._ends.items():
            self.kept[name] = _elements(info, np.full(info.shape or (), initial, np.float32))

    def set(self, given: Mapping[str, Array]) -> None:
        """Gives states other content, as elements. CompassError for names of no state, and arrays that do not fit."""
        for name, array in given.items():
            if name not in self._ends:
                raise CompassError(
                    f"the program has no state '{name}'",
                    code="state",
                    help=f"its states: {', '.join(self.names) or 'none'}",
                )
            info = self._ends[name][0]
            self.kept[name] = info.checked(array, self.kept[name].nbytes).reshape(info.shape or ()).copy()

    def completed(self, given: Mapping[str, Array]) -> dict[str, Array]:
        """Inputs of a run with the states that are not among them."""
        return {**self.kept, **given}

    def keep(self, results: Mapping[str, Array]) -> None:
        """Keeps the outputs of a run for the next one: elements as they are, where both ends stand for the same numbers,
        else those of the input that stand for the nearest."""
        for name, (into, out, _) in self._ends.items():
            array = results[out.name]
            same = into.dtype == out.dtype and into.quantisation == out.quantisation
            self.kept[name] = array.copy() if same else _elements(into, out.quantisation.real(array))


def _elements(info: TensorInfo, numbers: Array) -> Array:
    """The elements of a tensor that stand for real numbers."""
    if info.numpy_dtype.kind in "iu":
        return info.quantisation.integers(numbers, info.numpy_dtype)
    return numbers.astype(info.numpy_dtype)
