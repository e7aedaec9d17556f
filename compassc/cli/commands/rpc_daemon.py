"""`compassc rpc-daemon`."""

from __future__ import annotations

from pathlib import Path

import click

from compass_core.errors import UsageError
from compass_runtime import board_server
from compassc.cli import options
from compassc.cli.console import Console

EXAMPLE = """\
compassc rpc-daemon board
board/compass-rpcd --token-file tokens
compassc rpc-daemon one --static
compassc rpc-daemon arm --triple aarch64-linux-gnu --sysroot /opt/board"""


@click.command(epilog=options.example(EXAMPLE))
@click.argument("folder", type=options.FOLDER, metavar="DIR")
@click.option("--triple", metavar="TRIPLE", help="Machine that it is for, as clang calls it; default: this one.")
@click.option("--sysroot", type=options.FOLDER, metavar="DIR", help="Where that machine's C library is.")
@click.option("--static", is_flag=True, help="Make one file that needs no shared libraries.")
@click.option("--driver-archive", type=options.INPUT, metavar="FILE", help="Driver's static library, made part of it.")
@click.option("--flag", "flags", multiple=True, metavar="WORD", help="Another word for clang, such as -lstdc++.")
@options.talk_options
@click.pass_obj
def command(
    console: Console,
    folder: Path,
    triple: str | None,
    sysroot: Path | None,
    static: bool,
    driver_archive: Path | None,
    flags: tuple[str, ...],
) -> None:
    """Write compass-rpcd, the server of remote sessions for boards, which need no Python.

    For this machine the runtime's library and the simulator are put beside it; another one needs a clang that has
    its target (COMPASS_CLANG), and runs programs by the vendor's driver there (--driver libaipudrv.so), or by one
    that is linked into it. A static program loads no driver: it has the simulator's, or that of the archive.
    """
    from compass_core.hostcc import host

    if (triple is None) != (sysroot is None):
        raise UsageError("--triple and --sysroot are given together", code="usage")
    if static and sysroot is not None and driver_archive is None:
        raise UsageError("a static program for another machine needs --driver-archive", code="usage")
    machine = None
    if sysroot is not None or static or driver_archive is not None or flags:
        machine = board_server.Machine(triple or host.triple(), sysroot, static, driver_archive, flags)
    for path in board_server.write(folder, machine):
        console.made(path)
