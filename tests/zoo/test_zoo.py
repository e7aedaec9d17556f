"""The zoo's networks keep their answers: on the page in all forms, here one of them from its file to its answers."""

import re
from pathlib import Path

from tests.digits import needs_digits
from tests.zoo.measuring import FORMS, faults, measure
from tests.zoo.tasks import MODELS, TASKS

pytestmark = needs_digits
PAGE = (Path(__file__).parents[2] / "docs" / "zoo.md").read_text(encoding="utf-8")


def rows():
    """The cells of the table by network and form."""
    lines = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if re.match(r"\| [a-z-]+ \| .*\d \|$", line)]
    return {name: (unit, dict(zip(FORMS, cells, strict=True))) for name, _, unit, *cells in lines}


def test_the_page_has_every_network_and_each_keeps_its_answers():
    table = rows()
    assert list(table) == list(TASKS)
    for name, (unit, cells) in table.items():
        score = {form: float(cell.split(",")[0]) for form, cell in cells.items()}
        assert unit == TASKS[name].unit
        assert score["float"] - score["auto"] <= TASKS[name].loss, name


def test_files_are_small_and_tell_nothing_of_the_machine_that_made_them():
    files = sorted(MODELS.glob("*.onnx"))
    assert [path.stem for path in files] == sorted(TASKS)
    assert sum(path.stat().st_size for path in files) < 3 << 20
    assert [path.name for path in files if b"stack_trace" in path.read_bytes()] == []


def test_a_network_keeps_its_answers_from_its_file_to_the_simulator(tmp_path):
    found = {form: measure("digits-cnn", form, tmp_path, 100) for form in ("float", "auto")}
    assert faults("digits-cnn", found) == []
    assert found["float"].score > 95 and found["auto"].cycles < found["float"].cycles
