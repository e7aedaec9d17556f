"""`compassc rpc-daemon`."""

from __future__ import annotations

from pathlib import Path

import click

from compass_core.errors import UsageError
from compassc.cli import options
from compassc.cli.console import Console

EXAMPLE = """\
compassc rpc-daemon board
board/compass-rpcd --token-file tokens
compassc rpc-daemon board --triple aarch64-linux-gnu --sysroot /opt/board"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("folder", type=options.FOLDER, metavar="DIR")
@click.option("--triple", metavar="TRIPLE", help="Machine that it is for, as clang calls it; default: this one.")
@click.option("--sysroot", type=options.FOLDER, metavar="DIR", help="Where that machine's C library is.")
@options.talk_options
@click.pass_obj
def command(console: Console, folder: Path, triple: str | None, sysroot: Path | None) -> None:
    """Write compass-rpcd, the server of remote sessions for boards, which need no Python.

    For this machine the runtime's library and the simulator are put beside it; another one needs a clang that has
    its target (COMPASS_CLANG), and runs programs by the vendor's driver there (--driver libaipudrv.so).
    """
    from compass_runtime import board_server

    if (triple is None) != (sysroot is None):
        raise UsageError("--triple and --sysroot are given together", code="usage")
    for path in board_server.write(folder, triple or "", sysroot):
        console.made(path)
