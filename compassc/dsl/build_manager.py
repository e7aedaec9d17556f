"""`BuildManager`: the Python side of `compassc build`. It runs the same stages as the command line."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import targets
from compass_core.errors import CompassError, UsageError

from ..driver.build import Build, Request, new_build, run_stage
from ..driver.stages import STAGES
from ..ir.stmts import IRModule
from .script.functions import PyPrimFunc

if TYPE_CHECKING:
    from .executor import Executor


class BuildManager:
    """Builds kernels for one target.

    `output_dir`: where the stage files stay; without it they go to a temporary folder that lives as long as the
    executor. `cc_options`: more C compiler options. `disabled_pass`: names of passes to leave out.
    """

    def __init__(
        self,
        target: str = "X2_1204",
        output_dir: str | os.PathLike[str] | None = None,
        cc_options: str = "",
        disabled_pass: Sequence[str] | None = None,
    ) -> None:
        self.target = targets.load(target)
        self.output_dir = (
            None if output_dir is None else Path(os.path.expandvars(os.path.expanduser(output_dir))).absolute()
        )
        self.cc_options = cc_options
        self.disabled_pass = tuple(disabled_pass or ())

    def lower(self, inp: Any, name: str | None = None) -> IRModule:
        """The lowered IR of a kernel (a function decorated with S.prim_func, or an IR module).

        `name` replaces the entry's symbol. Raises CompassError for what is wrong in the kernel.
        """
        from .. import passes

        build = self._start(inp, name, Path())
        assert build.module is not None
        return passes.lower(build.module, build.request.pass_options("lower"))

    def build(self, inp: Any, name: str | None = None) -> Executor:
        """Compile a kernel into an executor: call it with NumPy arrays and scalars, one per kernel parameter."""
        from .executor import Executor

        folder, keep = self._folder()
        build = self._start(inp, name, folder)
        for stage in STAGES[1:]:
            run_stage(build, stage)
        if isinstance(inp, PyPrimFunc):
            inp.target = self.target.name
        return Executor(build, keep)

    def gen_op_lib(
        self, inp: Any, name: str | None = None, output_path: str | None = None, verbose: bool = False
    ) -> None:
        """Compile a kernel to an object file, with the C text and the log beside it; no aipu.bin.

        `output_path`: the object; the default is `NAME.o` in the output folder (or the working directory).
        """
        folder = Path(output_path).absolute().parent if output_path else self.output_dir or Path.cwd()
        build = self._start(inp, name, folder)
        if output_path:
            stem = Path(output_path).name.removesuffix(".o")
            build.files.update({suffix: folder / (stem + suffix) for suffix in (".o", ".cl", ".params.json")})
        for stage in STAGES[1:4]:
            run_stage(build, stage)
        if verbose:
            from logging import getLogger

            getLogger("compassc").warning("object of %s: %s", build.name, build.file(".o"))

    def _folder(self) -> tuple[Path, Any]:
        """The folder of the stage files, and what keeps it alive."""
        if self.output_dir is not None:
            self.output_dir.mkdir(parents=True, exist_ok=True)
            return self.output_dir, None
        keep = tempfile.TemporaryDirectory(prefix="compassc-")
        return Path(keep.name), keep

    def _start(self, inp: Any, name: str | None, folder: Path) -> Build:
        """A build that has its IR module: the parse stage for functions, the module itself otherwise."""
        from ..passes import PassOptions
        from .script.parser import parse

        options = PassOptions(disabled=frozenset(self.disabled_pass))
        flags = tuple(self.cc_options.split()) if self.cc_options else ()
        request = Request(
            target=self.target.name,
            output=folder / "aipu.bin",
            folder=folder,
            passes=options,
            cc_flags=flags,
            fix_shapes=False,  # an executor takes the shapes of the arrays it is called with
        )
        build = new_build(request)
        if isinstance(inp, PyPrimFunc):
            build.module = parse(inp, self.target.name, name)
        elif isinstance(inp, IRModule):
            if inp.target != self.target.name:
                raise CompassError(
                    f"the module was made for {inp.target}, this BuildManager builds for {self.target.name}",
                    code="other-target",
                )
            build.module = inp
        else:
            shown = getattr(inp, "__name__", None)
            what = f"the function {shown}" if shown else f"a {type(inp).__name__}"
            raise UsageError(
                f"cannot build {what}", code="input", help="give a function decorated with @S.prim_func, or an IRModule"
            )
        build.name = build.module.entry
        return build
