"""Running an example in the three ways a kernel can be run, and comparing the results."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from case import Array, Case

from compassc.dsl import BuildManager, Executor, load_kernels

FOLDER = Path(__file__).resolve().parent
TARGET = "X2_1204"
COMPASSC = [sys.executable, "-m", "compassc"]
COMPASS_RUN = [sys.executable, "-c", "import sys; from compass_runtime.cli import main; sys.exit(main())"]
Outputs = dict[str, Array]


class Mismatch(Exception):
    """An example's result is not what it should be; the message says where."""


def names() -> list[str]:
    """All examples."""
    return sorted(p.parent.name for p in FOLDER.glob("*/kernel.py"))


class Example:
    """One folder below `examples/`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kernel_file = FOLDER / name / "kernel.py"
        if not self.kernel_file.is_file():
            raise SystemExit(f"no example {name!r}; there are: {', '.join(names())}")
        self.kernel = load_kernels(self.kernel_file).entry()
        self._executor: Executor | None = None

    def cases(self, seed: int) -> Iterator[Case]:
        """The cases of `check.py` with random data from `seed`."""
        path = FOLDER / self.name / "check.py"
        spec = importlib.util.spec_from_file_location(f"check_{self.name}", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield from module.cases(np.random.default_rng(seed))

    @property
    def executor(self) -> Executor:
        """The built kernel; it is built once."""
        if self._executor is None:
            self._executor = BuildManager(TARGET).build(self.kernel)
        return self._executor

    def run_python(self, case: Case) -> Outputs:
        """BuildManager and Executor: the simulator from Python."""
        args = case.fresh_args()
        self.executor(*args)
        return _outputs(case, args)

    def run_pysim(self, case: Case) -> Outputs:
        """The kernel called as a Python function."""
        _ = self.executor  # a kernel runs in PySim once it has been built for a target
        args = case.fresh_args()
        self.kernel(*args)
        return _outputs(case, args)

    def run_cli(self, case: Case, binary: Path | None = None) -> Outputs:
        """`compassc build` and `compass-run` in a temporary folder; `binary` is an aipu.bin that is already built."""
        with tempfile.TemporaryDirectory(prefix="example-") as temporary:
            folder = Path(temporary)
            if binary is None:
                binary = folder / "aipu.bin"
                call([*COMPASSC, "build", self.kernel_file, "-t", TARGET, "-o", binary])
            inputs = []
            scalars: list[str] = []
            for name, value in case.args.items():
                if not isinstance(value, np.ndarray):
                    scalars += ["--set", f"{name}={value}"]
                elif name not in case.expected:
                    inputs.append(f"{name}={folder / name}.npy")
                    np.save(folder / f"{name}.npy", value)
            outputs = {name: folder / f"{name}.npy" for name in case.expected}
            given = ["--inputs", ",".join(inputs)] if inputs else []
            to = ",".join(f"{name}={path}" for name, path in outputs.items())
            call([*COMPASS_RUN, binary, *given, *scalars, "-o", to])
            return {n: np.load(p).reshape(case.expected[n].shape) for n, p in outputs.items()}


WAYS: dict[str, Callable[[Example, Case], Outputs]] = {
    "cli": Example.run_cli,
    "python": Example.run_python,
    "pysim": Example.run_pysim,
}


def call(command: list[Any]) -> None:
    """Run a program; Mismatch with what it said when it fails."""
    done = subprocess.run([str(c) for c in command], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Mismatch(f"exit status {done.returncode} of {' '.join(map(str, command))}\n{done.stderr}{done.stdout}")


def _outputs(case: Case, args: list[Any]) -> Outputs:
    return {name: a for name, a in zip(case.args, args, strict=True) if name in case.expected}


def check_expected(case: Case, got: Outputs, what: str) -> None:
    """Raises Mismatch unless the outputs are as expected, within the case's tolerance."""
    for name, want in case.expected.items():
        wide_got, wide_want = got[name].astype(np.float64), want.astype(np.float64)
        wrong = ~np.isclose(wide_got, wide_want, rtol=case.rtol, atol=case.atol, equal_nan=True)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise Mismatch(
                f"{what} ({case.describe()}): '{name}' differs in {int(wrong.sum())} of {want.size} elements, first at "
                f"{at}: got {got[name][at]}, expected {want[at]}"
            )


def check_identical(case: Case, got: Outputs, reference: Outputs, what: str) -> None:
    """Raises Mismatch unless two runs gave the same bits."""
    for name, want in reference.items():
        unsigned = f"u{want.itemsize}"
        wrong = got[name].view(unsigned) != want.view(unsigned)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            raise Mismatch(
                f"{what} ({case.describe()}): '{name}' differs in {int(wrong.sum())} of {want.size} elements, first at "
                f"{at}: {got[name][at]!r} and {want[at]!r}"
            )
