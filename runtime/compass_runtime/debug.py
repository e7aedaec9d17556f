"""A kernel under gdb or lldb: its code compiled again for debugging, in a worker that the debugger attaches to.

The debugger learns where the kernel's lines are when the engine loads the code (`sim/engine/debug.h`). The run ends when
the kernel does; a debugger that goes before that ends the kernel, too.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, ToolchainError, UsageError
from compass_core.hostcc.command import DEBUG_FLAGS
from compass_core.hostcc.foreign import is_trusted
from compass_core.hostcc.sources import read_sources
from compass_runtime.variants import variant, with_object

if TYPE_CHECKING:
    import subprocess

    from compass_runtime.job import Job
    from compass_runtime.program import Program
    from compass_sim import Worker

    Arrays = Mapping[str, Array]

_KINDS: tuple[Literal["gdb", "lldb"], ...] = ("gdb", "lldb")
_MEANING = frozenset("\"'`\\:;$")
"""Characters that quoting does not keep debuggers from reading as something else."""
_NO_LIMIT = 1e6
"""Time limit of a run in seconds: days."""
_POLL = 0.01
_GRACE = 1.0
_BASE_TYPE = "DW_TAG_base_type"
_LLDB_DWARF: dict[object, tuple[str, int]] = {
    ("DW_TAG_compile_unit", None): ("DW_AT_language", 0x0C),  # C99
    (_BASE_TYPE, b"__bf16"): ("DW_AT_encoding", 0x07),  # an unsigned integer
}
"""(tag, name of a base type) -> an attribute, and the low byte it is to have."""
_GDB_SAFETY = ("-nx", "-iex", "set auto-load no", "-iex", "set debuginfod enabled off")
_LLDB_SAFETY = ("--no-lldbinit", "-O", "settings set target.load-script-from-symbol-file false")
"""No commands from files of the current folder, of the home folder, or inside the code that is debugged."""
_LLDB_SETTINGS = (
    "settings set plugin.jit-loader.gdb.enable on",
    "settings set stop-line-count-before 1",
    "settings set stop-line-count-after 1",
    'settings set thread-stop-format "${thread.name}, ${thread.stop-reason}\\n"',
    "type format add --format hex bf16",
)


class DebuggerLeft(CompassError):
    """The debugger ended, or let go of the kernel, before the kernel was done."""

    def __init__(self) -> None:
        super().__init__("the debugger left before the kernel was done, so there are no results", code="debugger-left")


@dataclass(frozen=True)
class Debugger:
    """An installed debugger, and whose commands it takes."""

    path: Path
    kind: Literal["gdb", "lldb"]

    def prepared(self, program: Program) -> Program:
        """`program` compiled for this debugger, and a device for it that may be debugged."""
        if not program.content.subgraphs:
            raise CompassError(f"'{program.where}' runs no kernel", code="nothing-to-debug")
        _refuse_foreign(program)
        compiled = variant(program, DEBUG_FLAGS)
        prepared = compiled if self.kind == "gdb" else with_object(compiled, _for_lldb(compiled.code.elf))
        prepared.debugged = True
        return prepared

    def command(self, pid: int, entry: str, folders: Sequence[Path], script: Path | None) -> list[str]:
        """The command line that goes to the first line behind `entry` in the process; then the script, or the user."""
        safety = ("-q", *_GDB_SAFETY) if self.kind == "gdb" else _LLDB_SAFETY
        words = [str(self.path), *safety, *(["--batch"] if script else [])]
        if self.kind == "gdb":
            side = Path(__file__).with_name("gdb_side.py")
            begin = f"python begin_session({pid}, {entry!r}, {[str(f) for f in folders]!r})"
            return [*words, "-x", str(side), "-ex", begin, *(["-x", str(script)] if script else [])]
        commands = [*_LLDB_SETTINGS, *_lldb_begin(pid, entry, folders)]
        return [*words, *(w for c in commands for w in ("-o", c)), *(["-s", str(script)] if script else [])]

    def run(self, job: Job, inputs: Arrays, initial: Arrays, script: Path | None) -> dict[str, Array]:
        """Runs the job under the debugger, which reads commands from `script`, else from the user; gives the outputs.

        DebuggerLeft when the debugger ends first, and everything that goes wrong in the kernel. The job must be one of
        a `prepared` program.
        """
        import subprocess

        worker = job.device.worker
        command = self.command(worker.pid, _first_entry(job.program), _source_folders(job.program), script)
        try:
            process = subprocess.Popen(command)
        except OSError as error:
            raise ToolchainError(f"'{self.path}' does not start: {error.strerror}", code="no-debugger") from None
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the debugger
        done = threading.Event()
        watcher = threading.Thread(target=_end_together, args=(process, worker, done))
        watcher.start()
        try:
            return _run_watched(job, inputs, initial, process)
        finally:
            done.set()
            watcher.join()
            signal.signal(signal.SIGINT, handler)


def _refuse_foreign(program: Program) -> None:
    """CompassError when the program was neither built here nor is trusted: debuggers read what is in it unconfined."""
    sources = read_sources(program.code.elf, program.trusted)
    if not all(is_trusted(source) for source in sources):
        raise CompassError(
            f"'{program.where}' was not built here, and a debugger reads its debug information with all your rights",
            code="untrusted-debug",
            help="build the kernel here; or, if you trust whoever made the file, use --trust",
        )


def _lldb_begin(pid: int, entry: str, folders: Sequence[Path]) -> list[str]:
    places = [word for folder in folders for word in (".", f'"{folder}"')]
    return [
        "settings set target.source-map " + " ".join(places),
        f"process attach --pid {pid}",
        "process handle --stop false --notify false --pass true SIGUSR2",
        "breakpoint set --one-shot true --name debug_kernel_is_known",
        "process continue",
        f"breakpoint set --one-shot true --name {entry}",
        "process continue",
        "thread step-in",
        "expression -- *(int *)&debug_hold = 0",
    ]


def find_debugger(wish: str | None = None) -> Debugger:
    """The debugger called `wish`, `gdb`, `lldb` or a path; without a wish gdb, else lldb. ToolchainError if missing."""
    from shutil import which

    for name in (wish,) if wish else _KINDS:
        kind = next((kind for kind in reversed(_KINDS) if kind in Path(name).name), None)
        if kind is None:
            raise UsageError(
                f"--debugger: '{name}' is neither a gdb nor an lldb",
                code="bad-debugger",
                help="--debugger gdb, --debugger lldb, or the path of one of them",
            )
        if found := which(name):
            return Debugger(Path(found), kind)
    raise ToolchainError(
        f"'{wish}' is not installed" if wish else "no debugger is installed",
        code="no-debugger",
        help="install gdb or lldb (`apt-get install gdb`), or name yours with --debugger PATH",
    )


def _end_together(process: subprocess.Popen[bytes], worker: Worker, done: threading.Event) -> None:
    """No kernel outlives the debugger, but one that it left in a fault may still report that."""
    process.wait()
    done.wait(_GRACE)
    worker.close()


def _run_watched(job: Job, inputs: Arrays, initial: Arrays, process: subprocess.Popen[bytes]) -> dict[str, Array]:
    """The run itself: it begins when the debugger is there, and counts if the debugger still is at the end."""
    worker = job.device.worker
    while not _is_traced(worker.pid) and process.poll() is None:
        time.sleep(_POLL)
    if process.poll() is not None:
        raise DebuggerLeft()
    try:
        results = job.run(inputs, _NO_LIMIT, initial)
    except CompassError as error:
        process.wait()
        if error.code in ("worker-died", "worker-ended"):
            raise DebuggerLeft() from None
        raise
    followed = _is_traced(worker.pid)
    if followed:
        worker.leave()
    process.wait()
    if not followed:
        raise DebuggerLeft()
    return results


def _is_traced(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return False
    return "\nTracerPid:\t0\n" not in status


def _first_entry(program: Program) -> str:
    """The entry function that the first sub-graph calls."""
    first = program.content.subgraphs[0].text_offset
    made: str = next(symbol for symbol, offset in program.code.entries if offset == first)
    return made


def _source_folders(program: Program) -> list[Path]:
    """Where kernel files may lie, whose names the debug information has as the build saw them. Folders whose names mean
    more than a path on a debugger's command line are left out."""
    folder = Path(program.where).absolute().parent
    found = dict.fromkeys((Path.cwd(), folder, folder.parent))
    return [path for path in found if str(path).isprintable() and not _MEANING.intersection(str(path))]


def _for_lldb(elf: bytes) -> bytes:
    """The object with debug information that lldb can read: it looks at no variables of OpenCL, but at those of C, and
    would take bfloat16 for float16: it gets bare bits."""
    import io

    from elftools.elf.elffile import ELFFile

    out = bytearray(elf)
    try:
        file = ELFFile(io.BytesIO(elf))
        section = file.get_section_by_name(".debug_info")
        assert section is not None, "DEBUG_FLAGS ask for it"
        start = section["sh_offset"]
        for unit in file.get_dwarf_info().iter_CUs():
            for die in unit.iter_DIEs():
                name = die.attributes["DW_AT_name"].value if die.tag == _BASE_TYPE else None
                wanted = _LLDB_DWARF.get((die.tag, name))
                if wanted is not None:
                    out[start + die.attributes[wanted[0]].offset] = wanted[1]
    except Exception as error:  # noqa: BLE001 - the library ends in many ways when the information is damaged
        raise CompassError(
            f"the kernel's debug information cannot be read ({type(error).__name__}: {error})", code="bad-debug-info"
        ) from None
    return bytes(out)
