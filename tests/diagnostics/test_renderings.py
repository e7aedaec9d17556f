"""Each kernel of tests/errors breaks one rule; the text beside it is what its author must read."""

import sys
from pathlib import Path

import pytest

from compass_core.errors import flat, render

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
    wanted = golden.read_text(encoding="utf-8")
    if sys.version_info < (3, 11) and not all(place.col for place in places(error)):
        assert error.message in wanted  # this Python keeps no columns of instructions
    else:
        assert shown == wanted, "run pytest --update-golden if the change is meant"


def places(error):
    return [x.span for one in flat(error) for x in (one, *one.notes) if x.span is not None]


def test_each_text_has_its_kernel():
    assert {path.stem for path in FOLDER.glob("*.txt")} == {path.stem for path in KERNELS}
