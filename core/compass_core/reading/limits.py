"""The table of limits on input from outside, which the code uses and docs/security.md shows.

`python -m compass_core.reading.limits` prints the table as it stands in the document.
"""

from __future__ import annotations

from collections.abc import Iterator

from compass_core.errors import CompassError, Span
from compass_core.namedtuple import NamedTuple
from compass_core.switches import BUDGET

CODE = "limit-exceeded"
HELP = "`python -m compass_core.reading.limits` prints the table of limits"


class Limit(NamedTuple):
    """The most that is taken of something: `most` times `unit` of `what`. `header`: the C file and macro that say the
    same to the engine or the C library, empty where C has no part in it. `elastic`: the switch COMPASS_BUDGET raises it.
    `per_byte`: how much more there may be for each byte of the file (of a budget, which knows the size)."""

    most: int
    unit: str
    what: str
    header: tuple[str, str] = ("", "")
    elastic: bool = False
    per_byte: int = 0

    def check(self, amount: int, where: str, span: Span | None = None) -> None:
        """CompassError naming `where`, the file or its part, when `amount` is more."""
        if amount > self.most and amount > self.allowed:
            raise self.error(where, span, f"{amount} {self.unit}", amount)

    @property
    def allowed(self) -> int:
        """`most`, as COMPASS_BUDGET raises it."""
        return self.most * BUDGET.get() if self.elastic else self.most

    def error(self, where: str, span: Span | None = None, found: str = "more", amount: int = 0) -> CompassError:
        """The error for a value beyond the limit. `amount`: for which the help says how the limit is raised."""
        help = f"COMPASS_BUDGET={-(-amount // self.most)} allows it; {HELP}" if self.elastic and amount else HELP
        shown = self._replace(most=self.allowed).shown
        return CompassError(f"{where}: {found}, but {self.what} may have {shown} at most", span, code=CODE, help=help)

    @property
    def shown(self) -> str:
        """`16 MiB`, `4,096 sections`."""
        if self.unit == "bytes":
            for power, name in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
                if self.most % (1 << power) == 0:
                    return f"{self.most >> power} {name}"
        return f"{self.most:,} {self.unit}"

    @property
    def row(self) -> str:
        """What the table says of it."""
        more = f", and {self.per_byte} more for each byte of the file" if self.per_byte else ""
        return f"{self.shown}{more}{' (`COMPASS_BUDGET`)' if self.elastic else ''}"


FILE_BYTES = Limit(4 << 30, "bytes", "a file that is read")
UNPACKED_BYTES = Limit(1 << 30, "bytes", "the arrays of a packed archive (`.npz`)", elastic=True, per_byte=4)
TEXT_BYTES = Limit(64 << 20, "bytes", "a text that is read: a source file, IR, C, parameters", elastic=True)
EXCERPT_BYTES = Limit(16 << 20, "bytes", "a source file whose lines an error or a profile shows")
JSON_DEPTH = Limit(256, "levels", "JSON from a file (line maps, parameters, descriptions of modules and graphs)")
RECORD_BYTES = Limit(256 << 10, "bytes", "the record of a build (`build.yaml`)")
TUNING_RECORD = Limit(1 << 20, "bytes", "a line of tuning records")
IR_DEPTH = Limit(200, "levels", "IR text: expressions and blocks in each other")
GRAPH_LAYERS = Limit(20_000, "layers", "a Compass IR graph")
MODULES = Limit(1024, "modules", "a module file")
MODULE_IMPORTS = Limit(4096, "imports", "a module file")
DEBUG_BYTES = Limit(4 << 20, "bytes", "the line tables of an object, with the texts they name, uncompressed")
DEBUG_FILES = Limit(16384, "files and folders", "the line tables of an object")
DEBUG_ROWS = Limit(1 << 20, "rows", "the line tables of an object")
TENSOR_BYTES = Limit(
    1 << 30,
    "bytes",
    "the tensors of an aipu.bin that others built and you run (the switch `COMPASS_TENSOR_MEMORY` changes it)",
    ("runtime/native/job.c", "TENSOR_BYTES"),
)
ELF_SECTIONS = Limit(4096, "sections", "an object of a kernel", ("sim/engine/object.c", "MAX_SECTIONS"))
ELF_SYMBOLS = Limit(65536, "symbols", "an object of a kernel", ("sim/engine/object.c", "MAX_SYMBOLS"))
SHARED_ARRAYS = Limit(1024, "shared arrays", "an object of a kernel", ("sim/engine/object.c", "MAX_SHARED_ARRAYS"))
NAME_BYTES = Limit(4096, "bytes", "a name in an object of a kernel", ("sim/engine/object.c", "MAX_NAME"))

KEPT_TEXT = Limit(32 << 20, "bytes", "the C text that an aipu.bin keeps, compiled again")
KEPT_UNITS = Limit(1024, "units", "the C text that an aipu.bin keeps")
KEPT_OPTIONS = Limit(8, "sets of compiler options", "the C text that an aipu.bin keeps")
COMPILE_SECONDS = Limit(120, "seconds", "compiling that text, by the clock and of processor time")
COMPILE_ALL_SECONDS = Limit(600, "seconds", "compiling all the C text of an aipu.bin that others built, in each way")
COMPILE_MEMORY = Limit(4 << 30, "bytes", "the address space of the compiler that reads it")
COMPILE_OUTPUT = Limit(64 << 20, "bytes", "what comes of that text in each step")
COMPILE_MESSAGES = Limit(1 << 20, "bytes", "what the compiler says of it")

COMPUTED_BYTES = Limit(1 << 30, "bytes", "what is computed while a model is read", elastic=True, per_byte=16)
COMPUTED_ELEMENTS = Limit(1 << 30, "elements", "what is read and made in doing so", elastic=True, per_byte=16)
MODEL_NODES = Limit(
    200_000, "nodes", "a model, with each call of a function and each step of a loop that is unrolled", elastic=True
)
EXTERNAL_BYTES = Limit(4 << 30, "bytes", "the tensors of a model that lie in files beside it, together", elastic=True)
IMAGE_BYTES = Limit(256 << 20, "bytes", "the file of an image")
IMAGE_PIXELS = Limit(1 << 26, "pixels", "an image", elastic=True)
TENSOR_ELEMENTS = Limit(1 << 32, "elements", "a tensor of a graph")
LAYER_BYTES = Limit(16 << 30, "bytes", "computing a layer by its reference (quantising, comparing)", elastic=True)
LAYER_OPERATIONS = Limit(1 << 40, "operations", "computing a layer by its reference", elastic=True)
PATTERN_STEPS = Limit(
    10_000_000, "steps", "matching a regular expression of a `.cfg` with the longest name of a layer", elastic=True
)

RPC_GREETING = Limit(4096, "bytes", "a message of a remote session before both sides know each other")
RPC_HEAD = Limit(1 << 20, "bytes", "the head of a message of a remote session")
RPC_BODY = Limit(8 << 20, "bytes", "the body of a message of a remote session (larger tensors and files go in pieces)")
RPC_DEPTH = Limit(32, "levels", "remote calls that call back")


def limits() -> Iterator[tuple[str, Limit]]:
    """All limits with their names, in the order of this file."""
    return ((name, value) for name, value in globals().items() if isinstance(value, Limit))


def table() -> str:
    """The table of the document, in Markdown."""
    rows = "".join(f"| {limit.what} | {limit.row} | `{name}` |\n" for name, limit in limits())
    return "| of | at most | name |\n|---|---|---|\n" + rows


if __name__ == "__main__":
    print(table(), end="")
