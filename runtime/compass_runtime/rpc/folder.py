"""The folder of a session: the only files that it reads and writes, and how much they may take."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from compass_runtime.rpc.errors import RPCError

MOST_FILES = 10_000
MOST_FOLDERS = 1_000
"""They stay when their files go."""
_MOST_PARTS = 16


class Folder:
    """Files below `root`, by relative names. All together they have at most `limit` bytes."""

    def __init__(self, root: Path, limit: int) -> None:
        self.root, self._limit = root.resolve(), limit
        self._sizes: dict[Path, int] = {}
        self._folders: set[Path] = set()

    def path(self, name: str) -> Path:
        """The path of a name. RPCError for one that leaves the folder."""
        if name.startswith("/"):  # what `workpath` gave
            name = name.removeprefix(f"{self.root}/")
        parts = name.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts) or len(parts) > _MOST_PARTS:
            raise self._wrong(name)
        if any(len(part.encode("utf-8", "surrogatepass")) > 255 for part in parts):
            raise self._wrong(name)
        found = self.root.joinpath(*parts)
        try:
            inside = found.parent.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError, ValueError):
            inside = False
        if not inside:
            raise self._wrong(name)
        return found

    @staticmethod
    def _wrong(name: str) -> RPCError:
        return RPCError(
            f"{name!r:.200} is no name of a file in the session's folder",
            code="rpc-file",
            help="names are relative, without '..'",
        )

    @contextmanager
    def _opened(self, name: str, flags: int) -> Iterator[int]:
        path = self.path(name)
        try:
            descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        except (OSError, ValueError) as error:
            raise RPCError(
                f"the file {name!r:.200} cannot be opened: {getattr(error, 'strerror', error)}", code="rpc-file"
            ) from None
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def write(self, name: str, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Puts bytes into a file, which is made, with its folders, where there is none; at offset 0 it begins anew.
        RPCError beyond the limit of the session, and for a gap."""
        path = self.path(name)
        before = 0 if offset == 0 else self._sizes.get(path, 0)
        if not 0 <= offset <= before:
            raise RPCError(f"the file {name!r:.200} has {before} bytes, not {offset}", code="rpc-file")
        size = max(before, offset + len(data))
        others = sum(self._sizes.values()) - self._sizes.get(path, 0)
        if others + size > self._limit:
            raise RPCError(
                f"the files of a session may have {self._limit} bytes; with {name!r:.200} they would have {others + size}",
                code="rpc-quota",
            )
        if path not in self._sizes and len(self._sizes) >= MOST_FILES:
            raise RPCError(f"a session may have {MOST_FILES} files", code="rpc-quota")
        new = set(path.relative_to(self.root).parents[:-1]) - self._folders
        if len(self._folders) + len(new) > MOST_FOLDERS:
            raise RPCError(f"a session may have {MOST_FOLDERS} folders", code="rpc-quota")
        self._folders |= new
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RPCError(f"no folder for {name!r:.200}: {error.strerror}", code="rpc-file") from None
        with self._opened(name, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if offset == 0 else 0)) as file:
            self._sizes[path] = size
            view = memoryview(data)
            while view:
                done = os.pwrite(file, view, offset)
                offset, view = offset + done, view[done:]

    def read(self, name: str, offset: int, size: int) -> bytes:
        """Bytes of a file, fewer where it ends."""
        with self._opened(name, os.O_RDONLY) as file:
            try:
                return os.pread(file, size, offset)
            except OSError as error:
                raise RPCError(f"the file {name!r:.200} cannot be read: {error.strerror}", code="rpc-file") from None

    def remove(self, name: str) -> None:
        """Deletes a file; one that is not there is no error."""
        path = self.path(name)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise RPCError(f"the file {name!r:.200} cannot be removed: {error.strerror}", code="rpc-file") from None
        self._sizes.pop(path, None)

    def names(self, name: str) -> list[str]:
        """What lies in a folder, sorted; of the session's own folder for `.` and empty names."""
        path = self.root if name in ("", ".", "./", str(self.root)) else self.path(name.rstrip("/"))
        try:
            return sorted(os.listdir(path))
        except OSError as error:
            raise RPCError(f"there is no folder {name!r:.200}: {error.strerror}", code="rpc-file") from None

    def files(self, name: str) -> list[str]:
        """All files below a folder, by their names from the session's own one."""
        path = self.root if name in ("", ".", "./", str(self.root)) else self.path(name.rstrip("/"))
        found = [Path(top, file).relative_to(self.root) for top, _, names in os.walk(path) for file in names]
        return sorted(map(str, found))
