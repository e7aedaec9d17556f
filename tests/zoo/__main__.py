"""`python -m tests.zoo [--networks A,B] [--forms C,D] [--folder DIR]`: the zoo's networks in each form of numbers, and
their lines of docs/zoo.md's table, given all forms; the exit status is 1 where `auto` loses more than it may."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from compass_core import files
from tests.zoo.measuring import FORMS, Measured, faults, measure
from tests.zoo.tasks import TASKS

PAGE = Path(__file__).parents[2] / "docs" / "zoo.md"
BEGIN, END = "<!-- made by `make zoo` -->", "<!-- end -->"
"""Around the table in the page."""


def row(name: str, found: Mapping[str, Measured]) -> str:
    """A line of the table."""
    first = found["float"]
    cells = [
        f"{one.score:.1f}, {one.cycles:,.0f}"
        if one is first
        else f"{one.score:.1f}, {one.near(first):.0f} dB, {one.cycles:,.0f}"
        for one in found.values()
    ]
    return f"| {name} | {TASKS[name].about} | {TASKS[name].unit} | {' | '.join(cells)} |"


def table(rows: list[str]) -> str:
    """All lines."""
    head = f"| network | what it does | in | {' | '.join(FORMS)} |\n|{'---|' * (3 + len(FORMS))}\n"
    return head + "\n".join(rows) + "\n"


def write(rows: Mapping[str, str]) -> None:
    """Puts the lines of networks into the page's table, where the others stay."""
    before, rest = files.read_text(PAGE).split(BEGIN)
    old, after = rest.split(END)
    known = {line.split("|")[1].strip(): line for line in old.splitlines() if line.startswith("|")}
    lines = [rows.get(name, known.get(name, "")) for name in TASKS]
    files.write(PAGE, f"{before}{BEGIN}\n\n{table([line for line in lines if line])}\n{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.zoo", description="The zoo in each form of numbers.")
    parser.add_argument("--networks", default=",".join(TASKS), help="names, apart by commas")
    parser.add_argument("--forms", default=",".join(FORMS), help=", ".join(FORMS))
    parser.add_argument("--folder", type=Path, help="where builds are left (default: nowhere)")
    given = parser.parse_args()
    names, forms = given.networks.split(","), given.forms.split(",")
    rows, bad = [], []
    with tempfile.TemporaryDirectory(prefix="zoo-") as apart:
        for name in names:
            folder = (given.folder or Path(apart)) / name
            folder.mkdir(parents=True, exist_ok=True)
            found: dict[str, Measured] = {}
            for form in forms:
                one = found[form] = measure(name, form, folder)
                near = f", {one.near(found['float']):.1f} dB" if "float" in found and form != "float" else ""
                print(f"{name} {form}: {one.score:.2f} {TASKS[name].unit}{near}, {one.cycles:,.0f} cycles", flush=True)
            rows += [row(name, found)] if "float" in found else []
            bad += faults(name, found) if {"float", "auto"} <= set(found) else []
    if forms == list(FORMS):
        write(dict(zip(names, rows, strict=True)))
    for fault in bad:
        print(f"error: {fault}", file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
