"""What MkDocs is told of these pages (`mkdocs.yml`): their order, README.md as the first page, and pages for the files outside
of docs/ that they link to."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

DOCS = Path(__file__).parent
ROOT = DOCS.parent
HOME = "index.md"
"""The page that README.md is."""
AT_TOP = {"README.md": HOME, "CHANGELOG.md": "CHANGELOG.md"}
"""Pages of the site that are files at the top of the tree."""
SOURCES = "sources"
"""Where pages of files outside of docs/ are."""
SECTIONS = {
    "Tutorials": ("tutorials/README.md", "tutorials/*.md"),
    "Models": (
        *("models.md", "onnx.md", "tflite.md", "pytorch.md", "quantisation.md", "quantised-layers.md", "graphs.md"),
        {"Layers": ("layers/README.md", "layers/*.md")},
    ),
    "Kernels": (
        *("language.md", "tiles.md", "aiff.md", "compat.md", "tvm.md"),
        {"Operations": ("ops/README.md", "ops/*.md")},
    ),
    "Expressions": (
        *("tensor-expressions.md", "relay.md", "operators.md", "targets.md", "tuning.md"),
        {"Schedules of stages": ("schedules/te/README.md", "schedules/te/*.md")},
        {"Schedules of blocks": ("schedules/blocks/README.md", "schedules/blocks/*.md")},
    ),
    "Running": ("simulator.md", "boards.md", "remote.md", "notebooks.md", "editors.md"),
    "Reference": ("cli.md", "errors.md", "security.md", "CHANGELOG.md", "*.md"),
    "Sources": ("architecture.md", "walkthrough.md", "contributing.md", {"Details": ("internals/*.md",)}),
}
"""The pages of each tab, in order; patterns name those that are not named before."""
LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
LANGUAGES = {".py": "python", ".c": "c", ".md": "", ".txt": "text", ".h": "c"}


def made_pages() -> dict[str, str]:
    """The text of pages that are not in docs/, by where they would be: README.md, CHANGELOG.md, and the files that pages link
    to."""
    found = {page: (ROOT / name).read_text() for name, page in AT_TOP.items()}
    texts = {page.relative_to(DOCS).as_posix(): page.read_text() for page in sorted(DOCS.rglob("*.md"))}
    linked = {target for page, text in {**texts, **found}.items() for target in targets(page, text)}
    outside = sorted(t for t in linked if not t.startswith("docs/") and t not in AT_TOP and (ROOT / t).is_file())
    return found | {source_page(target): _source(ROOT / target, target) for target in outside}


def _source(path: Path, name: str) -> str:
    """A page that shows a file."""
    text = path.read_text()
    if path.suffix == ".md":
        return text
    fence = "`" * (3 + 3 * ("```" in text))
    return f"# {name}\n\n{fence}{LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def source_page(target: str) -> str:
    """The page for a file outside of docs/, of which the path in the tree is given."""
    return f"{SOURCES}/{target}" if target.endswith(".md") else f"{SOURCES}/{target}.md"


def place(page: str) -> PurePosixPath:
    """The folder in the tree that the links of a page are relative to."""
    if page in AT_TOP.values():
        return PurePosixPath()
    if page.startswith(f"{SOURCES}/"):
        return PurePosixPath(page).relative_to(SOURCES).parent
    return PurePosixPath("docs", page).parent


def targets(page: str, text: str) -> Iterator[str]:
    """The files that a page links to, from the top of the tree."""
    for match in LINK.finditer(text):
        yield posixpath.normpath((place(page) / match[2]).as_posix())


def rewritten(page: str, text: str) -> str:
    """The text of a page with links as they lead on the site; those to folders and other files of the tree become text."""

    def link(match: re.Match[str]) -> str:
        target = posixpath.normpath((place(page) / match[2]).as_posix())
        if target in AT_TOP:
            to = AT_TOP[target]
        elif target.startswith("docs/"):
            to = target.removeprefix("docs/")
        else:
            to = source_page(target)
        start = PurePosixPath(page).parent.as_posix()
        return f"{match[1]}{posixpath.relpath(to, start)}{match[3] or ''}{match[4]}"

    return LINK.sub(link, text)


def navigation(pages: list[str]) -> list[Any]:
    """The tabs, for the pages that there are."""
    named = {entry for entries in SECTIONS.values() for entry in _names(entries)}
    return [{"compassc": HOME}, *({title: _listed(entries, pages, named)} for title, entries in SECTIONS.items())]


def _names(entries: tuple[Any, ...]) -> Iterator[str]:
    for entry in entries:
        yield from (name for part in entry.values() for name in _names(part)) if isinstance(entry, dict) else (entry,)


def _listed(entries: tuple[Any, ...], pages: list[str], named: set[str]) -> list[Any]:
    found: list[Any] = []
    for entry in entries:
        if isinstance(entry, dict):
            found += [{title: _listed(inner, pages, named)} for title, inner in entry.items()]
        elif "*" in entry:
            depth = entry.count("/")
            matching = [p for p in pages if p.count("/") == depth and PurePosixPath(p).match(entry) and p not in named]
            found += sorted(matching, key=lambda p: [int(n) if n.isdigit() else n for n in re.split(r"(\d+)", p)])
        else:
            found.append(entry)
    return found


# -- what MkDocs calls


def on_config(config: Any) -> Any:
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    config.nav = navigation(pages)
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File, InclusionLevel

    for page, text in made_pages().items():
        hidden = InclusionLevel.NOT_IN_NAV if page.startswith(f"{SOURCES}/") else InclusionLevel.UNDEFINED
        files.append(File.generated(config, page, content=text, inclusion=hidden))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    return rewritten(page.file.src_uri, markdown)
