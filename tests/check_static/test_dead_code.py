"""Code that never runs and values nobody reads; and that good kernels are silent."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/kernel.py"))
WARNINGS = {
    "after return": ("a[0] = n\nreturn\na[1] = n", "unreachable"),
    "after break": ("for i in range(n):\n    a[i] = 1\n    break\n    a[i] = 2", "unreachable"),
    "after both branches": ("if n > 0:\n    return\nelse:\n    return\na[0] = n", "unreachable"),
    "after continue": ("for i in range(n):\n    a[i] = 1\n    continue\n    a[i] = 2", "unreachable"),
    "after an endless loop": ("while True:\n    a[0] = 1\n    if a[1] > 0:\n        return\na[1] = n", "unreachable"),
    "loop the wrong way": ("for i in range(8, 0):\n    a[i] = n", "unreachable"),
    "dropped result": ("S.vadd(S.vload(a), 1)\na[0] = n", "unused-result"),
    "variable": ("p = n + 1\na[0] = n", "unused-variable"),
    "storage": ('t = S.alloc(8, "i32", "lsram")\na[0] = n', "unused-variable"),
    "assigned only": ("p = n + 1\np = n + 2\na[0] = n", "unused-variable"),
}
SILENT = {
    "return in a branch": "if n > 0:\n    return\na[0] = n",
    "empty tail loop": "for i in range(8, 8):\n    a[i] = n",
    "underscore": "_p = n + 1\na[0] = n",
    "used in a condition": "p = n + 1\nif p > 0:\n    a[0] = n",
    "used as an index": "p = n + 1\na[p] = n",
    "printed": 'S.printf("%d", n)',
    "item of a tuple": "t = (a[0], a[1] + n)\na[2] = t[1]",
    "item of a list": "t = [a[i] for i in range(4)]\na[2] = t[1]",
    "loop over items": "for i, x in enumerate((a[0], n)):\n    a[i] = n",
    "atomic": "S.atomic_add(a, n)",
    "stated": 'S.assume(n > 0)\nS.assert_(n < 9, "small")\na[0] = n',
    "loop that a break leaves": "while True:\n    a[0] += 1\n    if a[0] > n:\n        break\na[1] = 1",
    "chain": "p = q = n + 1\na[p] = q",
    "coordinates of a tile": "for i, j in S.parallel_tiles(n, 2):\n    a[i] = n\nfor i, j in S.parallel_tiles(n, 2):\n    a[j] = n",
    "vector element": "v = S.vload(a)\nv[0] = n\na[0:8] = v",
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warning(found, name):
    body, code = WARNINGS[name]
    (finding,) = found(body)
    assert (finding.code, finding.severity) == (code, "warning") and finding.span is not None


@pytest.mark.parametrize("name", SILENT)
def test_silence(found, name):
    assert [e.message for e in found(SILENT[name])] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
def test_examples_are_silent(path, target):
    from compassc.check import Subject, findings
    from compassc.dsl import load_kernels, parse

    found = findings(Subject(parse(load_kernels(path).entry(), target)))
    assert [f"{e.span}: {e.message}" for e in found] == []
