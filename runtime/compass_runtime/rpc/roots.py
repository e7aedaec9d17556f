"""Folders of processes that may be killed: each is locked as long as its process lives, and the next one removes what is left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


class Root:
    """A new folder in the system's temporary one, whose name begins with `prefix`. What processes of this user that were killed have
    left under such names is removed first."""

    def __init__(self, prefix: str) -> None:
        parent = Path(tempfile.gettempdir())
        for left in parent.glob(f"{prefix}*"):
            _remove_left(left)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            lock = _locked(self.path)
            if lock is not None and self.path.exists():  # who sweeps could have come in between
                self._lock = lock
                return
            if lock is not None:
                os.close(lock)

    def remove(self) -> None:
        """Deletes it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def leave(self) -> None:
        """In a forked process: the lock is the parent's."""
        os.close(self._lock)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the folder's lock; None where somebody else does, or the folder is none of this user."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    with suppress(OSError):
        if os.fstat(descriptor).st_uid == os.getuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
    os.close(descriptor)
    return None


def _remove_left(folder: Path) -> None:
    """Removes a folder whose process has ended."""
    lock = _locked(folder)
    if lock is not None:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
