"""Options that several commands share, and the parsers of their values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from compass_core.arrays import Array
from compass_core.errors import CompassError, UsageError
from compass_core.files import claims
from compass_core.targets import names
from compassc.cli.console import Console, artifact
from compassc.cli.tables import tables_text
from compassc.errors import catalogue

Decorator = Callable[[Callable[..., object]], Callable[..., object]]
if TYPE_CHECKING:
    PathType = click.ParamType[str | os.PathLike[str], str | os.PathLike[str]]
    PairType = click.ParamType[tuple[str, object], str]
else:
    PathType = PairType = click.ParamType  # older versions have no parameters of it


class InputPath(click.Path):
    """A file that is read, which is no output, too."""

    def __init__(self, allow_dash: bool = False, dir_okay: bool = False) -> None:
        super().__init__(exists=True, dir_okay=dir_okay, allow_dash=allow_dash, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        found = super().convert(value, param, ctx)
        claims.reads(Path(os.fsdecode(found)))
        return found


class Source(PathType):
    """Samples or functions: a file, a folder, or `FILE.py:NAME`; as text."""

    name = "text"

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | os.PathLike[str]:
        file, colon, _ = str(value).rpartition(":")
        for path in (Path(value), Path(file)) if colon and file.endswith(".py") else (Path(value),):
            claims.reads(path)
        return value


class OutputPath(click.Path):
    """The name of a file to write. An empty one would be the current folder, files beside which lie in the one above.

    It is neither an input nor another output.
    """

    def __init__(self, allow_dash: bool = False) -> None:
        super().__init__(dir_okay=False, allow_dash=allow_dash, path_type=Path)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if Path(value).name in ("", ".."):
            self.fail(f"'{value}' is not the name of a file", param, ctx)
        found = super().convert(value, param, ctx)
        claims.writes(Path(os.fsdecode(found)), param.opts[0] if param is not None else "the output")
        return found


INPUT = InputPath(allow_dash=True)
FILE = InputPath()
PLACE = InputPath(dir_okay=True)
SOURCE = Source()
_ENTRY, _MODULE = "the entry behind the file", "the name of the module"


class KernelFile(InputPath):
    """A file, or `kernel.py:NAME` for one of its kernels; `entry` gives the name."""

    def __init__(self) -> None:
        super().__init__(allow_dash=True)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        file, colon, name = str(value).rpartition(":")
        if colon and ctx is not None and file.endswith(".py") and name.isidentifier() and not Path(value).exists():
            ctx.meta[_ENTRY] = name
            value = file
        return super().convert(value, param, ctx)


def entry(option: str | None = None) -> str | None:
    """The kernel that the command line names, by the option or behind the file; UsageError where these differ."""
    behind: str | None = click.get_current_context().meta.get(_ENTRY)
    if option is not None and behind not in (None, option):
        raise UsageError(f"both '{behind}' and '{option}' are to be built", code="usage", help="name one kernel")
    return option or behind


def module() -> str:
    """The full name of the module that the command line names; empty where it names a file."""
    name: str = click.get_current_context().meta.get(_MODULE, "")
    return name


def _find_module(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        name, _colon, kernel = value.partition(":")
        ctx.meta[_MODULE] = name
        if kernel:
            ctx.meta[_ENTRY] = kernel


def _source(needed: bool) -> Callable[[click.Context, click.Parameter, object], object]:
    """A callback of the argument `source`: what is given, or the file of the module that is."""

    def found(ctx: click.Context, parameter: click.Parameter, value: object) -> object:
        name = ctx.meta.get(_MODULE)
        if name is None:
            if value is None and needed:
                raise click.MissingParameter(ctx=ctx, param=parameter)
            return value
        if value is not None:
            raise UsageError(f"both '{value}' and the module {name!r} are given", code="usage", help="name one of them")
        from compassc.language.kernel_files import module_file

        return module_file(name)

    return found


KERNEL = KernelFile()
OUTPUT = OutputPath(allow_dash=True)
FOLDER = click.Path(file_okay=False, path_type=Path)


def example(text: str) -> str:
    """The epilog of a command: its example, kept as it is laid out."""
    return "\b\nExample:\n" + "\n".join(f"  {line}" for line in text.strip().splitlines())


def chain(*decorators: Decorator) -> Decorator:
    """Several option decorators as one; help shows them in the order given."""

    def apply(function: Callable[..., object]) -> Callable[..., object]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return apply


def _into_talk(attribute: str) -> Callable[[click.Context, click.Parameter, object], None]:
    """A callback that leaves the option's value with the command's Console."""

    def store(ctx: click.Context, _: click.Parameter, value: object) -> None:
        console = ctx.find_object(Console)
        if console is not None and value is not None:
            setattr(console, attribute, value)

    return store


def _talk_option(attribute: str, *names: str, **settings: Any) -> Decorator:
    return click.option(*names, expose_value=False, is_eager=True, callback=_into_talk(attribute), **settings)


talk_options = chain(
    _talk_option(
        "verbose", "-v", "--verbose", is_flag=True, default=None, help="Say what is done and how long it took."
    ),
    _talk_option("color", "--color", type=click.Choice(["auto", "always", "never"]), help="Colours on stderr."),
    _talk_option(
        "error_format", "--error-format", type=click.Choice(["text", "json"]), help="json: one object per line."
    ),
    _talk_option("traceback", "--traceback", is_flag=True, default=None, help="Show Python's traceback of an error."),
)


def _targets() -> Iterable[str]:
    return names()


def _strategies() -> Iterable[str]:
    from compassc.tuning.search import STRATEGIES

    return STRATEGIES


def _codes() -> Iterable[str]:
    return catalogue()


def _operations() -> Iterable[str]:
    from compassc.ops.core import load

    return load()


def _layers() -> Iterable[str]:
    from compassc.layers.declare import all_types

    return all_types()


def _passes() -> Iterable[str]:
    from compassc.pass_manager import describe

    return [pass_.name for pass_ in describe()]


_NAMES: dict[str, Callable[[], Iterable[str]]] = {
    "targets": _targets,
    "strategies": _strategies,
    "codes": _codes,
    "operations": _operations,
    "layers": _layers,
    "passes": _passes,
}


def names_of(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """What shells complete a word to: the names of a kind that begin with it, upper or lower case. Nothing is looked for
    before a shell asks."""

    def begun(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        return [name for name in _NAMES[kind]() if name.lower().startswith(incomplete.lower())]

    return begun


def _given(ctx: click.Context, param: click.Parameter, name: str) -> str:
    """The name of a target, or "" where none is given. BadParameter for a name that is given and empty."""
    if not name and ctx.get_parameter_source(str(param.name)) is ParameterSource.COMMANDLINE:
        raise click.BadParameter("expected the name of a target", ctx, param)
    return name


target_option = click.option(
    "-t", "--target", default="", metavar="NAME", help="NPU configuration, e.g. X2_1204.",
    shell_complete=names_of("targets"), callback=_given,
)  # fmt: skip


def _tuned(ctx: click.Context, param: click.Parameter, paths: tuple[Path, ...]) -> None:
    if paths:
        from compassc.tuning.history import apply_history_best

        ctx.with_resource(apply_history_best(*paths))


tuned_option = click.option(
    "--tuned",
    multiple=True,
    type=INPUT,
    expose_value=False,
    callback=_tuned,
    metavar="FILE",
    help="Records of `compassc tune`: take the best programs from there.",
)
output_option = click.option("-o", "--output", type=OUTPUT, metavar="FILE", help="The file to write; `-` is stdout.")


def kernel_argument(metavar: str, needed: bool = True) -> Decorator:
    """The file `source` of a command, or the module in its place."""
    return chain(
        click.argument("source", type=KERNEL, metavar=metavar, required=False, callback=_source(needed)),
        click.option(
            "-m",
            "--module",
            metavar="PACKAGE.MODULE[:NAME]",
            expose_value=False,
            is_eager=True,
            callback=_find_module,
            help="A kernel's module in the place of its file, found as `python -m` finds it.",
        ),
    )


class Assignment(PairType):
    """`NAME=VALUE`, with the value read by `parse`, which raises ValueError saying what is expected.

    Names are those of Python, or any (those of models).
    """

    def __init__(self, name: str, parse: Callable[[str], object], anything: bool = False) -> None:
        self.name = name
        self._parse = parse
        self._anything = anything

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, object]:
        name, equals, text = value.rpartition("=") if self._anything else value.partition("=")
        if not equals or not (self._anything and name or name.isidentifier()):
            self.fail(f"expected {self.name}, got '{value}'", param, ctx)
        try:
            return name, self._parse(text)
        except ValueError as error:
            self.fail(f"'{value}': {error}", param, ctx)


def number(text: str) -> int | float:
    for kind in (lambda t: int(t, 0), float):
        try:
            return kind(text)
        except ValueError:
            continue
    if text in ("true", "false"):
        return int(text == "true")
    raise ValueError("expected a number, true or false")


def shape(text: str) -> tuple[int, ...]:
    parts = text.split("x")
    if not all(part.isdecimal() for part in parts):
        raise ValueError("expected sizes like 4x1024")
    return tuple(map(int, parts))


def _input(text: str) -> Path:
    claims.reads(Path(text))
    return Path(text)


def _as_dict(ctx: click.Context, param: click.Parameter, pairs: tuple[tuple[str, object], ...]) -> dict[str, object]:
    """The assignments of a repeated option; one name given twice is an error."""
    values: dict[str, object] = {}
    for name, value in pairs:
        if name in values:
            raise click.BadParameter(f"'{name}' is given twice", ctx, param)
        values[name] = value
    return values


def assignments(*names: str, kind: str, parse: Callable[[str], object], help: str, anything: bool = False) -> Decorator:
    read = Assignment(kind, parse, anything)
    return click.option(*names, type=read, multiple=True, callback=_as_dict, metavar=kind, help=help)


size_options = chain(
    assignments("--set", "values", kind="NAME=VALUE", parse=number, help="Fix a scalar parameter. Repeatable."),
    assignments(
        "--shape", "shapes", kind="NAME=4x1024", parse=shape, help="Give a tensor's shape. Repeatable.", anything=True
    ),
)
parameter_options = chain(
    size_options,
    assignments("--const", "consts", kind="NAME=FILE.npy", parse=_input, help="Give a constant tensor. Repeatable."),
)

model_shape_option = assignments(
    "--shape", "shapes", kind="INPUT=1x3x224x224", parse=shape, help="The shape of an input. Repeatable.", anything=True
)

batch_option = click.option(
    "--batch",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    help="Samples that a run of the model takes (default: 1).",
)


def _states(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | str:
    """OUTPUT=INPUT pairs, or the word auto."""
    if texts == ("auto",):
        return texts[0]
    pairs = [text.split("=") for text in texts]
    if wrong := next((t for t, pair in zip(texts, pairs, strict=True) if len(pair) != 2 or not all(pair)), None):
        raise UsageError(
            f"--state: '{wrong}' is not OUTPUT=INPUT", code="usage", help="--state hn=h0, or --state auto alone"
        )
    if len({out for out, _ in pairs}) < len(pairs):
        raise UsageError("--state: an output is named twice", code="usage", help="name each output once")
    return {out: into for out, into in pairs}


state_option = click.option(
    "--state",
    "states",
    metavar="OUTPUT=INPUT",
    multiple=True,
    callback=_states,
    help="An output that is an input of the next run; auto: those of recurrent layers. Repeatable.",
)
output_tensor_option = click.option(
    "--output-tensor",
    "outputs",
    metavar="NAME",
    multiple=True,
    help="A tensor of the model that is to be an output, instead of its own. Repeatable.",
)
compiler_options = chain(
    click.option("--clang", metavar="FILE", help="The clang to use (see `compassc doctor`)."),
    click.option(
        "--cc-option", "cc_options", multiple=True, metavar="FLAG", help="A further flag for clang. Repeatable."
    ),
    click.option("--no-cache", is_flag=True, help="Compile anew even when the cache has the object."),
)
aiff_option = click.option(
    "--aiff",
    is_flag=True,
    help="Of a model: build 1x1 convolutions for the AIFF where results are known to be the same.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Print the clang commands instead of running them.")


def load_consts(paths: dict[str, Path]) -> dict[str, Array]:
    """The arrays of `--const`, of a .npz file the one of that name; UsageError naming the file that is not one."""
    if not paths:
        return {}
    from compass_core.reading import arrays

    found = {}
    for name, path in paths.items():
        try:
            found[name] = arrays.load(path, name)
        except CompassError as error:
            raise UsageError(f"--const {name}: {error.message}", code="bad-const", help=error.help) from None
    return found


def _list_passes(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Show the passes and end the command."""
    if value:
        from compassc.cli.pipeline import pass_tables

        shown = {"optimize": 2, "group": 3}.get(ctx.command.name or "", 0)
        artifact(tables_text(pass_tables()[shown : shown + 1]))
        ctx.exit()


def _passes_option(*names: str, help: str) -> Decorator:
    return click.option(*names, multiple=True, metavar="PASS", shell_complete=names_of("passes"), help=help)


def _pass_options(functions: str, passes: str) -> Decorator:
    """The options of a command that runs passes. `functions`, `passes`: what it says of two of them."""
    return chain(
        _passes_option("--print-before", help="Print the IR before a pass (`all`: every pass) on stderr."),
        _passes_option("--print-after", help="Print the IR after a pass (`all`: every pass) on stderr."),
        click.option("--print-changed", is_flag=True, help="Print a diff for each pass that changes something."),
        click.option("--print-func", "functions", multiple=True, metavar="NAME", help=functions),
        click.option("--dump-dir", type=FOLDER, metavar="DIR", help="Write the IR after each pass to DIR/NN-PASS.txt."),
        click.option("--time-passes", is_flag=True, help="Print the wall time of each pass."),
        _passes_option("--disable-pass", "disabled", help="Leave a pass out. Repeatable."),
        click.option("--pass-limit", "limit", type=click.IntRange(0), metavar="N", help="Run the first N passes only."),
        click.option("--verify", is_flag=True, help="Check that the IR is well formed after each pass."),
        click.option(
            "--passes",
            metavar="PASSES",
            help=f"Run these passes instead of the standard pipeline: {passes}.",
        ),
        click.option("--print-pipeline", is_flag=True, help="Print the pipeline as `--passes` takes it, and stop."),
        click.option(
            "--list-passes",
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_list_passes,
            help="List the passes.",
        ),
    )


pass_options = _pass_options(
    "Print this function only. Repeatable.",
    "A,B,... of the stage alone, or STAGE:A,B,.../STAGE:C,D,... of some (`compassc passes` lists them)",
)
graph_pass_options = _pass_options("Print the layer of this name only. Repeatable.", "A,B,...")
launch_pass_options = _pass_options("Print the launch of this layer only. Repeatable.", "A,B,...")
