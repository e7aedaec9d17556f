"""Starting a confined program, feeding it, and stopping it when it wants too much."""

from __future__ import annotations

import math
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from pathlib import Path

from compass_core.confine.child import REFUSED
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError

MEANS: tuple[str, ...] = ("landlock", "namespace")
"""By what files are kept from the program, the first that the host offers; system calls are filtered in each case."""
_CHILD = Path(__file__).with_name("child.py")
_START = """import sys, _frozen_importlib_external as files
exec(files.SourceFileLoader("__main__", sys.argv.pop(1)).get_code("__main__"))"""
"""Runs the file as Python imports files, so that it is compiled once and not at every start: 4 ms of 18."""
_CHUNK = 1 << 20


class NotConfined(CompassError):
    """The host offers none of the means."""


@dataclass(frozen=True)
class Limits:
    """Resource limits of a program: seconds by the clock, and of processor time, of which the system counts whole ones alone;
    bytes of address space, bytes on stdout and on stderr."""

    seconds: float = 60
    memory: int = 4 << 30
    output: int = 256 << 20
    messages: int = 1 << 20


@dataclass(frozen=True)
class Permissions:
    """Read access of a confined program: files, folders with their content, and programs, which it may also execute."""

    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    programs: tuple[Path, ...] = ()

    def arguments(self) -> list[str]:
        """The paths as the child process takes them; for a symbolic link its target is granted."""
        kinds = (("file", self.files), ("folder", self.folders), ("program", self.programs))
        return [f"{kind}={os.path.abspath(path)}" for kind, paths in kinds for path in paths]


@dataclass
class Finished:
    """A program that ended: exit status, and what it wrote. `excess` says which limit ended it, empty when none did."""

    status: int
    output: bytes
    messages: str
    excess: str = ""
    means: str = field(default="", compare=False)


def run(
    command: Sequence[str],
    data: bytes,
    permissions: Permissions,
    limits: Limits = Limits(),
    environment: Mapping[str, str] | None = None,
    *,
    trusted: bool = False,
) -> Finished:
    """Runs a program, `data` on its stdin. NotConfined where the host offers no means, unless the input is `trusted`:
    then it runs with limits of time, memory and output only."""
    refusals = []
    for means in (*MEANS, "none") if trusted else MEANS:
        done = _run_by(means, command, data, permissions, limits, environment or {})
        if done.status != REFUSED or done.output:
            return done
        refusals.append(f"{means}: {done.messages.strip() or 'no reason given'}")
    raise NotConfined("this host offers no means to confine a program", code="no-sandbox", notes=tuple(refusals))


@lru_cache(maxsize=4)
def available(means: tuple[str, ...] = MEANS) -> str:
    """The first of the means that this host offers; empty when it offers none."""
    for one in means:
        if _run_by(one, (), b"", Permissions(), Limits(), {}).status == 0:
            return one
    return ""


def _run_by(
    means: str,
    command: Sequence[str],
    data: bytes,
    permissions: Permissions,
    limits: Limits,
    environment: Mapping[str, str],
) -> Finished:
    source = os.memfd_create("input", os.MFD_CLOEXEC)
    try:
        with open(source, "wb", closefd=False) as file:
            file.write(data)
        os.lseek(source, 0, os.SEEK_SET)
        process = _started(means, command, source, permissions, limits, environment)
    finally:
        os.close(source)
    with process:
        try:
            output, messages, excess = _collect(process, limits)
        finally:
            process.kill()
    return Finished(process.returncode, output, messages.decode(errors="replace"), excess, means)


def _started(
    means: str,
    command: Sequence[str],
    source: int,
    permissions: Permissions,
    limits: Limits,
    environment: Mapping[str, str],
) -> subprocess.Popen[bytes]:
    """The process that confines itself and becomes the program, with the descriptor `source` as its stdin."""
    words = [
        f"means={means}",
        f"parent={os.getpid()}",
        f"seconds={math.ceil(limits.seconds)}",
        f"memory={limits.memory}",
        *permissions.arguments(),
        *(f"variable={name}={value}" for name, value in environment.items()),
        *(("--", *command) if command else ()),
    ]
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-c", _START, str(_CHILD), *words],
        stdin=source,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={},
    )


def _collect(process: subprocess.Popen[bytes], limits: Limits) -> tuple[bytes, bytes, str]:
    """(stdout, stderr, limit that was passed or "") of a process that has ended or is about to be ended."""
    assert process.stdout is not None and process.stderr is not None
    parts = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    most = dict(zip(parts, ((limits.output, ""), (limits.messages, " of messages"))))
    end, excess = time.monotonic() + limits.seconds, ""
    with selectors.DefaultSelector() as selector:
        for stream in parts:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map() and not excess:
            ready = selector.select(max(end - time.monotonic(), 0))
            if not ready and time.monotonic() >= end:
                excess = f"it took more than {limits.seconds} seconds"
            for key, _ in ready:
                part = os.read(key.fd, _CHUNK)
                parts[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
                elif len(parts[key.fd]) > most[key.fd][0]:
                    size, kind = most[key.fd]
                    excess = f"it wrote more than {size >> 20} MiB{kind}"
    if not excess:
        try:
            process.wait(max(end - time.monotonic(), 1))
        except subprocess.TimeoutExpired:
            excess = f"it took more than {limits.seconds} seconds"
    output, messages = (bytes(part) for part in parts.values())
    return output, messages, excess
