"""C texts that this user built on this machine, recognised by a hash with a private key.

The key is a file of random bytes that its owner alone can read; beside it lie the hashes of what was built last. Both are
in the folder STATE_DIR. Whoever writes an aipu.bin cannot make it one of ours, not even with the hashes in hand.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from compass_core import files, switches

_SIZE = 32
_MOST = 1 << 15
"""The number of builds remembered before the older half is dropped."""


def state_folder() -> Path:
    """Folder of key and hashes: `COMPASS_STATE_DIR`, else `$XDG_STATE_HOME/compass`, else `~/.local/state/compass`."""
    named = switches.STATE_DIR.get()
    if named is not None:
        return named.absolute()
    home = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return (Path(home).expanduser() / "compass").absolute()


def remember(content: bytes) -> None:
    """Notes that `content` was built here. Without effect where the folder cannot be written."""
    folder = state_folder()
    try:
        mark = _mark(_key(folder, make=True), content)
        if not _holds(folder, mark):
            with open(folder / "built", "ab") as file:
                file.write(mark)
    except OSError:
        return


def is_ours(content: bytes) -> bool:
    """Whether `content` was built here, and is remembered."""
    folder = state_folder()
    try:
        return _holds(folder, _mark(_key(folder, make=False), content))
    except OSError:
        return False


def _mark(key: bytes, content: bytes) -> bytes:
    import hmac

    return hmac.digest(key, content, "sha256")


def _key(folder: Path, make: bool) -> bytes:
    """The key; OSError where there is none that is this user's alone."""
    path = folder / "key"
    if make and not path.exists():
        _make_key(folder, path)
    place = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(place)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise PermissionError(f"'{path}' can be read by others")
        key = os.read(place, _SIZE)
    finally:
        os.close(place)
    if len(key) != _SIZE:
        raise OSError(f"'{path}' is damaged")
    return key


def _make_key(folder: Path, path: Path) -> None:
    """Makes the key in full or not at all; of several that make it the first wins."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = folder / f".key.{os.getpid()}.{os.urandom(4).hex()}"
    place = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(place, os.urandom(_SIZE))
        os.link(partial, path)
    except FileExistsError:
        return
    finally:
        os.close(place)
        partial.unlink()


def _holds(folder: Path, mark: bytes) -> bool:
    """Whether the mark is noted. A list that has grown long loses its older half."""
    path = folder / "built"
    if not path.is_file():
        return False
    data = path.read_bytes()
    if len(data) > _MOST * _SIZE:
        data = data[-len(data) // 2 // _SIZE * _SIZE :]
        files.write(path, data, 0o600)
    at = data.find(mark)
    while at >= 0 and at % _SIZE:
        at = data.find(mark, at + 1)
    return at >= 0
