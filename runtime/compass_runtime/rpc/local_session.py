"""A session without a server: the interface of one, on this process and its devices."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import files
from compass_runtime.devices import Device, device
from compass_runtime.errors import MissingFunction
from compass_runtime.module import Module, unpack
from compass_runtime.packed import get_global_func
from compass_runtime.rpc.folder import Folder
from compass_runtime.rpc.limits import Quota
from compass_runtime.rpc.wire import PIECE

if TYPE_CHECKING:
    from typing_extensions import Self


class LocalSession:
    """Functions, devices and modules of this process, and files in a folder that goes with the session. Programs that can do
    without a server are written once. RPCError for names that leave the folder."""

    def __init__(self) -> None:
        root = Path(tempfile.mkdtemp(prefix="compass-local-"))
        self._folder = Folder(root, Quota.disk)
        self._end = weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)

    def get_function(self, name: str) -> Callable[..., object]:
        """A global function of this process. MissingFunction, an AttributeError, where there is none of that name."""
        from compass_runtime.rpc import testing  # noqa: F401 (its functions are those of every server)

        found = get_global_func(name, allow_missing=True)
        if found is None:
            raise MissingFunction(f"there is no function '{name}'", code="no-function")
        return found

    def device(self, dev_type: str | int, dev_id: int = 0) -> Device:
        """A device of this machine."""
        return device(dev_type, dev_id)

    def cpu(self, index: int = 0) -> Device:
        return device("cpu", index)

    def cuda(self, index: int = 0) -> Device:
        return device("cuda", index)

    def upload(self, data: str | Path | bytes | bytearray, target: str | None = None) -> None:
        """Copies a file, or bytes under the name `target`, into the folder."""
        if isinstance(data, (bytes, bytearray)):
            if target is None:
                raise ValueError("bytes need a name in the session: upload(data, target)")
            self._folder.write(target, 0, data)
        else:
            self._folder.write(target or Path(data).name, 0, files.read(Path(data)))

    def download(self, path: str) -> bytearray:
        """The content of a file in the folder."""
        found = bytearray()
        while piece := self._folder.read(path, len(found), PIECE):
            found += piece
        return found

    def remove(self, path: str) -> None:
        """Deletes a file; one that is not there is no error."""
        self._folder.remove(path)

    def listdir(self, path: str = "") -> str:
        """The names in a folder of the session, with commas between them."""
        return ",".join(self._folder.names(path))

    def list_files(self, path: str = "") -> list[str]:
        """All files below a folder of the session."""
        return self._folder.files(path)

    def load_module(self, path: str) -> Module:
        """Loads an uploaded file: an aipu.bin, or what `export_library` wrote."""
        from compass_runtime.compass_module import CompassModule

        data = files.read(self._folder.path(path))
        loaded: Module = CompassModule(data) if data[:4] == b"\x7fELF" else unpack(data, path)
        return loaded

    def close(self) -> None:
        """Removes the folder."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
