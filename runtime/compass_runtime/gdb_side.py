"""The part of `compass-run --debug` that gdb itself runs, in its own Python: how a session begins, how vectors print, and
the command `tec`.

`compass_runtime.debug` starts gdb with this file and then calls `begin_session`. Nothing of this project can be imported
here: gdb's Python is another one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

import gdb

if TYPE_CHECKING:
    from typing import Protocol

    class _Type(Protocol):
        """gdb.Type, as far as it is used here."""

        code: int
        name: str

        def strip_typedefs(self) -> _Type: ...
        def target(self) -> _Type: ...
        def range(self) -> tuple[int, int]: ...

    class _Value(Protocol):
        """gdb.Value, as far as it is used here."""

        type: _Type
        address: _Value | None

        def __int__(self) -> int: ...
        def __getitem__(self, index: int) -> _Value: ...
        def format_string(self, *, format: str = ..., raw: bool = ...) -> str: ...

    class _Thread(Protocol):
        """gdb.InferiorThread, as far as it is used here."""

        def switch(self) -> None: ...

    class _Decorated(Protocol):
        """gdb.FrameDecorator, as far as it is used here."""

        def function(self) -> str | int | None: ...


_SETTINGS = (
    "set print thread-events off",
    "set breakpoint pending on",
    "set debuginfod enabled off",
    "skip -gfi engine/*",
    "handle SIGUSR2 nostop noprint pass",
    "maint set target-non-stop off",
)
"""Settings that some versions of gdb lack are skipped. With the last one, going on after a breakpoint that does not stop
lets those threads run that the scheduler's lock allows then (`_Waiting`); else only those that ran before."""
_ELEMENTS = {
    "char": "int8",
    "unsigned char": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "int": "int32",
    "unsigned int": "uint32",
    "half": "float16",
    "_Float16": "float16",
    "__bf16": "bfloat16",
    "float": "float32",
}
"""Data types of the DSL by the names that C gives them."""
_BYTES = ("int8", "uint8")
_CHARS = 32
"""Lanes of a native vector of bytes."""
_MOST_ITEMS = 200
_ONE_RUNS = "set scheduler-locking step"
_WAITING = (
    "__compass_barrier",
    "__compass_last_barrier",
    "barrier_leave",
    "__compass_dma",
    "__compass_wait_events",
    "__compass_printf",
)
_ENTRY = "__compass_entry_"
_ENGINE_CODE = 1 << 32
"""Code of kernels lies below, the engine's own above."""


def begin_session(pid: int, entry: str, folders: list[str]) -> None:
    """Attach to the worker and go to the first line of the kernel behind the function `entry`, on TEC 0.

    The other TECs wait before their first line until gdb lets the process run again.
    """
    for setting in _SETTINGS:
        _try(setting)
    _try("directory " + " ".join(f'"{folder}"' for folder in folders))
    _try("set suppress-cli-notifications on")
    try:
        gdb.execute(f"attach {pid}", to_string=True)
        for place in ("debug_kernel_is_known", entry):
            gdb.execute(f"tbreak {place}", to_string=True)
            gdb.execute("continue", to_string=True)
        _try("set suppress-cli-notifications off")
        gdb.execute("step")
        gdb.execute("set {int}&debug_hold = 0")
        _stay_on_one_tec()
    except gdb.error as error:
        print(f"gdb cannot stop in the kernel: {error}")
        gdb.execute("quit 1")


def _stay_on_one_tec() -> None:
    """While one TEC steps the others stand still, so that none of them takes the user away by a breakpoint of its own; but
    they run while it waits for them in the engine."""
    _try(_ONE_RUNS)
    for function in _WAITING:
        _Waiting(function, gdb.BP_BREAKPOINT, internal=True)
    gdb.events.stop.connect(lambda _event: _try(_ONE_RUNS))


class _Waiting(gdb.Breakpoint):
    """The beginning of an engine function in which a TEC may wait for others: all run until the step is done."""

    def stop(self) -> bool:
        _try("set scheduler-locking off")
        return False


def _try(command: str) -> None:
    try:
        gdb.execute(command, to_string=True)
    except gdb.error:
        return


class _Shown:
    """A printer whose text is known."""

    def __init__(self, text: str) -> None:
        self.text = text

    def to_string(self) -> str:
        return self.text


def _printer(value: _Value) -> _Shown | None:
    """How values print for which gdb has no good way: vectors with their data type, masks as 0 and 1, bfloat16, and
    bytes as numbers and not as text."""
    type = value.type.strip_typedefs()
    if type.code == gdb.TYPE_CODE_ARRAY:
        return _array(value, type)
    if type.code == gdb.TYPE_CODE_PTR:
        return _Shown(hex(int(value))) if _element(type.target()) in _BYTES else None
    element = _element(type)
    return _Shown(_text(value, element)) if element == "bfloat16" or element in _BYTES else None


def _array(value: _Value, type: _Type) -> _Shown | None:
    element, count = _element(type.target()), type.range()[1] + 1
    if element is None:
        return None
    if "vector_size" in str(type):
        if (value.type.name or "").startswith("bool") or (element == "int8" and count < _CHARS):
            element = "bool"  # of native vectors only masks are that short
        return _Shown(f"{element}x{count} {_items(value, element, count)}")
    return _Shown(_items(value, element, count)) if element in _BYTES else None


def _element(type: _Type) -> str | None:
    return _ELEMENTS.get(type.strip_typedefs().name)


def _items(value: _Value, element: str, count: int) -> str:
    shown = [_text(value[i], element) for i in range(min(count, _MOST_ITEMS))]
    return f"{{{', '.join(shown)}{', ...' if count > _MOST_ITEMS else ''}}}"


def _text(item: _Value, element: str) -> str:
    if element == "bool":
        return str(int(item) & 1)
    if element == "bfloat16":
        return f"{_bfloat(item):.8g}"
    return str(int(item)) if "int" in element else item.format_string(raw=True)


def _bfloat(item: _Value) -> float:
    """The number that the two bytes are as the upper half of a float32."""
    word: float = struct.unpack("<f", b"\0\0" + _bytes(item))[0]
    return word


def _bytes(item: _Value) -> bytes:
    if item.address is not None:
        return bytes(gdb.selected_inferior().read_memory(int(item.address), 2))
    return int(item.format_string(format="x", raw=True), 16).to_bytes(2, "little")


class _KernelFrames:
    """Backtraces end at the kernel: how the engine calls it is of no interest. `bt -no-filters` shows all."""

    name, priority, enabled = "compass", 100, True

    def filter(self, frames: Iterator[_Decorated]) -> Iterator[_Decorated]:
        return takewhile(lambda frame: not str(frame.function()).startswith(_ENTRY), frames)


class _Tec(gdb.Command):
    """Show where each TEC of the kernel is, or go to one: tec [NUMBER]."""

    def __init__(self) -> None:
        super().__init__("tec", gdb.COMMAND_STACK)

    def invoke(self, argument: str, _from_tty: bool) -> None:
        threads = {t.name: t for t in gdb.selected_inferior().threads() if (t.name or "").startswith("TEC ")}
        if argument:
            thread = threads.get(f"TEC {argument}")
            if thread is None:
                raise gdb.GdbError(f"there is no TEC {argument}")
            _select(thread)
            gdb.execute("frame")
            return
        selected, frame = gdb.selected_thread(), gdb.selected_frame()
        for name in sorted(threads, key=lambda name: int(name[4:])):
            mark = "*" if threads[name] == selected else " "
            print(f"{mark} {name:7}{_select(threads[name])}")
        selected.switch()
        frame.select()


def _select(thread: _Thread) -> str:
    """Makes the thread current, in the innermost frame of its kernel; says where that is."""
    thread.switch()
    frame, inside = gdb.newest_frame(), ""
    while frame is not None:
        sal = frame.find_sal()
        if sal.symtab is not None and frame.pc() < _ENGINE_CODE:
            frame.select()
            return f"{sal.symtab.filename.removeprefix('./')}:{sal.line}{inside}"
        inside, frame = f", in {frame.name()}()" if frame.name() else inside, frame.older()
    return "not in the kernel"


gdb.pretty_printers.append(_printer)
gdb.frame_filters[_KernelFrames.name] = _KernelFrames()
_Tec()
