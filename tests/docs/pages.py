"""Pages whose code is run: Markdown in which fenced blocks are steps, done in order in one folder.

- ```` ```python NAME ```` writes the block to the file NAME.
- ```` ```python ```` runs it, all such blocks of a page in one namespace; a block without language right after it is
  what it prints.
- ```` ```diff ```` is applied to the files of the folder.
- ```` ```console ```` holds `$ command` lines, each followed by what the command writes to stdout and stderr.

In expected output a line or part of a line `...` stands for any text.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FENCE = "```"
PROGRAMS = {
    "aipuocc": "-m compassc.cli.aipuocc",
    "compassc": "-m compassc",
    "compass-run": "-c 'import sys; from compass_runtime.cli import main; sys.exit(main())'",
    "python": "",
}


@dataclass
class Block:
    """A fenced block: what follows the opening fence, its lines, and the number of its first line in the page."""

    info: str
    lines: list[str]
    line: int
    follows: bool = False


@dataclass
class Step:
    """Something to do, and the lines of the page, `start` to `stop`, that show what it writes (None: not shown)."""

    kind: str
    code: str
    line: int
    shown: tuple[int, int] | None = None
    name: str = ""


def blocks(lines: list[str]) -> Iterator[Block]:
    """The fenced blocks of a page; `follows`: only blank lines lie between it and the block before."""
    current: Block | None = None
    between = ["start"]
    for number, line in enumerate(lines):
        if current is not None and line == FENCE:
            yield current
            current, between = None, []
        elif current is not None:
            current.lines.append(line)
        elif line.startswith(FENCE):
            current = Block(line[len(FENCE) :].strip(), [], number + 1, not any(between))
        else:
            between.append(line.strip())


def steps(lines: list[str]) -> list[Step]:
    """What a page asks to be done, in order."""
    found: list[Step] = []
    for block in blocks(lines):
        language, _, name = block.info.partition(" ")
        if language == "python":
            found.append(Step("file" if name else "python", "\n".join(block.lines) + "\n", block.line, name=name))
        elif language == "console":
            found += _commands(block)
        elif language == "diff":
            found.append(Step("diff", "\n".join(block.lines) + "\n", block.line))
        elif not language and block.follows and found and found[-1].kind == "python":
            found[-1].shown = (block.line, block.line + len(block.lines))
    return found


def _commands(block: Block) -> list[Step]:
    starts = [i for i, line in enumerate(block.lines) if line.startswith("$ ")] + [len(block.lines)]
    return [
        Step("console", block.lines[a][2:], block.line + a, (block.line + a + 1, block.line + b))
        for a, b in itertools.pairwise(starts)
    ]


@dataclass
class Runner:
    """Does the steps of a page in a folder."""

    folder: Path
    programs: Mapping[str, str] = field(default_factory=lambda: PROGRAMS)
    """Commands that are this Python with some arguments; others are those of PATH."""
    status: int = 0
    """The exit status of the last command; of a pipeline, of the last one in it that failed."""
    namespace: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})

    def __post_init__(self) -> None:
        programs = self.folder / ".bin"
        programs.mkdir(exist_ok=True)  # another page may have begun there
        for name, arguments in self.programs.items():
            path = programs / name
            path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments} "$@"\n')
            path.chmod(0o755)
        outside = {"GIT_CEILING_DIRECTORIES": str(self.folder.parent)}  # the folder is in no repository
        self.environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "COLUMNS": "100",
            **outside,
        }

    def do(self, step: Step) -> str:
        """Do a step; what it wrote."""
        if step.kind == "file":
            (self.folder / step.name).write_text(step.code)
            return ""
        if step.kind in ("console", "diff"):
            command = (
                ["bash", "-o", "pipefail", "-c", step.code] if step.kind == "console" else ["git", "apply", "-C1", "-"]
            )
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=self.environment,
                input=step.code if step.kind == "diff" else "",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            self.status = done.returncode
            return PROGRESS.sub("", done.stdout)
        source = self.folder / f"page_{step.line}.py"  # a file of its own: kernels are read from their source
        source.write_text(step.code)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(step.code, str(source), "exec", dont_inherit=True), self.namespace)  # noqa: S102
        return out.getvalue()


PROGRESS = re.compile(r"^.*: [0-9]+ of [0-9]+(, [0-9]+ (s|min) left)?\n", re.MULTILINE)
"""What is said of the progress of long work, which is long on a slow machine alone."""


def matches(want: str, got: str) -> bool:
    """Whether output is as shown, `...` standing for any text and white space at ends of lines ignored."""
    tidy = ["\n".join(line.rstrip() for line in text.strip("\n").split("\n")) + "\n" for text in (want, got)]
    return doctest.OutputChecker().check_output(tidy[0], tidy[1], doctest.ELLIPSIS)


def outcomes(lines: list[str], runner: Runner) -> Iterator[tuple[Step, str, str]]:
    """Does the steps of a page; each with what the page shows, and what it wrote."""
    for step in steps(lines):
        start, stop = step.shown or (0, 0)
        yield step, "\n".join(lines[start:stop]), runner.do(step)


def difference(page: str, step: Step, want: str, got: str) -> str:
    """What is said of a step that writes something else."""
    return f"{page}:{step.line}: {step.code}\nshown:\n{want}\nwritten:\n{got}"


def main(page: str) -> int:
    """Follows a page in the current folder with the commands on PATH; the exit status."""
    sys.path.insert(0, str(Path.cwd()))
    done = list(outcomes(Path(page).read_text().split("\n"), Runner(Path.cwd(), {})))
    wrong = [difference(page, *outcome) for outcome in done if not matches(*outcome[1:])]
    print("\n\n".join(wrong) if wrong else f"{len(done)} steps of {page} do what it shows")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
