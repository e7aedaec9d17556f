"""Files: written whole or not at all, read up to a limit. Every file that the toolchain leaves behind goes through here."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from io import FileIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.files import claims
from compass_core.files.pieces import Piece, Pieces, Stored
from compass_core.reading.limits import FILE_BYTES, TEXT_BYTES, Limit

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

Content = bytes | bytearray | str | Pieces | Callable[[Path], object]
"""The content of a file: bytes, whole or in pieces; text (UTF-8, names of files that are none escaped); or a function that writes it to the path it is given."""

P = TypeVar("P")
T = TypeVar("T")
_CHUNK = 1 << 20
_LARGE = 1 << 22
"""Bytes from which on large pages of memory, the blocks of a file at once, and threads are worth it."""
_THREADS = 4
"""Most threads that read or write a file: a few are as fast as memory is."""


# ------------------------------------------------------------------------------------------------------------- writing


def write(path: Path, content: Content, mode: int = 0o666) -> Path:
    """Write a file atomically: readers see the old content or the new one. Returns its path; CompassError on failure.

    Links are written through, and the file keeps its permissions; a new one gets `mode` without what umask takes. What
    is no regular file (a device, a pipe) is never replaced: it gets the bytes. Missing folders are made.
    """
    write_all({path: content}, mode)
    return path


def write_all(contents: Mapping[Path, Content], mode: int = 0o666) -> None:
    """Write several files, of which none gets its name before all are complete; see `write`."""
    staged: list[_Staged] = []
    path = Path()
    try:
        for path, content in contents.items():
            staged.append(_Staged.make(path, content, mode))
        for item in staged:
            path = item.path
            item.commit()
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        for item in staged:
            item.discard()


def write_pages(folder: Path, pages: Mapping[str, str]) -> list[Path]:
    """Write texts by their names into a folder of Markdown pages, and remove the pages that are no more."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.md"):
        if old.name not in pages:
            old.unlink()
    return [write(folder / name, text) for name, text in pages.items()]


def unwritable(path: Path, error: OSError) -> CompassError:
    """The error of a file that the system does not let be written."""
    return CompassError(f"cannot write '{path}': {error.strerror or error}", code="unwritable")


def _is_missing(path: Path) -> bool:
    """Whether nothing has a path's name, no link either: most files are written once, so that there is nothing to regard."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    except OSError:  # told by what is done with the path
        pass
    return False


def is_special(path: Path) -> bool:
    """Whether a path names something that is not a regular file or a folder, or an open file of this process
    (`/dev/stdout`): it can be written to, but nothing lies beside it."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    return not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)) or _is_descriptor(path)


def destination(path: Path) -> Path:
    """The file that is written when `path` is: the end of a chain of links."""
    return Path(os.path.realpath(path)) if path.is_symlink() and not is_special(path) else path


def _is_descriptor(path: Path) -> bool:
    """Whether a path leads through links to an entry of /proc, which is no place for other files."""
    for _ in range(40):  # as many links as Linux follows
        if os.path.realpath(path.parent).startswith(("/proc/", "/dev/fd")):
            return True
        if not path.is_symlink():
            return False
        path = path.parent / os.readlink(path)
    return False


@dataclass
class _Staged:
    """A file that is being written under a temporary name; `commit` renames it to its final one."""

    path: Path
    target: Path
    partial: Path | None
    content: Content

    @classmethod
    def make(cls, path: Path, content: Content, mode: int) -> _Staged:
        fresh = _is_missing(path)
        if not fresh and is_special(path):
            return cls(path, path, None, content)
        claims.refuse_input(path)
        target = path if fresh else destination(path)
        if not fresh and target.is_dir():
            raise IsADirectoryError(21, os.strerror(21), str(path))
        try:
            partial = _complete(target, content, mode, fresh)
        except PermissionError:
            if not os.access(target, os.W_OK):  # a file that may be written in a folder that may not
                raise
            return cls(path, target, None, content)
        return cls(path, target, partial, content)

    def commit(self) -> None:
        if self.partial is None:
            _pour(self.target, self.content)
            return
        try:
            os.replace(self.partial, self.target)
        except OSError as error:
            if error.errno != 16:  # EBUSY: a file that something is mounted on
                raise
            _pour(self.target, self.partial.read_bytes())
        else:
            self.partial = None

    def discard(self) -> None:
        if self.partial is not None:
            self.partial.unlink(missing_ok=True)


def _complete(target: Path, content: Content, mode: int, fresh: bool) -> Path:
    """A new file beside `target` with the content and the permissions that `target` has, or where it is `fresh`, is to have."""
    partial = target.with_name(f".{target.name[:40]}.{os.getpid()}.{os.urandom(6).hex()}.tmp")
    handle = _opened(partial, mode)
    try:
        wanted = made = stat.S_IMODE(os.fstat(handle).st_mode)
        if not fresh:
            try:
                wanted = stat.S_IMODE(os.stat(target).st_mode) | (mode & made & 0o111)
            except FileNotFoundError:
                pass  # where a link leads to
        if callable(content):
            content(partial)
            made = stat.S_IMODE(os.stat(partial).st_mode)
            wanted |= made & 0o111  # what a writer made a program stays one
        else:
            if isinstance(content, Pieces) and len(content) >= _LARGE:
                _make_room(handle, len(content))
                _put_side_by_side(handle, content)
            else:
                _put(handle, content)
        if made != wanted:
            os.chmod(partial, wanted)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    return partial


def _opened(new: Path, mode: int) -> int:
    """A new file, in a folder that is made where there is none."""
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
    try:
        return os.open(new, flags, mode)
    except (FileNotFoundError, NotADirectoryError):
        new.parent.mkdir(parents=True, exist_ok=True)
        return os.open(new, flags, mode)


def _pour(path: Path, content: Content) -> None:
    """Write into an existing device or pipe, or a file that cannot be replaced."""
    if callable(content):
        import tempfile

        with tempfile.TemporaryDirectory(prefix="compass-") as folder:
            made = Path(folder, "content")
            made.touch()
            content(made)
            content = made.read_bytes()
    regular = stat.S_ISREG(os.stat(path).st_mode)
    flags = (os.O_APPEND if _is_descriptor(path) else os.O_TRUNC) if regular else 0
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY | flags)
    try:
        _put(handle, content)
    finally:
        os.close(handle)


def _make_room(handle: int, size: int) -> None:
    """Gives a new file its blocks at once: a large one is written in half the time then, and a full disk is known before."""
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):  # else the file system cannot, or may not
                raise


def _put(handle: int, content: bytes | bytearray | str | Pieces) -> None:
    for part in content if isinstance(content, Pieces) else [content]:
        rest = memoryview(part.encode("utf-8", "backslashreplace") if isinstance(part, str) else part)
        while rest:
            rest = rest[os.write(handle, rest) :]


def _put_side_by_side(handle: int, content: Pieces) -> None:
    """Writes what begins a regular file; what is made while it is written is made by several threads."""

    def put(at: int, part: Piece | Pieces) -> None:
        for piece in part if isinstance(part, Pieces) else [part]:
            rest = memoryview(piece)
            while rest:
                size = os.pwrite(handle, rest, at)
                at, rest = at + size, rest[size:]

    _side_by_side(put, content.apart())


def _side_by_side(work: Callable[[int, P], T], items: Iterable[tuple[int, P]]) -> list[T]:
    """What `work` gives for places of a file and what is written or read there, by threads. What one raises is raised, when
    all that have begun are done."""
    pool = _pool(min(_THREADS, os.cpu_count() or 1))
    try:
        return [job.result() for job in [pool.submit(copy_context().run, work, at, it) for at, it in items]]
    finally:
        pool.shutdown(cancel_futures=True)


def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads; what has them is not imported where nothing is large."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(threads)


# ------------------------------------------------------------------------------------------------------------- reading


def read(path: Path, limit: Limit = FILE_BYTES, code: str = "unreadable") -> bytes:
    """The content of a file or a pipe. CompassError when it cannot be read, is larger than `limit`, or is a
    device without an end."""
    try:
        with path.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if stat.S_ISBLK(status.st_mode) or (stat.S_ISCHR(status.st_mode) and not _may_end(path, file.isatty())):
                raise CompassError(f"cannot read '{path}': it is a device, not a file", code=code)
            limit.check(status.st_size, str(path))
            parts = [part for part in _chunks(file.fileno(), limit.most, max(_CHUNK, status.st_size + 1)) if part]
    except OSError as error:
        raise CompassError(f"cannot read '{path}': {error.strerror or error}", code=code) from None
    data = parts[0] if len(parts) == 1 else b"".join(parts)
    limit.check(len(data), str(path))
    return data


def open_regular(path: Path) -> int:
    """A descriptor to read a regular file by; the caller closes it. OSError for anything else, at once: a pipe that nobody
    writes to would be waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise OSError(0, "it is no regular file")


def read_regular(path: Path, limit: Limit = FILE_BYTES, code: str = "unreadable") -> bytes:
    """As `read`, of a regular file; for files that nobody named one by one."""
    try:
        with open(open_regular(path), "rb") as file:
            limit.check(os.fstat(file.fileno()).st_size, str(path))
            return read_stream(file, str(path), limit)
    except OSError as error:
        raise CompassError(f"cannot read '{path}': {error.strerror or error}", code=code) from None


def view(path: Path, limit: Limit = FILE_BYTES) -> memoryview:
    """As `read`, for a file of which parts are used: a large one lies in large pages, which are faster to fill."""
    import mmap

    try:
        size = path.stat().st_size if path.is_file() else 0
        if not _LARGE <= size <= limit.most:
            return memoryview(read(path, limit))
        room = mmap.mmap(-1, size + 1, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # what is shared has small pages
        if hasattr(mmap, "MADV_HUGEPAGE"):
            room.madvise(mmap.MADV_HUGEPAGE)
        whole, ends = memoryview(room), [size * i // _THREADS for i in range(1, _THREADS)]
        with path.open("rb", buffering=0) as file:
            parts = [whole[start:stop] for start, stop in pairwise((0, *ends, size))]
            filled = _side_by_side(partial(_fill, file.fileno()), zip((0, *ends), parts, strict=True))
            is_whole = all(filled) and not os.pread(file.fileno(), 1, size)
    except OSError as error:
        raise CompassError(f"cannot read '{path}': {error.strerror or error}", code="unreadable") from None
    # a file that changes its size meanwhile is read anew
    return whole[:size].toreadonly() if is_whole else memoryview(read(path, limit))


def begin_view(path: Path, limit: Limit = FILE_BYTES) -> Callable[[], memoryview]:
    """As `view`, while other work goes on; what is given waits for it."""
    pool = _pool(1)
    job = pool.submit(copy_context().run, view, path, limit)
    pool.shutdown(wait=False)
    return job.result


def _fill(handle: int, at: int, room: memoryview) -> bool:
    """Reads what a file has from a place on, as much as there is room for; whether it has so much."""
    while room and (size := os.preadv(handle, [room], at)):
        at, room = at + size, room[size:]
    return not room


def stored(path: Path, limit: Limit = FILE_BYTES, code: str = "unreadable") -> bytes | Pieces:
    """As `read`; a large file stays where it is, and its bytes are read when they are asked for."""
    try:
        if not path.is_file() or path.stat().st_size < _LARGE:
            return read(path, limit, code)
        kept = Stored(FileIO(path), str(path))
    except OSError as error:
        raise CompassError(f"cannot read '{path}': {error.strerror or error}", code=code) from None
    limit.check(len(kept), str(path))
    return kept


def read_stream(stream: BinaryIO, name: str, limit: Limit = FILE_BYTES) -> bytes:
    """All that comes from an open stream; CompassError when that is more than `limit`."""
    data = stream.read(limit.most + 1)
    limit.check(len(data), name)
    return data


def read_text(path: Path, limit: Limit = TEXT_BYTES) -> str:
    """The content of a text file (UTF-8); CompassError when it cannot be read as one."""
    try:
        return read(path, limit).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise CompassError(f"'{path}' is not a text file", code="unreadable") from None


def _may_end(path: Path, terminal: bool) -> bool:
    return terminal or os.path.realpath(path) == os.devnull


def _chunks(handle: int, limit: int, size: int) -> Iterator[bytes]:
    """The content in parts, until its end or a little beyond the limit."""
    total = 0
    while total <= limit:
        part = os.read(handle, min(size, limit + 1 - total) or 1)
        yield part
        if not part:
            return
        total += len(part)


# ------------------------------------------------------------------------------------------------------------- folders


@contextmanager
def locked(folder: Path, waiting: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Lock a folder, which is created if needed, against other threads and processes that lock it.

    `waiting` is called once when somebody else has it. The lock is one of the system: it ends with its process. On a
    file system that has no locks there is none.
    """
    handle = _held(folder, waiting)
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


_MOST_LOST = 100
"""How often a folder may be removed between being made and being opened, before it counts as one that cannot be made."""


def _held(folder: Path, waiting: Callable[[], object]) -> int | None:
    import errno
    import fcntl

    told = False
    lost = 0
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            lost += isinstance(error, FileNotFoundError)
            if 0 < lost < _MOST_LOST:  # removed in this moment
                continue
            raise unwritable(folder, error) from None
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not told:
                    waiting()
                told = True
                fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            os.close(handle)
            if error.errno in (errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL):
                return None
            raise
        except BaseException:
            os.close(handle)
            raise
        if _is_still(handle, folder):
            return handle
        os.close(handle)


def _is_still(handle: int, folder: Path) -> bool:
    """Whether the locked folder still has its name: it may have been removed and created again."""
    try:
        now = os.stat(folder)
    except FileNotFoundError:
        return False
    held = os.fstat(handle)
    return (held.st_dev, held.st_ino) == (now.st_dev, now.st_ino)
