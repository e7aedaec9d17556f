"""Servers without Python under the framework's name: `with_minrpc`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from compass_core import files
from compass_core.errors import CompassError


def with_minrpc(
    compile_func: Callable[..., object], server: str = "posix_popen_server", runtime: str = "libtvm"
) -> Callable[..., None]:
    """A function of a path and of objects that writes a server without Python there, compass-rpcd, for `rpc.PopenSession(path)`; what
    the server needs lies beside it. `compile_func` is not called: nothing is compiled from objects, which are refused (CompassError)."""
    if server != "posix_popen_server":
        raise CompassError(f"there is no server '{server}'", code="rpc-call", help="posix_popen_server")

    def build(output: str | os.PathLike[str], objects: Sequence[str] | str = (), **_: object) -> None:
        from compass_runtime import board_server

        if objects:
            raise CompassError(
                "compass-rpcd has no code of the host in it",
                code="rpc-call",
                help="upload a module to the session, and load it there",
            )
        path = Path(output)
        program = board_server.write(path.parent)[0]
        if path != program:
            files.write(path, program.read_bytes(), 0o777)
            program.unlink()

    build.output_format = getattr(compile_func, "output_format", "")  # type: ignore[attr-defined]  # as the framework's
    return build
