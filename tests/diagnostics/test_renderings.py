"""Each kernel of tests/errors breaks one rule; the text beside it is what its author must read."""

from pathlib import Path

import pytest

from compass_core.errors import render

FOLDER = Path(__file__).parents[1] / "errors"
KERNELS = sorted(FOLDER.glob("*.py"))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda path: path.stem)
def test_rendering(kernel, mistake, request, monkeypatch):
    monkeypatch.chdir(FOLDER)
    error = mistake(Path(kernel.name))
    assert error is not None, "this kernel has no mistake"
    shown = render(error) + "\n"
    golden = kernel.with_suffix(".txt")
    if request.config.getoption("--update-golden"):
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8"), "run pytest --update-golden if the change is meant"


def test_each_text_has_its_kernel():
    assert {path.stem for path in FOLDER.glob("*.txt")} == {path.stem for path in KERNELS}
