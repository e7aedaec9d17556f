"""`BuildManager`: the Python side of `compassc build`. It runs the same stages as the command line."""

from __future__ import annotations

import functools
import inspect
import os
import shlex
import shutil
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from compass_core import VERSION, switches, targets
from compass_core.errors import CompassError, UsageError
from compass_core.hostcc.command import DEBUG_FLAGS
from compass_runtime.codegens import PREFIX, register_code_generator
from compass_runtime.packed import get_global_func

from .. import services
from ..driver.build import Build, Request, new_build, run_stage
from ..driver.files import stage_files
from ..driver.stages import legalised_text, lowered_text, stage_named
from ..ir.stmts import IRModule, PrimFunc, as_kernels
from ..language.functions import PyPrimFunc, chosen
from ..language.info import CompassInfo, current_target, param_info
from ..settings.logger import DEBUG_ONCE, logger, set_logger_from_environment
from ..settings.options import announce, canonical_target, control_options
from .analysis import PrimFuncInfo

if TYPE_CHECKING:
    from compass_runtime.module import Module
    from compassc.language.kernel import Kernel

    from .executor import Executor

T = TypeVar("T")
_IN_TURN = threading.RLock()
"""Held while IR becomes C: threads can only take turns at that, and lose time when they do so by the statement. Clang runs
beside it."""
_OP_LIB_SUFFIXES = (".ir.txt", ".lowered.txt", ".legal.txt", ".cl", ".params.json", ".o")


CompassCodeGenCError = CompassError
"""The error of a kernel that cannot be built, under the vendor's name."""


def _reported(method: Callable[..., T]) -> Callable[..., T]:
    """Decorate a method of the builder: its errors show source lines, notes and help, and no stack of the compiler.

    What is not the user's fault becomes the report of a defect, with the kernel's file and the stage files so far.
    """

    signature = inspect.signature(method)

    @functools.wraps(method)
    def run(self: BuildManager, *args: Any, **kwargs: object) -> T:
        inp = signature.bind(self, *args, **kwargs).arguments["inp"]  # TypeError: the call, not the kernel, is wrong
        self._running = None
        try:
            with self._records():
                return method(self, *args, **kwargs)
        except CompassError as error:
            raise _explained(error)
        except Exception as error:
            from compass_core.errors.defects import defect

            kernel = [Path(inp.span.file)] if isinstance(inp, PyPrimFunc) else []
            command = ["compassc", "BuildManager", method.__name__, getattr(inp, "__name__", type(inp).__name__)]
            raise _explained(defect(error, command, kernel, self._stage_files())) from error

    return run


def _explained(error: CompassError) -> CompassError:
    """The error without the frames of the compiler, as Python shows it if it is not caught."""
    if switches.TRACEBACK.get():
        return error
    error.__suppress_context__ = True
    return error.with_traceback(None)


class BuildManager:
    """Builds kernels for one target.

    `target`: without one the switch COMPASS_TARGET says which. `output_dir`: where the files of builds go, in the vendor's layout (`gbuilder/op_lib/NAME.cl`, `gbuilder/aipu.bin`,
    ...); without it they go to a temporary folder that lives as long as what was built. `cc_options`: more C compiler
    options, split as a shell does. `disabled_pass`: names of passes to leave out. `check`: every call of what is built
    is checked for these modes, as `Executor.check` does it. `tuned`: a file of tuning records, from which kernels with
    constants to choose and schedules take the best.

    `cps_info` describes the target; `prim_func_info` the name and the parameters of the kernel that was built last.
    """

    def __init__(
        self,
        target: object = None,
        output_dir: str | os.PathLike[str] | None = None,
        cc_options: str = "",
        disabled_pass: Sequence[str] | None = None,
        check: str | None = None,
        tuned: str | os.PathLike[str] | None = None,
    ) -> None:
        set_logger_from_environment()
        DEBUG_ONCE(f"compassc {VERSION}")
        announce()
        self.target = targets.load(canonical_target(target))
        self.output_dir = (
            None if output_dir is None else Path(os.path.expandvars(os.path.expanduser(output_dir))).absolute()
        )
        self.cc_options = cc_options
        self.disabled_pass = tuple(disabled_pass or ())
        if check is not None:
            from compass_runtime.checks.modes import Modes

            Modes.parse(check)
        self.check = check
        self.tuned = tuned
        self.cps_info = CompassInfo.get(self.target.name)
        self.prim_func_info: PrimFuncInfo | None = None
        self._running: Build | None = None
        self._op_lib: tempfile.TemporaryDirectory[str] | None = None

    @_reported
    def lower(self, inp: Kernel, name: str | None = None) -> IRModule:
        """The lowered IR of a kernel (a function decorated with S.prim_func, an IR function, or an IR module).

        `name` replaces the entry's symbol; of a module, the entry keeps its own. Raises CompassError for what is wrong
        in the kernel.
        """
        from .. import passes

        build = self._start(inp, name, Path())
        assert build.module is not None
        return passes.lower(build.module, build.request.pass_options("lower"))

    @_reported
    def build(self, inp: object, name: str | None = None) -> Executor:
        """Compile a kernel into an executor: call it with NumPy arrays and scalars, one per kernel parameter."""
        from .executor import LATE_ROLES, Executor

        inp = chosen(inp, self.target.name)
        folder, keep = self._folder()
        build = self._start(inp, name, folder / "gbuilder")
        build.request.texts = keep is None or control_options().dumps
        with stage_files(build.folder):  # another process may build into it at the same time
            self._compile(build)
            assert build.params is not None
            if not any(param["role"] in LATE_ROLES for param in build.params["params"]):
                run_stage(build, stage_named("gbuild"))
            made = Executor(build, keep, self.check)
        if isinstance(inp, PyPrimFunc):
            assert self.prim_func_info is not None
            infos = self.prim_func_info.param_infos
            inp.built(self.target.name, infos, folder, keep if control_options().dumps else None)
        return made

    @_reported
    def gen_op_lib(
        self,
        inp: PrimFunc | PyPrimFunc,
        name: str | None = None,
        output_path: str | os.PathLike[str] | None = None,
        verbose: bool = False,
    ) -> None:
        """Compile a kernel to an object file, with the C text and the log beside it; no aipu.bin.

        `output_path`: the object; the default is `gbuilder/op_lib/NAME.o` in the output folder, or in a temporary one
        that lives as long as this object. `verbose`: log the path.
        """
        build = self._op_lib_build(inp, name, output_path)
        with stage_files(build.folder):
            self._compile(build)
        if verbose:
            logger.warning("object of %s: %s", build.name, build.file(".o"))

    def _records(self) -> AbstractContextManager[None]:
        """While it is on, the records of `tuned` are among those that are known."""
        if self.tuned is None:
            return nullcontext()
        records: AbstractContextManager[None] = services.apply_history_best(Path(self.tuned))
        return records

    def _op_lib_build(
        self, inp: PrimFunc | PyPrimFunc, name: str | None, output_path: str | os.PathLike[str] | None
    ) -> Build:
        """A build whose object goes to `output_path`, or to its place in the output folder."""
        if output_path is not None:
            path = Path(os.path.expandvars(os.path.expanduser(output_path))).absolute()
            build = self._start(inp, name, path.parent)
            stem = path.name.removesuffix(".o")
            build.files = {suffix: path.with_name(stem + suffix) for suffix in _OP_LIB_SUFFIXES} | {".o": path}
        else:
            if self.output_dir is None and self._op_lib is None:
                self._op_lib = tempfile.TemporaryDirectory(prefix="compassc-")
            base = self.output_dir or Path(self._op_lib.name if self._op_lib else "")
            build = self._start(inp, name, base / "gbuilder")
        return build

    def _compile(self, build: Build) -> None:
        """The stages up to the object; the log gets the vendor's name, and assembly text is made on request."""
        build.file(".o").parent.mkdir(parents=True, exist_ok=True)
        with current_target(self.target.name):
            with _IN_TURN:
                for stage in ("lower", "legalize", "codegen"):
                    run_stage(build, stage_named(stage))
            run_stage(build, stage_named("cc"))
        assert build.params is not None
        self.prim_func_info = PrimFuncInfo(build.name, tuple(map(param_info, build.params["params"])))
        obj = build.file(".o")
        shutil.move(obj.with_suffix(".cc.log"), obj.with_suffix(".log"))
        if control_options().is_asm:
            from ..toolchain import cc

            cc.write_assembly(build.file(".cl"), obj.with_suffix(".s"), cc.CcOptions(self.target, extra=self._flags()))

    def _stage_files(self) -> Path | None:
        """The folder of the stage files of the build that runs, with the texts that were not needed so far."""
        build = self._running
        if build is None or build.folder == Path():
            return None
        if not build.request.texts and build.folder.is_dir():
            with suppress(Exception):  # what cannot be printed is the defect, or comes of it
                if build.lowered is not None:
                    lowered_text(build)
                if build.legalised is not None and build.interface is not None:
                    legalised_text(build)
        return build.folder

    def _flags(self) -> tuple[str, ...]:
        """The extra C compiler options; UsageError when they are not text a shell could split."""
        try:
            flags = tuple(shlex.split(self.cc_options))
        except ValueError as error:
            raise UsageError(f"cc_options cannot be split into words: {error}", code="cc-options") from None
        return flags + (DEBUG_FLAGS if control_options().is_debug else ())

    def _folder(self) -> tuple[Path, object]:
        """The folder of the files, and what keeps it alive."""
        if self.output_dir is not None:
            return self.output_dir, None
        keep = tempfile.TemporaryDirectory(prefix="compassc-")
        return Path(keep.name), keep

    def _start(self, inp: object, name: str | None, folder: Path) -> Build:
        """A build that has its IR module: the parse stage for functions, the module itself otherwise."""
        from ..pass_manager import PassOptions

        request = Request(
            target=self.target.name,
            output=folder / "aipu.bin",
            folder=folder,
            passes=PassOptions(disabled=frozenset(self.disabled_pass)),
            cc_flags=self._flags(),
            fix_shapes=False,  # an executor takes the shapes of the arrays it is called with
        )
        self._running = build = new_build(request)
        build.module = self.parse(inp, name)
        build.name = build.module.entry
        op_lib = folder / "op_lib"
        build.files = {suffix: op_lib / (build.name + suffix) for suffix in _OP_LIB_SUFFIXES}
        return build

    def parse(self, inp: object, name: str | None = None) -> IRModule:
        """The IR of a kernel as it is written, for this target; see `lower`."""
        inp = as_kernels(chosen(inp, self.target.name))
        if isinstance(inp, PyPrimFunc):
            from ..language.parser import parse

            with current_target(self.target.name):
                return parse(inp, self.target.name, name)
        if isinstance(inp, PrimFunc):
            entry = _kernel_named(inp.replace(name=name) if name else inp)
            return IRModule((entry,), entry.name, self.target.name)
        if isinstance(inp, IRModule):
            functions = tuple(map(_kernel_named, inp.functions))
            if functions != inp.functions:
                entry = _kernel_named(inp.entry_func)
                inp = inp.replace(functions=functions, entry=entry.name)
            if not inp.target:
                return inp.replace(target=self.target.name)
            if inp.target != self.target.name:
                raise CompassError(
                    f"the module was made for {inp.target}, this BuildManager builds for {self.target.name}",
                    code="other-target",
                )
            return inp
        raise _wrong_input(inp)


class InputError(UsageError, ValueError):
    """The argument of a build is not a kernel."""


def build_module(module: IRModule, target: object) -> Module:
    """The code generator of target kind `compass`: the module of an IR module's program."""
    from compass_runtime.compass_module import CompassModule
    from compassc.targets import signature
    from compassc.targets.target import Target

    built = BuildManager(Target.of(target).mcpu).build(module)
    described = signature.of(module.entry_func) if signature.is_declared(module.entry_func) else None
    return CompassModule(built.module.content, source=built.c_code, description=described)


def register_generator() -> None:
    """Makes `build_module` the generator of its kind, unless there is one."""

    if get_global_func(PREFIX + "compass", allow_missing=True) is None:
        register_code_generator("compass", build_module)


def _kernel_named(function: PrimFunc) -> PrimFunc:
    """The function by a name that a kernel may have in C: `main`, as functions of expressions are called, is none."""
    return function.replace(name="main_kernel") if function.name == "main" else function


def _wrong_input(inp: object) -> InputError:
    shown = getattr(inp, "__name__", None)
    what = f"the function {shown}" if shown else f"a {type(inp).__name__}"
    from ..te import Schedule

    taken = "give a function decorated with @S.prim_func, an IR function, or an IRModule"
    if isinstance(inp, Schedule):
        taken = "te.lower(schedule, args) makes an IRModule of it, te.build(schedule, args, target) a program"
    return InputError(f"cannot build {what}", code="input", help=taken)


register_generator()
