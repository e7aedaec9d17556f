"""A report on a statement of several lines names the line of the access itself."""

from pathlib import Path

import pytest

BOUNDS = {
    "second operand": ('t = S.alloc(8, "i32", "lsram")\na[0] = (t[0] +\n        t[8])', "reads", 3, 9),
    "third argument": (
        't = S.alloc(8, "i32", "lsram")\nS.vstore(\n    S.vadd(\n        S.vload(t),\n        S.vload(t + 4)),\n    a)',
        "reads",
        5,
        9,
    ),
    "loop bound": ('t = S.alloc(8, "i32", "lsram")\nfor i in range(\n        t[9]):\n    a[i] = n', "reads", 3, 9),
    "condition": ('t = S.alloc(8, "i32", "lsram")\nif (n > 3 and\n        t[9] > 2):\n    a[0] = n', "reads", 3, 9),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_an_access_out_of_bounds(found, name):
    body, verb, line, col = BOUNDS[name]
    (error,) = found(body)
    assert f"this {verb} 't'" in error.message
    lines = Path(error.span.file).read_text().splitlines()
    first = next(i for i, text in enumerate(lines, 1) if text.startswith("    t = "))
    assert (error.span.line - first + 1, error.span.col - 4) == (line, col)


def test_a_race(found):
    """Both sides are told where they stand, in the words of PySim and checked runs."""
    body = """
    t = S.alloc_buffer((4,), "i32", "shared")
    tid = S.get_local_id()
    t[tid] = n
    a[tid] = (n +
              t[(tid + 1) % 4])
    """
    (error,) = found(body)
    assert error.message == "data race: TEC 0 reads 't', which TEC 1 writes with no barrier between"
    (note,) = error.notes
    assert note.message == "TEC 1 writes it here"
    assert (error.span.line - note.span.line, error.span.col, note.span.col) == (2, 15, 5)
