"""The catalogue of error codes: what each means, with a wrong and a right example.

The catalogue is the Markdown files beside this module. A row begins with `## CODE: TITLE`; an explanation follows, then
an indented example after `wrong:` and one after `right:`, or a line `no example: WHY`. An example is a whole file of
kernels when it defines functions, a shell command when it begins with `$`, else the body of a kernel whose parameters
are the names in `PARAMETERS` that it uses.
"""

from __future__ import annotations

import re
import textwrap
from functools import lru_cache
from pathlib import Path

from compass_core.dataclass import dataclass

PARAMETERS = {
    "a": 'S.ptr("i32", "global")',
    "w": 'S.ptr("u32", "global")',
    "c": 'S.ptr("i8", "global")',
    "f": 'S.ptr("fp32", "global")',
    "n": "S.i32",
    "u": "S.u32",
    "x": "S.fp32",
}
_HEADER = "from compassc.dsl import script as S\n\n\n"
_ROW = re.compile(r"^## (?P<code>[\w-]+): (?P<title>.+)$", re.MULTILINE)
_PART = re.compile(r"^(?P<name>wrong|right):\n(?P<text>(?:(?: {4}.*)?\n)+)", re.MULTILINE)
_NO_EXAMPLE = re.compile(r"^no example: (?P<why>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class ExplainedCode:
    """One code. `wrong` and `right` are the examples as written; `no_example` says why there are none."""

    code: str
    title: str
    section: str
    explanation: str
    wrong: str = ""
    right: str = ""
    no_example: str = ""


@lru_cache(maxsize=1)
def catalogue() -> dict[str, ExplainedCode]:
    """All rows by code, in the order of the files."""
    rows: dict[str, ExplainedCode] = {}
    for path in sorted(Path(__file__).parent.glob("*.md")):
        text = path.read_text(encoding="utf-8") + "\n"
        section = text.partition("\n")[0].lstrip("# ")
        heads = list(_ROW.finditer(text))
        for head, following in zip(heads, [*heads[1:], None]):
            row = _row(head, section, text[head.end() : following.start() if following else len(text)])
            rows[row.code] = row
    return rows


def _row(head: re.Match[str], section: str, body: str) -> ExplainedCode:
    parts = {m["name"]: textwrap.dedent(m["text"]).strip("\n") for m in _PART.finditer(body)}
    why = _NO_EXAMPLE.search(body)
    explanation = _NO_EXAMPLE.sub("", _PART.sub("", body)).strip()
    return ExplainedCode(
        head["code"], head["title"], section, explanation, no_example=why["why"] if why else "", **parts
    )


def is_command(example: str) -> bool:
    """Whether an example is something to type, not a kernel."""
    return example.startswith("$ ")


def kernel_file(example: str) -> str:
    """The kernel file of an example."""
    if re.search(r"^(def|@S\.)", example, re.MULTILINE):
        return _HEADER + example + "\n"
    words = set(re.findall(r"\w+", re.sub(r'"[^"]*"', "", example)))
    parameters = ", ".join(f"{name}: {kind}" for name, kind in PARAMETERS.items() if name in words)
    return f"{_HEADER}@S.prim_func\ndef k({parameters}):\n" + textwrap.indent(example, "    ") + "\n"


def explained(row: ExplainedCode) -> str:
    """The long text of a row."""
    parts = [f"{row.code}: {row.title}"]
    if row.explanation:
        parts.append(row.explanation)
    for label, example in (("Wrong", row.wrong), ("Right", row.right)):
        if example:
            shown = example if is_command(example) else kernel_file(example).removeprefix(_HEADER).rstrip("\n")
            parts.append(f"{label}:\n\n{textwrap.indent(shown, '    ')}")
    if row.no_example:
        parts.append(row.no_example[0].upper() + row.no_example[1:] + ".")
    return "\n\n".join(parts) + "\n"
