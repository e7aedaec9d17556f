"""Pages of HTML that need nothing else: their frame, sections and tables. What is not escaped here is HTML already."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""The content security policy of a page that loads nothing."""


def document(title: str, css: str, parts: Iterable[str], data: Mapping[str, object], before: str = "") -> str:
    """A whole page: `parts` one after the other in `<main>`, `before` ahead of it. `data`: what scripts and tools may read
    from the page as JSON, by the id of its element. `css`: what is the page's own, beside the style that all pages share."""
    shared = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    texts = {name: json.dumps(value).replace("<", "\\u003c") for name, value in data.items()}
    kept = "".join(f'<script type="application/json" id="{name}">{text}</script>' for name, text in texts.items())
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<style>\n{shared}{css}</style></head>\n<body>{before}<main>\n{''.join(parts)}</main>\n{kept}</body></html>\n"
    )


def section(title: str, note: str, *parts: str, kind: str = "", name: str = "") -> str:
    """A section of a class and with an id, where they are given; title and note are plain text."""
    named = "".join(f' {key}="{value}"' for key, value in (("class", kind), ("id", name)) if value)
    return f"<section{named}><h2>{escape(title)}</h2><p>{escape(note)}</p>{''.join(parts)}</section>\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[str] = (), kind: str = "") -> str:
    """A table whose columns `left` are aligned so; names of columns are plain text, cells are HTML."""
    classes = [' class="left"' if name in left else "" for name in columns]
    head = "".join(f"<th{c}>{escape(name)}</th>" for c, name in zip(classes, columns, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{c}>{cell}</td>" for c, cell in zip(classes, row, strict=True)) + "</tr>\n"
        for row in rows
    )
    of = f' class="{kind}"' if kind else ""
    return f"<table{of}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def tiles(numbers: Mapping[str, str], kind: str = "") -> str:
    """Numbers side by side: what each is -> how it is written. `kind`: a class besides `tiles`."""
    shown = "".join(f"<div><b>{escape(value)}</b><span>{escape(what)}</span></div>" for what, value in numbers.items())
    return f'<div class="{f"tiles {kind}".rstrip()}">{shown}</div>\n'
