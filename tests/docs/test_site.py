"""The pages as a site: links and anchors lead somewhere, code blocks are of languages that are known, all pages have a place."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from pages import blocks

from compass_core import VERSION
from tests.choosing import some

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LANGUAGES = {"", "python", "console", "diff", "c", "json", "yaml", "text", "make", "sh", "toml"}
LINK = re.compile(r"\]\(([^)\s]+)\)")


def site():
    """The module that MkDocs is given."""
    spec = importlib.util.spec_from_file_location("docs_site", DOCS / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SITE = site()


@cache
def all_pages() -> dict[str, str]:
    """Every page as the site has it, by its path there."""
    own = {page.relative_to(DOCS).as_posix(): page.read_text() for page in DOCS.rglob("*.md")}
    return {page: SITE.rewritten(page, text) for page, text in {**own, **SITE.made_pages()}.items()}


def prose(text: str) -> list[str]:
    """The lines outside of fenced blocks."""
    lines = text.split("\n")
    inside = {i for b in blocks(lines) for i in range(b.line - 1, b.line + len(b.lines) + 1)}
    return [line for i, line in enumerate(lines) if i not in inside]


@cache
def anchors(page: str) -> frozenset[str]:
    """The names of the headings of a page."""
    heads = [line.lstrip("#").strip() for line in prose(all_pages()[page]) if re.match(r"#+ ", line)]
    plain = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", head).lower() for head in heads]
    return frozenset(re.sub(r"[^\w\- ]", "", head).replace(" ", "-") for head in plain)


def links() -> Iterator[tuple[str, str]]:
    for page, text in all_pages().items():
        for line in prose(text):
            yield from ((page, to) for to in LINK.findall(re.sub(r"`[^`]*`", "", line)))


def test_links_and_anchors_lead_somewhere():
    wrong, seen = [], 0
    for page, to in links():
        if re.match(r"[a-z]+:", to):
            continue
        path, _, anchor = to.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        seen += 1
        if target in all_pages():
            if anchor and anchor not in anchors(target):
                wrong.append(f"{page}: {to} names no heading of {target}")
        elif not (DOCS / target).is_file():
            wrong.append(f"{page}: {to}")
    assert not wrong and seen > 500, "\n".join(wrong)


def is_python(code: str) -> bool:
    """Whether it can be parsed, as statements or as the signature of a function."""
    for text in (code, f"def {code}: ..."):
        with contextlib.suppress(SyntaxError):
            ast.parse(text)
            return True
    return False


def test_code_blocks_are_of_known_languages_and_python_is_python():
    found = ((page, block) for page, text in all_pages().items() for block in blocks(text.split("\n")))
    for page, block in some(found):
        language, _, name = block.info.partition(" ")
        assert language in LANGUAGES, f"{page}:{block.line}: {language}"
        if language == "python" and not page.startswith(SITE.SOURCES):
            assert is_python("\n".join(block.lines)), f"{page}:{block.line} {name}: no Python"


def listed(entries) -> Iterator[str]:
    for entry in entries:
        for inner in entry.values() if isinstance(entry, dict) else (entry,):
            yield from listed(inner) if isinstance(inner, list) else (inner,)


def test_every_page_has_one_place():
    pages = [page for page in all_pages() if not page.startswith(SITE.SOURCES)]
    own = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(listed(SITE.navigation(own))) == sorted(pages)


def test_the_version_is_said_in_one_place():
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.findall(r"^## (\S+)", changes, re.MULTILINE)[0] == VERSION, "CHANGELOG.md begins with this version"
    assert VERSION not in (ROOT / "README.md").read_text()


def test_the_picture_is_small():
    picture = DOCS / "images/report.png"
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size < 200_000


def test_the_site_is_built(tmp_path):
    """With the extra `site`: MkDocs is strict about links, anchors and places of pages."""
    pytest.importorskip("material", reason="the extra site is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/search/search_index.json").stat().st_size > 100_000
