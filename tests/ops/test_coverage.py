"""`compassc ops --coverage`: what a specification names and the language lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from compass_core.errors import UsageError
from compassc.dsl import script
from compassc.ops.coverage import missing

KNOWN = """
# Operations

## `S.vceq(x, y, mask=None)`
### S.vadd(x, y, mask=None, saturate=False, out_sign=None, r=None)
### `S.perf_tick_begin(cid)` / `S.perf_tick_end(cid)`
## Dtype constructors `S.int32x8(x)`, `S.fp16(x)`, ...
### `S.macro(hygienic=True)`
### `S.block(name="", no_realize=False)` and `S.axis.*`
"""
EXPORTS = """
## 18. Names exported by `S`

- Language: ptr, dtype names and `size_*` names (4.3), meta_var,
  axis (spatial, reduce), tec_range.
- Arithmetic: vadd vaddh {more}.

## 19. Other

- Kind: nothing here.
"""


def lines(folder: Path, operations: str, more: str = "vsub") -> list[str]:
    (folder / "ops-all.md").write_text(operations)
    (folder / "language.md").write_text(EXPORTS.format(more=more))
    return missing(folder, script)


def test_nothing_is_missing_of_what_exists(tmp_path: Path) -> None:
    assert lines(tmp_path, KNOWN) == []


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("### S.vnothing(x)", ["S.vnothing (ops-all.md:1): there is no such name"]),
        ("### S.vaddh(x, y, z=1)", ["S.vaddh (ops-all.md:1): takes (x, y), not (x, y, z=1)"]),
        ("### S.nothing", ["S.nothing (ops-all.md:1): there is no such name"]),
        ("S.vnothing(x) in a sentence", []),
    ],
)
def test_names_and_signatures_of_headings(tmp_path: Path, heading: str, expected: list[str]) -> None:
    assert lines(tmp_path, heading) == expected


def test_exported_names(tmp_path: Path) -> None:
    assert lines(tmp_path, "", "vnothing") == ["S.vnothing (language.md): there is no such name"]


def test_a_folder_without_specification(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no specification"):
        missing(tmp_path, script)
