"""The vendor's own C compiler and graph builder, whose binaries run on silicon: where they are, and running them.

They are called as the vendor's packages call them: in the folder of the files, with names relative to it, and what they say
is kept in a log that names folder and command line.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from compass_core import files, switches
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span, ToolchainError, together
from compass_core.hostcc import command
from compass_core.targets import Target
from compassc.toolchain.unit import LineMap, read_line_map

COMPILER, BUILDER = "aipuocc", "aipugb"
_HELP = "`compassc doctor` shows which tools were found"
_HEADER = Path("compass", "dsl.h")
_ERRORS = re.compile(r"Total errors:\s*(\d+)", re.IGNORECASE)
_MESSAGE = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?: (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
_LAST_LINES = 20


@dataclass(frozen=True)
class Tool:
    """A program, and whether it is the one of this toolchain under the vendor's name, which builds for the simulator."""

    path: Path
    ours: bool


def find(name: str) -> Tool:
    """The program `name`: in the folder of the switch VENDOR_TOOLS (or `bin` in it) where that is set, else on PATH, the
    vendor's before that of this toolchain. ToolchainError when there is none."""
    folder = switches.VENDOR_TOOLS.get()
    if folder is not None:
        places = [str(folder), str(folder / "bin")]
        where = f"in {folder}, which {switches.VENDOR_TOOLS.variable} names"
    else:
        places, where = os.environ.get("PATH", os.defpath).split(os.pathsep), "on PATH"
    found = [Path(program).absolute() for place in places if place and (program := shutil.which(name, path=place))]
    tools = [Tool(path, path.parent == Path(sys.executable).absolute().parent) for path in found]
    if not tools:
        raise ToolchainError(
            f"the vendor's {name} is not {where}",
            code="no-vendor-tool",
            help=f"install the vendor's SDK and name its folder by {switches.VENDOR_TOOLS.variable}; {_HELP}",
        )
    return min(tools, key=lambda tool: tool.ours)


def compiler_command(tool: Tool, source: str, output: str, target: Target, extra: Sequence[str]) -> list[str]:
    """The command line that compiles a text to an object, as the vendor's package writes it."""
    include = next((p for up in tool.path.parents[:2] if (p := up / "include", (p / _HEADER).is_file())[1]), None)
    headers = [] if include is None or tool.ours else ["-I", str(include)]
    flags = command.with_absolute_includes(extra, Path.cwd())
    mcpu = target.name.partition("MP")[0]
    return [str(tool.path), "-c", "-target", "aipu", f"-mcpu={mcpu}", *headers, *flags, "-o", output, source]


def builder_command(tool: Tool, graph: str, weights: str, target: Target) -> list[str]:
    """The command line that builds a graph to `aipu.bin` in the folder where it runs."""
    return [str(tool.path), graph, "-w", weights, "--target", target.name]


def run(line: Sequence[str], folder: Path, log: Path, makes: Path, text: Path | None = None) -> str:
    """Run a command in a folder, keep its log, and give what it said. `makes`: the file that it writes; `text`: the C text
    that it reads. CompassError when it fails."""
    makes.unlink(missing_ok=True)
    done = command.run(list(line), folder)
    files.write(log, f"working directory: {folder}\ncommand: {shlex.join(line)}\n\n{done.output}")
    counted = sum(int(count) for count in _ERRORS.findall(done.output))
    if done.status == 0 and not counted and makes.is_file() and makes.stat().st_size:
        return done.output
    if text is not None and (found := _placed(done.output, text)):
        raise together(found)
    why = f"ended with status {done.status}" if done.status else f"says {counted} errors" if counted else ""
    said = done.output.strip().splitlines()[-_LAST_LINES:]
    raise CompassError(
        f"{Path(line[0]).name} {why or f'made no {makes.name}'}",
        code="vendor-tool",
        notes=(f"it was: cd {shlex.quote(str(folder))} && {shlex.join(line)}", *said),
        help=_HELP,
    )


def _placed(output: str, text: Path) -> list[CompassError]:
    """The compiler's errors at the kernel's lines, or at the lines of the C text that have none."""
    line_map: LineMap = read_line_map(text.with_name(text.name + ".map"))
    found = []
    for message in _MESSAGE.finditer(output):
        if Path(message["file"]).name == text.name:
            line = int(message["line"])
            file, number = line_map.place(line) or (str(text), line)
            found.append(CompassError(message["text"], Span(file, number), code="vendor-tool", help=_HELP))
    return found
