"""A session on a server of its own: a program such as compass-rpcd, which is started for it and ends with it."""

from __future__ import annotations

import os
import secrets
import selectors
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO

from compass_core import files
from compass_runtime.rpc.access import Credentials
from compass_runtime.rpc.connections import opened
from compass_runtime.rpc.errors import RPCError
from compass_runtime.rpc.session import Session

_START_SECONDS = 10.0
_END_SECONDS = 5.0
_MOST_SAID = 200
_SAYS = b"listening on "


def PopenSession(binary: str | Path | bytes | bytearray) -> Session:
    """A session on a program that serves on loopback, by its path or its content: compass-rpcd, or what was built of it. It gets a
    token that nobody else knows, and ends with the session. RuntimeError where there is no such program, or it does not serve."""
    folder = Path(tempfile.mkdtemp(prefix="compass-popen-"))
    try:
        program = _program(binary, folder)
        tokens = folder / "tokens"
        files.write(tokens, f"{secrets.token_hex(32)}\n", 0o600)
        command = [
            str(program),
            "--token-file",
            str(tokens),
            "--port",
            "0",
            "--folder",
            str(folder),
            "--until-stdin-ends",
        ]
        try:
            made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        except OSError as error:
            raise RPCError(f"'{program}' cannot be started: {error}", code="rpc-connect") from None
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        host, port = _address(made, program)
        channel, welcome = opened(host, port, "client", {"key": ""}, credentials=Credentials(tokens))
    except BaseException:
        _ended(made, folder)
        raise
    return Session(channel, welcome, and_then=lambda: _ended(made, folder))


def _program(binary: str | Path | bytes | bytearray, folder: Path) -> Path:
    if isinstance(binary, (bytes, bytearray)):
        path = folder / "server"
        files.write(path, bytes(binary), 0o700)
        return path
    path = Path(binary).absolute()
    if not path.is_file():
        raise RPCError(f"'{binary}' does not exist", code="rpc-connect", help="`compassc rpc-daemon DIR` writes one")
    if not os.access(path, os.X_OK):
        raise RPCError(f"'{binary}' is not executable", code="rpc-connect", help=f"chmod +x {binary}")
    return path


def _address(made: subprocess.Popen[bytes], program: Path) -> tuple[str, int]:
    """Where it says that it listens."""
    assert made.stdout is not None
    said = _line(made.stdout)
    if not said.startswith(_SAYS) or not said.endswith(b"\n"):
        made.kill()
        raise RPCError(
            f"'{program}' is no server of remote sessions: it does not say where it listens", code="rpc-stranger"
        )
    host, _, port = said[len(_SAYS) :].decode("ascii", "replace").strip().rpartition(":")
    return host, int(port)


def _line(stream: IO[bytes]) -> bytes:
    """The first line of a stream, as far as it comes in time."""
    found, end = b"", time.monotonic() + _START_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not found.endswith(b"\n") and len(found) < _MOST_SAID and selector.select(max(end - time.monotonic(), 0)):
            if not (part := os.read(stream.fileno(), 1)):
                break
            found += part
    return found


def _ended(made: subprocess.Popen[bytes], folder: Path) -> None:
    """It ends when nothing can be said to it any more; else it is killed."""
    for stream in (made.stdin, made.stdout):
        if stream is not None:
            stream.close()
    try:
        made.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        made.kill()
        made.wait(_END_SECONDS)
    shutil.rmtree(folder, ignore_errors=True)
