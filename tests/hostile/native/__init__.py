"""The C readers under clang's sanitizers, with inputs that its libFuzzer makes by coverage.

Without a clang that has these run-time libraries, or a linker for them, there is nothing to run (`why_not`).
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compass_core.errors import CompassError
from compass_core.hostcc.clang import find_clang

ROOT = Path(__file__).parents[3]
FLAGS = ("-g", "-O0", '-DCOMPASS_VERSION="0"', "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
"""Not optimised: a sanitizer then sees also what an optimiser takes out, and to compile takes a third of the time."""
INCLUDES = ("sim/engine", "runtime/native", "runtime/include", "runtime/daemon")
LIMITS = (
    "-timeout=5",
    "-rss_limit_mb=1024",
    "-max_len=65536",
    "-len_control=0",
    "-print_final_stats=1",
    "-verbosity=1",
    "-print_funcs=0",  # names of functions need another program, which a busy machine is slow to start
)

APART = ("/bin/sh", "-c", '"$@"; exit "$?"', "sh")
"""A process between: the peak of memory that is held against the limit begins with that of whoever starts the program."""


@dataclass(frozen=True)
class NativeTarget:
    """A C reader: its entry is `NAME.c` beside this file, `sources` is what it tries."""

    name: str
    sources: tuple[str, ...]
    corpus: Callable[[], list[bytes]]


def _objects() -> list[bytes]:
    from tests.hostile.targets import TARGETS

    return TARGETS["debug"].corpus()


def _texts() -> list[bytes]:
    from compass_core.elf.hostcode import make_text_blob

    blobs = [make_text_blob(data, ["__compass_entry_vadd"], "avx2", "x86_64-linux-gnu") for data in _objects()]
    return [bytes((pc, 0)) + blob for blob in blobs for pc in (0, 20, 200)]


def _containers() -> list[bytes]:
    from tests.hostile.container import corpus

    return corpus()


def _conversations() -> list[bytes]:
    """What clients of a server send: greetings, and calls, with programs that they upload."""
    from compass_runtime.rpc import wire
    from tests.hostile.messages import conversations

    hello = b"".join(
        wire.packed(wire.Kind.HELLO, 0, {"role": "client", "nonce": "0" * 64, "key": "", "session_timeout": 1.5})
    )
    proof = b"".join(wire.packed(wire.Kind.PROOF, 0, {"proof": "0" * 64}))
    programs = sorted(_containers(), key=len)[:4]
    return [b"\1" + wire.preamble() + hello + proof, *(b"\0" + calls for calls in conversations(programs))]


def _descriptors() -> list[bytes]:
    """Programs for the AIFF, with what they refer to, as the device has them in memory."""
    import numpy as np

    from compass_sim.aiff import DeviceMemory
    from compassc.pysim.accelerator import words_of
    from tests.aiff.programs import Convolution, Pool, Table

    rng = np.random.default_rng(0)
    table = Table(
        rng.integers(0, 256, 256).astype(np.uint8), rng.integers(-128, 128, 257).astype(np.int16), "X3P_1304", 2
    )
    found = []
    for program in (
        Pool(4, 4),
        Pool(3, 3, 16, (1, 1), dtype="uint16", nhwc=True),
        Convolution(2, 2, 32, (8, 8)),
        table,
    ):
        memory = DeviceMemory()
        chains = program.aiff().gen_descriptor()
        addresses = [memory.place(words_of(chain, memory)) for chain in chains]
        image = bytearray()
        for address, array in memory.arrays():
            image += bytes(address - 256 - len(image)) + array.tobytes()
        head = [int(program is table) | 0x1FF << 1, *addresses]
        found.append(np.array(head, np.uint32).tobytes() + bytes(image))
    return found


NATIVE = {
    target.name: target
    for target in (
        NativeTarget(
            "aiff",
            tuple(f"sim/engine/aiff_{part}.c" for part in ("chain", "library", "rules", "units", "weights")),
            _descriptors,
        ),
        NativeTarget("object", ("sim/engine/object.c",), _objects),
        NativeTarget(
            "rpcd",
            tuple(
                f"runtime/daemon/{part}.c"
                for part in (
                    "calls",
                    "channel",
                    "container",
                    "driver",
                    "folder",
                    "greeting",
                    "json",
                    "programs",
                    "session",
                    "sha256",
                )
            ),
            _conversations,
        ),
        NativeTarget("lines", ("runtime/native/lines.c",), _texts),
        NativeTarget(
            "native-container",
            ("runtime/native/file.c", "runtime/native/fail.c", "runtime/native/status.c"),
            _containers,
        ),
    )
}
"""All targets in C by name."""


def build(target: NativeTarget, folder: Path) -> Path:
    """The program that tries a target; CalledProcessError with what clang says when it cannot be built."""
    program = folder / target.name
    entry = Path(__file__).with_name(f"{target.name.removeprefix('native-')}.c")
    files = [str(entry), *(str(ROOT / source) for source in target.sources)]
    includes = [f"-I{ROOT / include}" for include in INCLUDES]
    clang = str(find_clang(None).path)
    words = [clang, *FLAGS, *_library_path(clang), *includes, *files, "-o", str(program)]
    subprocess.run(words, check=True, capture_output=True, text=True)
    return program


def _library_path(clang: str) -> list[str]:
    """Where programs find the C++ library that libFuzzer needs, when it came with clang."""
    found = subprocess.run(
        [clang, "-print-file-name=libc++.so.1"], check=False, capture_output=True, text=True
    ).stdout.strip()
    return [f"-Wl,-rpath,{Path(found).parent}"] if Path(found).is_absolute() else []


@cache
def why_not() -> str:
    """Why the C targets cannot run here; empty when they can."""
    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "empty.c")
        source.write_text("int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return n && !d; }\n")
        try:
            clang = str(find_clang(None).path)
            program = str(Path(name, "x"))
            words = [clang, *FLAGS, *_library_path(clang), str(source), "-o", program]
            done = subprocess.run(words, check=False, capture_output=True, text=True)
            if done.returncode == 0:
                done = subprocess.run([program, "-runs=1"], check=False, capture_output=True, text=True)
        except CompassError as error:
            return error.message
        return f"libFuzzer and the sanitizers do not work here: {done.stderr.strip()[-300:]}" if done.returncode else ""


@dataclass(frozen=True)
class NativeRun:
    """How a run ended: the inputs tried, the code covered (edges), and what a sanitizer or a limit reported."""

    target: str
    inputs: int
    covered: int
    failure: str
    seconds: float

    def report(self, seed: int) -> str:
        """One line on the run, and what was found."""
        line = (
            f"{self.target}: {self.inputs} inputs from seed {seed} in {self.seconds:.0f} s: {self.covered} edges covered, "
            f"{'a failure' if self.failure else '0 failures'}"
        )
        return f"{line}\n{self.failure}" if self.failure else line


def run(target: NativeTarget, count: int, seed: int, keep: Path | None = None) -> NativeRun:
    """Tries `count` inputs; the one that fails goes to `keep`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program, corpus = build(target, folder), folder / "corpus"
        corpus.mkdir()
        for i, data in enumerate(target.corpus()):
            (corpus / f"start{i}").write_bytes(data)
        artifacts = f"-artifact_prefix={keep or folder}/"
        words = [*APART, str(program), f"-runs={count}", f"-seed={seed + 1}", *LIMITS, artifacts, str(corpus)]
        start = time.monotonic()
        done = subprocess.run(words, check=False, capture_output=True, text=True, errors="replace", cwd=folder)
        seconds = time.monotonic() - start
    tried = re.findall(r"number_of_executed_units: (\d+)", done.stderr)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    failure = done.stderr[-3000:] if done.returncode else ""
    return NativeRun(target.name, int(tried[-1]) if tried else 0, int(covered[-1]) if covered else 0, failure, seconds)
