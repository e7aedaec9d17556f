"""`compassc check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from compassc.cli import options
from compassc.cli.checking import check_file
from compassc.cli.console import Console
from compassc.cli.option_types import Options

if TYPE_CHECKING:
    from typing_extensions import Unpack

EXAMPLE = """\
compassc check kernel.py
compassc check kernel.py -k scale -t X3P_1304 --set n=1024 --strict"""


@click.command(epilog=options.example(EXAMPLE))
@options.kernel_argument("KERNEL.py[:NAME]")
@options.target_option
@click.option("-k", "--kernel", "entry", metavar="NAME", help="Check this kernel only.")
@options.assignments("--set", "values", kind="NAME=VALUE", parse=options.number, help="A scalar's value. Repeatable.")
@options.assignments("--shape", "shapes", kind="NAME=4x1024", parse=options.shape, help="A tensor's shape. Repeatable.")
@click.option("--strict", is_flag=True, help="Take warnings as errors.")
@options.talk_options
@click.pass_obj
def command(console: Console, source: Path, target: str, entry: str | None, **given: Unpack[Options]) -> int:
    """Find mistakes in kernel.py without building it.

    Every kernel of the file is parsed and type checked. Then follows what can be proven: accesses outside of their
    storage, storage that does not fit the target's memories, events that are not freed, missing barriers, and code or
    values that are of no use. Exit status: 0 without errors (warnings allowed, unless --strict), else 1.
    """
    console.inputs.append(source)
    return check_file(console, source, target, options.entry(entry), given["values"], given["shapes"], given["strict"])
