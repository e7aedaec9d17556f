"""`%%compass` in a notebook whose kernel runs (by nbclient), and what its line means."""

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from compass_core.errors import CompassError, UsageError
from compassc.jupyter import Line, compass

KERNEL = """from compassc.dsl import script as S

@S.prim_func
def twice(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    tile = S.alloc(8, "i32", "lsram")
    S.dma_copy(tile, a, 8)
    S.vstore(S.vload(tile) * 2, b)
"""
MISTAKE = KERNEL.replace("S.vload(tile) * 2", "abs(S.vload(tile))")


@pytest.fixture(scope="module")
def notebook():
    cells = [
        "%load_ext compassc.jupyter\nimport numpy as np\na, b = np.arange(8, dtype='int32'), np.zeros(8, 'int32')",
        f"%%compass -t X2_1204 twice(a, b)\n{KERNEL}",
        "print(b.tolist(), twice.__name__)",
        f"%%compass\n{KERNEL}",
        f"%%compass\n{MISTAKE}",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(book, timeout=300, kernel_name="python3", allow_errors=True).execute()
    return [cell.outputs for cell in book.cells]


def html(outputs):
    return "".join(o["data"].get("text/html", "") for o in outputs if o["output_type"] == "display_data")


def test_a_call_shows_c_table_and_timeline(notebook):
    shown = html(notebook[1])
    assert "C of twice" in shown and "__vload" in shown
    assert "TEC  cycles" in shown, "the table"
    assert (
        "<iframe srcdoc=" in shown and "timeline of the TECs and DMA channels" in shown and "S.vstore(S.vload" in shown
    )
    plain = [o["data"]["text/plain"] for o in notebook[1] if o["output_type"] == "display_data"]
    assert "void twice(" in plain[0] and "TEC  cycles" in plain[1]


def test_results_and_names_stay_in_the_notebook(notebook):
    (output,) = notebook[2]
    assert output["text"] == f"{[2 * i for i in range(8)]} twice\n"


def test_without_a_call_there_is_the_c_alone(notebook):
    assert "__vload" in html(notebook[3]) and "iframe" not in html(notebook[3])


def test_a_mistake_is_shown_at_its_line_of_the_cell(notebook):
    (output,) = notebook[4]
    shown = "\n".join(output["traceback"])
    assert (
        output["output_type"] == "error"
        and ":7:14: error: abs() of Python" in shown
        and "S.abs(S.vload(tile))" in shown
    )
    assert "^~~" in shown and "compassc/language" not in shown


@pytest.mark.parametrize("line", ["-x", "--target", "twice(a", "twice", "m.twice(a)", "twice(a, b=b)", "1 + 1"])
def test_other_lines_are_refused(line):
    with pytest.raises(UsageError) as found:
        Line.parse(line)
    assert "%%compass" in found.value.help


def test_a_line():
    line = Line.parse("--target X3P_1304 twice(a, n + 1)")
    assert (line.target, line.kernel) == ("X3P_1304", "twice")
    assert line.arguments({"a": 5, "n": 1}) == [5, 2]
    assert Line.parse("") == Line() and Line.parse("-t X2_1204").target == "X2_1204"


def test_what_a_cell_defines():
    with pytest.raises(CompassError, match="no kernel"):
        compass("", "x = 1", {})
    with pytest.raises(CompassError, match="there is no kernel 'thrice'"):
        compass("thrice(a)", KERNEL, {"a": np.zeros(8, "int32")})
    with pytest.raises(CompassError, match="several kernels"):
        compass("", KERNEL + KERNEL.replace("twice", "thrice").partition("\n\n")[2], {})
