"""Documentation of layer types from their declarations: a Markdown page per type, and the table of all types."""

from __future__ import annotations

from pathlib import Path

from compass_core import files
from compass_core.namedtuple import NamedTuple
from compassc.layers.declare import BOUNDS, LayerType, all_types
from compassc.layers.support import BY_ELEMENT, DTYPES, WITHOUT_KERNEL, Form, forms_of, has_kernel
from compassc.operators.patterns import PatternKind

NO_KERNEL = "no kernel yet; it has a reference"
USES = ("common", "sometimes", "rare")


class LayerSummary(NamedTuple):
    """One layer type in the overview."""

    name: str
    use: str
    kernels: str
    summary: str


def kernels_in_words(declared: LayerType) -> str:
    """The data types of a type's kernels, or why there is none."""
    if declared.refused:
        return f"not supported: {declared.refused}"
    if declared.name in WITHOUT_KERNEL:
        return f"none needed: {WITHOUT_KERNEL[declared.name]}"
    forms = forms_of(declared)
    if not forms and has_kernel(declared.name):
        return "some types"
    found = [f.dtype for f in forms if f.kernel]
    return "all types" if len(found) == len(DTYPES) else ", ".join(found) or NO_KERNEL


def table(part: str = "") -> list[LayerSummary]:
    """The layer types whose names contain `part`, the common ones first."""
    found = [t for t in all_types().values() if part.lower() in t.name.lower()]
    rows = [LayerSummary(t.name, t.use, kernels_in_words(t), t.summary) for t in found]
    return sorted(rows, key=lambda r: (USES.index(r.use), r.name.lower()))


def _references(declared: LayerType) -> str:
    kinds = [word for word, found in (("float", declared.float), ("quantised", declared.quantised)) if found]
    if declared.float is declared.quantised and declared.float:
        return "one reference for all types"
    return " and ".join(kinds)


def _forms(forms: tuple[Form, ...]) -> list[str]:
    if not forms:
        return []
    lines = ["## Types", "", "By the type of the first input.", "", "| type | kernel |", "|---|---|"]
    return [*lines, *(f"| {f.dtype} | {'yes' if f.kernel else 'no: ' + f.reason} |" for f in forms), ""]


def _attributes(declared: LayerType) -> list[str]:
    if not declared.attributes:
        return []
    lines = ["## Attributes", "", "| attribute | kind | default | form | meaning |", "|---|---|---|---|---|"]
    for a in declared.attributes:
        default = "required" if a.default is None else a.default
        lines.append(f"| `{a.name}` | {a.kind} | {default} | {a.form or 'both'} | {a.doc} |")
    return [*lines, ""]


def _constants(declared: LayerType) -> list[str]:
    if not declared.constants:
        return []
    lines = ["## Constants", "", "| constant | shape | form | meaning |", "|---|---|---|---|"]
    for c in declared.constants:
        optional = "; may be missing" if c.optional else ""
        lines.append(f"| `{c.name}` | `{c.shape}` | {c.form or 'both'} | {c.doc}{optional} |")
    return [*lines, ""]


def _accuracy(declared: LayerType) -> str:
    if declared.pattern is PatternKind.INJECTIVE:
        return "the same bits"
    listed = ", ".join(f"{dtype} within {bound:g}" for dtype, bound in BOUNDS.items())
    return f"{listed} of the reference, relative to it, and absolute for values up to 1"


def page(declared: LayerType) -> str:
    """The Markdown page of a layer type."""
    lines = [f"# {declared.name}", "", declared.summary, ""]
    if declared.refused:
        return "\n".join([*lines, f"Not supported: {declared.refused}.", "", f"Use: {declared.use}"]) + "\n"
    lines += [f"- inputs: {declared.inputs}", f"- outputs: {declared.outputs}", f"- use: {declared.use}"]
    lines += [f"- pattern: {declared.pattern.name.lower()}, {declared.pattern.value}"]
    lines += [f"- defined for: {_references(declared)}", f"- kernels: {kernels_in_words(declared)}", ""]
    if declared.no_integers:
        lines += [f"Quantised, it is not supported: {declared.no_integers}.", ""]
    if declared.float is not None and not declared.refused:
        lines[-1:] = [f"- floats: {_accuracy(declared)}", ""]
    if declared.notes:
        lines += [declared.notes, ""]
    parts = [*_attributes(declared), *_constants(declared), *_forms(forms_of(declared))]
    return "\n".join([*lines, *parts]).rstrip() + "\n"


def index() -> str:
    """The Markdown page that lists all layer types."""
    lines = ["# Layers", "", "Made by `make docs` from the declarations in `compassc/layers/families`."]
    for use in USES:
        lines += ["", f"## {use.capitalize()}", "", "| layer | what it does | kernels |", "|---|---|---|"]
        lines += [f"| [{r.name}]({r.name}.md) | {r.summary} | {r.kernels} |" for r in table() if r.use == use]
    lines += ["", "## Element by element", "", "Kernels work on whole vectors, with these exceptions.", ""]
    lines += ["| layers | why |", "|---|---|"]
    for reason in dict.fromkeys(BY_ELEMENT.values()):
        listed = ", ".join(f"[{n}]({n}.md)" for n, why in BY_ELEMENT.items() if why == reason)
        lines.append(f"| {listed} | {reason} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """All pages by file name, the index included."""
    return {"README.md": index(), **{f"{t.name}.md": page(t) for t in all_types().values()}}


def write(folder: Path) -> list[Path]:
    """Writes all pages into a folder, and removes pages of types that are no more."""
    return files.write_pages(folder, pages())
