"""What a kernel file gives: the errors of its whole way to C."""

from pathlib import Path

import pytest

from compass_core.errors import CompassError

TARGET = "X2_1204"


@pytest.fixture
def mistake():
    """A function: kernel file -> the error it gives on its way to C, or None."""
    from compassc import codegen, passes
    from compassc.analysis.roles import parameters
    from compassc.dsl import load_kernels, parse

    def _entry(loaded):
        """The kernel `k`, which may be one that others call by mistake; else the only one."""
        return loaded.entry("k" if "k" in loaded.kernels else None)

    def errors_of(path: Path) -> CompassError | None:
        try:
            module = parse(_entry(load_kernels(path)), TARGET)
            parameters(module)
            codegen.generate(passes.lower(module))
        except CompassError as error:
            return error
        return None

    return errors_of
