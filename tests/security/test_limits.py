"""The table of limits: the document shows it, C knows the same numbers, every limit is asked somewhere."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from compass_core.errors import CompassError
from compass_core.reading import limits
from compass_core.reading.limits import Limit
from tests import sources
from tests.choosing import some

ROOT = Path(__file__).parents[2]
LIMITS = dict(limits.limits())


def test_the_document_shows_the_table():
    assert limits.table() in (ROOT / "docs/security.md").read_text(encoding="utf-8"), (
        "put what `python -m compass_core.reading.limits` prints into docs/security.md"
    )


def test_c_has_the_same_numbers():
    for name, limit in some(LIMITS.items()):
        file, macro = limit.header
        if file:
            found = re.search(rf"#define {macro} (\d+)u", (ROOT / file).read_text(encoding="utf-8"))
            assert found and int(found[1]) == limit.most, name


@cache
def words() -> set[str]:
    """Those of all sources but the module that declares limits."""
    texts = (path.read_text(encoding="utf-8") for path in sources.paths())
    return {word for text in texts if "class Limit(" not in text for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize("name", LIMITS)
def test_every_limit_is_asked(name):
    assert name in words() or LIMITS[name].header[0]


def test_a_refusal_names_file_limit_and_document():
    limit = Limit(4 << 20, "bytes", "a thing")
    limit.check(4 << 20, "x.bin")
    with pytest.raises(CompassError, match=r"^x\.bin: 4194305 bytes, but a thing may have 4 MiB at most\b") as caught:
        limit.check((4 << 20) + 1, "x.bin")
    assert caught.value.code == "limit-exceeded" and "prints the table of limits" in caught.value.help
    assert Limit(20000, "layers", "a graph").shown == "20,000 layers"
