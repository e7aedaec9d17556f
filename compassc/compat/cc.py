"""Compiling C text of the Compass dialect by hand: what BuildManager does after code generation."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from compass_core import files, targets
from compass_core.errors import CompassError
from compass_core.hostcc.command import include_folder, with_absolute_includes

from ..settings.options import canonical_target, control_options
from ..toolchain import cc


class CompassCompileCError(CompassError, RuntimeError):
    """The C compiler refuses a text. `log_path` is the log, None where none was asked for; `log` its text."""

    log_path: Path | None = None
    log: str = ""


def __getattr__(name: str) -> str:
    if name == "INCLUDE_DIR_IN_PKG":
        return str(include_folder())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def compile_c(
    code: str,
    target: object = None,
    extra_options: str = "",
    output_path: str | os.PathLike[str] | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    save_log: bool = True,
) -> bytes:
    """Compiles `code`, a path or (with a line break in it) the text itself, and gives the object's bytes.

    `output_path` (relative to `work_dir`) is where the object goes, with the text as NAME.cl and the log as NAME.log
    beside it; without it nothing is kept. CompassCompileCError when the compiler refuses the text.
    """
    with tempfile.TemporaryDirectory(prefix="compassc-") as scratch:
        output = Path(work_dir or "", output_path).absolute() if output_path is not None else Path(scratch, "code.o")
        output.parent.mkdir(parents=True, exist_ok=True)
        source = files.write(output.with_suffix(".cl"), code) if "\n" in code else Path(work_dir or "", code)
        log = output.with_suffix(".log")
        extra = with_absolute_includes(shlex.split(extra_options), Path(work_dir or "").absolute())
        options = cc.CcOptions(targets.load(canonical_target(target)), extra=extra)
        try:
            result = cc.compile_file(source, output, options)
        except CompassError as error:
            failure = CompassCompileCError(
                error.message, error.span, code=error.code, notes=error.notes, help=error.help
            )
            failure.log = str(error)
            if save_log and output_path is not None:
                failure.log_path = files.write(log, failure.log + "\n")
            raise failure from error
        if save_log:
            shutil.move(result.log, log)
        else:
            result.log.unlink()
        if control_options().is_asm:
            cc.write_assembly(source, output.with_suffix(".s"), options)
        return output.read_bytes()
