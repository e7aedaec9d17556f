"""`tvm.contrib.cc`: files of modules are put together without another maker's compiler."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from compass_core import files
from compass_core.errors import UsageError
from compass_core.hostcc.clang import find_clang

AnyPath = str | os.PathLike[str]
Triple = Callable[[], str | None]
"""What gives the triple of a compiler's code; None without a compiler."""


def create_shared(
    output: AnyPath, objects: AnyPath | Sequence[AnyPath], options: Sequence[str] | None = None, cc: str | None = None
) -> None:
    """A file that `load_module` reads, of a file that `module.save` wrote, or a shared library of files of C and LLVM, by the
    project's clang. `options`: further ones of clang; `cc` changes nothing. UsageError with clang's words where it refuses."""
    listed = [objects] if isinstance(objects, (str, os.PathLike)) else list(objects)
    contents = [files.read(Path(path)) for path in listed]
    if len(listed) == 1 and _is_module(contents[0]):
        files.write(Path(output), contents[0])
        return
    if any(map(_is_module, contents)):
        raise UsageError(
            "a module is a file of its own, it is not linked with others",
            code="input",
            help="call create_shared for each, or import one module into the other",
        )
    _clang(["-shared", "-fPIC", *(options or ()), *map(str, listed), "-o", str(output)])


def create_executable(
    output: AnyPath, objects: AnyPath | Sequence[AnyPath], options: Sequence[str] | None = None, cc: str | None = None
) -> None:
    """A program of files of C, LLVM or objects, by the project's clang. UsageError where it refuses."""
    listed = [objects] if isinstance(objects, (str, os.PathLike)) else list(objects)
    _clang([*(options or ()), *map(str, listed), "-o", str(output)])


def get_cc() -> str:
    """The path of the project's clang."""
    return str(find_clang().path)


def get_target_by_dump_machine(compiler: str) -> Triple:
    """A function that gives the triple that a compiler makes code for; None without a compiler."""

    def triple() -> str | None:
        import subprocess

        if not compiler:
            return None
        done = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    return triple


def cross_compiler(
    compile_func: str | Callable[..., object], options: Sequence[str] | None = None, output_format: str | None = None,
    get_target_triple: Triple | None = None, add_files: Sequence[str] | None = None,
) -> Callable[..., None]:  # fmt: skip
    """A function `f(output, objects)` that calls a compiler, a path or a function, with these options and files."""
    if isinstance(compile_func, str):
        get_target_triple = get_target_triple or get_target_by_dump_machine(compile_func)
    given, more = list(options or ()), list(add_files or ())

    def compiled(output: AnyPath, objects: str | Sequence[str], options: Sequence[str] | None = None) -> None:
        listed = [objects] if isinstance(objects, str) else list(objects)
        both = given + list(options or ())
        if callable(compile_func):
            compile_func(output, listed + more, options=both)
        else:
            _clang(["-shared", "-fPIC", *both, *listed, *more, "-o", str(output)], compile_func)

    compiled.output_format = output_format or getattr(compile_func, "output_format", "so")  # type: ignore[attr-defined]
    compiled.get_target_triple = get_target_triple  # type: ignore[attr-defined]
    return compiled


def _is_module(content: bytes) -> bool:
    return b"module.json" in content[:100]


def _clang(words: Sequence[str], compiler: str | None = None) -> None:
    import subprocess

    done = subprocess.run([compiler or get_cc(), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError("the compiler refuses", code="input", notes=tuple(done.stderr.splitlines()[:20]))
