"""Tables as plain aligned text, the same on a terminal and in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Table = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""A title (may be empty), the column names, and the rows."""


_MAX_RULE = 40
"""The longest line drawn under a column's name."""

_WIDEST = 250
"""The widest column that others are aligned with: one cell of a damaged file does not make a million lines long."""


def table_text(table: Table) -> str:
    """One table, ending with a newline; the last column is not padded."""
    title, columns, rows = table
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [min(max(len(line[i]) for line in [list(columns), *cells]), _WIDEST) for i in range(len(columns))]
    lines = [title] if title else []
    rules = ["-" * min(width, _MAX_RULE) for width in widths]
    lines += [_line(columns, widths), _line(rules, widths)]
    lines += [_line(row, widths) for row in cells]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def tables_text(tables: Iterable[Table]) -> str:
    """Several tables with an empty line between them; those without rows are left out."""
    return "\n".join(table_text(table) for table in tables if table[2])
