"""Candidates as C text: what the compiler makes of them, to be built and run by any process."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from compass_core import targets
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, flat
from compassc import codegen, pass_manager, passes
from compassc.analysis.interface import interface_of
from compassc.driver.stages import check_resources
from compassc.dsl.build_manager import BuildManager
from compassc.language.info import current_target
from compassc.tuning.space import Candidate
from compassc.tuning.task import Infeasible, Program, Task, Tolerance

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import KernelFields

_TOKEN = re.compile(
    r'^#[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/|(?P<name>[A-Za-z_]\w*)',
    re.MULTILINE | re.DOTALL,
)
_SHARED = re.compile(r"^(?:GEN_\w+\([^\n]*\);|#include [^\n]*)$", re.MULTILINE)
"""Lines that declare the same in every text."""


@dataclass(frozen=True)
class Artifact:
    """A kernel as C text of the dialect, and the content of its `NAME.params.json`; `names`: what it defines. `arguments`:
    those of this kernel, where they are not the task's."""

    text: str
    params: KernelFields
    names: tuple[str, ...]
    arguments: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Feed:
    """What the programs of a task are run with: an argument per parameter, the right content of outputs by the number of
    the parameter, and how near they must come."""

    target: str
    arguments: Sequence[Any]
    expected: Mapping[int, Array]
    tolerance: Tolerance

    @classmethod
    def of(cls, task: Task) -> Feed:
        return cls(task.workload.target, tuple(task.arguments()), dict(task.expected()), task.tolerance)


@dataclass(frozen=True)
class Refused:
    """A candidate without C text: `kind` infeasible or build, and the reason."""

    kind: str
    message: str


def artifact(task: Task, candidate: Candidate) -> Artifact | Refused:
    """The C text of a candidate, or why there is none. Whatever goes wrong in it is told as words, never raised."""
    try:
        return _made(task, candidate)
    except Infeasible as error:
        return Refused("infeasible", error.reason)
    except CompassError as error:
        return Refused("build", words(error))
    except Exception as error:  # noqa: BLE001 - a factory is somebody's Python: what it raises is about this candidate
        return Refused("build", f"{type(error).__name__}: {error}"[:_LONGEST])


_LONGEST = 500


def words(error: CompassError) -> str:
    """An error in a line: the first of them, and where it is."""
    first = flat(error)[0]
    where = f" ({first.span.file}:{first.span.line})" if first.span is not None else ""
    return f"{first.message}{where}"[:_LONGEST]


def _made(task: Task, candidate: Candidate) -> Artifact:
    program = task.program(candidate)
    made = program.made.artifact = program.made.artifact or _compiled(program, task.workload.target)
    return replace(made, arguments=None if program.arguments is None else tuple(program.arguments))


def _compiled(program: Program, name: str) -> Artifact:
    """The C text of a program for the target of this name."""
    target = targets.load(name).name
    module = BuildManager(target).parse(program.kernel)
    options = pass_manager.PassOptions()
    with current_target(target):
        lowered = passes.lower(module, options, check_resources)
        legalised = passes.legalize(lowered, options)
        made = codegen.emit(legalised, interface_of(lowered))
    tables = [str(array["symbol"]) for array in made.line_map["arrays"] if array["scope"] == "constant"]
    return Artifact(made.text, made.params, (*(f.name for f in legalised.functions), *tables))


def renamed(artifact: Artifact, prefix: str) -> Artifact:
    """The same kernel with `prefix` before every name that it defines."""
    params: KernelFields = {**artifact.params, "kernel": prefix + artifact.params["kernel"]}
    return replace(artifact, text=_with_prefix(artifact.text, artifact.names, prefix), params=params)


def _with_prefix(text: str, names: Collection[str], prefix: str) -> str:
    known = frozenset(names)
    return _TOKEN.sub(lambda token: prefix + token[0] if token["name"] in known else token[0], text)


def without_shared(texts: Sequence[str]) -> list[str]:
    """Texts for one translation unit: what each of them declares in the same words stays in the first alone."""
    seen: set[str] = set()

    def once(line: re.Match[str]) -> str:
        if line[0] in seen:
            return ""
        seen.add(line[0])
        return line[0]

    return [_SHARED.sub(once, text) for text in texts]
