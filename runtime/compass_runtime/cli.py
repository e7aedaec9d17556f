"""`compass-run`: runs an aipu.bin on the simulator, tensors from and to files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from compass_core import VERSION, files, switches
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, UsageError
from compass_core.errors.rendering import for_stream, shown, wants_color
from compass_core.files import claims
from compass_core.samples import has_samples, joined, samples_of
from compass_runtime.compare import compare
from compass_runtime.faults import changed_sources, note_changed_sources
from compass_runtime.files import STDIO, read_array, write_arrays
from compass_runtime.inspection import TensorInspection
from compass_runtime.named_files import expected_arrays, input_files, output_files
from compass_runtime.orders import ScheduleOptions, explore
from compass_runtime.progress import Progress
from compass_runtime.report import Outcome, as_json, text
from compass_runtime.sizes import parse_shapes, parse_values
from compass_runtime.states import States

if TYPE_CHECKING:
    from collections.abc import Callable

    from compass_runtime.checks.modes import Modes
    from compass_runtime.compare import Mismatch
    from compass_runtime.debug import Debugger
    from compass_runtime.job import Job
    from compass_runtime.profile.options import ProfileOptions
    from compass_runtime.program import Program
    from compass_runtime.rpc.options import Wanted
    from compass_runtime.rpc.programs import RemoteProgram
    from compass_runtime.tensors import Comparison


SEVERAL = "several by commas, or the option again"
EPILOG = """\b
Example:
  compass-run aipu.bin --inputs a.npy,b.npy -o c.npy --expect gt.npy
  compass-run aipu.bin --inputs a=a.npy --set n=1000 --shape c=4x250
\b
Files called .npy and .npz are NumPy files (of an archive the arrays by name,
or FILE.npz:NAME); .bin, .raw and .dat are raw bytes, whose dtype and shape
the aipu.bin knows. `-` is stdin or stdout, as .npy.
\b
Exit status: 0 done (and as expected), 1 an error or not as expected, 2 usage,
3 simulator missing, 70 internal error.
"""


@dataclass(frozen=True)
class Options:
    """The command line."""

    program: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    outputs_dir: Path | None
    expect: tuple[str, ...]
    rtol: float
    atol: float
    values: tuple[str, ...]
    shapes: tuple[str, ...]
    repeat: int
    reset_every: int | None
    state_file: Path | None
    timeout: float | None
    check: str | None
    schedule: str | None
    debug: bool
    debugger: str | None
    debug_commands: Path | None
    trust: bool
    profile: bool
    profile_html: Path | None
    trace: Path | None
    json: bool
    real: bool
    dump_layers: Path | None
    compared: Path | None
    raw: bool
    remote: str | None
    tracker: str | None
    key: str
    wait: float | None
    verbose: bool
    color: str | None
    error_format: str | None

    @property
    def is_remote(self) -> bool:
        """Whether the run is on a server."""
        return self.remote is not None or self.tracker is not None

    @property
    def place(self) -> Wanted:
        """The server to run on. A run that has a limit waits no longer than that for one. UsageError as for `Wanted`."""
        from compass_runtime.rpc.options import Wanted

        wait = self.timeout if self.wait is None and self.is_remote else self.wait
        return Wanted(self.remote, self.tracker, self.key, wait)

    @property
    def debugs(self) -> bool:
        """Whether the run is under a debugger: each option of the debugger asks for one."""
        return self.debug or self.debugger is not None or self.debug_commands is not None


@click.command(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("program", metavar="AIPU_BIN", type=click.Path(path_type=Path))
@click.option(
    "--inputs", multiple=True, metavar="FILES", help=f"input files: in parameter order, or NAME=FILE; {SEVERAL}"
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="FILES",
    help="output files: in parameter order, or NAME=FILE; default output0.npy, output1.npy, ...",
)
@click.option("--outputs-dir", type=click.Path(path_type=Path, file_okay=False), help="folder for default output names")
@click.option("--expect", multiple=True, metavar="FILES", help="files the outputs must equal: in order, or NAME=FILE")
@click.option(
    "--rtol", type=click.FloatRange(min=0), default=0.0, show_default=True, help="relative tolerance of comparisons"
)
@click.option(
    "--atol", type=click.FloatRange(min=0), default=0.0, show_default=True, help="absolute tolerance of comparisons"
)
@click.option("--set", "values", multiple=True, metavar="NAME=VALUE", help="value of a run-time scalar")
@click.option("--shape", "shapes", multiple=True, metavar="NAME=SIZExSIZE", help="shape of a tensor of unknown size")
@click.option("--repeat", type=click.IntRange(min=1), default=1, metavar="N", help="run N times, show engine times")
@click.option(
    "--reset-every",
    type=click.IntRange(min=1),
    metavar="N",
    help="begin anew with what is kept from run to run after N samples",
)
@click.option(
    "--state-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npz",
    help="what is kept from run to run: begin with it, where there is one, and keep it there",
)
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="time limit of a run")
@click.option(
    "--check",
    metavar="MODES",
    help="look for mistakes first: bounds, race, uninit, dma, align, division, assert, overflow (separated by commas), or all",
)
@click.option(
    "--schedule",
    metavar="seed=N|explore=N",
    help="TECs take turns in a reproducible order; or compare the results of N orders",
)
@click.option("--debug", is_flag=True, help="run under gdb or lldb, stopped at the first line of the kernel on TEC 0")
@click.option("--debugger", metavar="gdb|lldb|PATH", help="the debugger of --debug; default gdb, else lldb")
@click.option(
    "--debug-commands",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="commands for the debugger, which ends after them, in place of the terminal",
)
@click.option(
    "--trust",
    is_flag=True,
    help="trust whoever made AIPU_BIN: debug it, and compile its text where nothing confines the compiler",
)
@click.option("--profile", is_flag=True, help="run with counters in the kernels; show costs per TEC and per line")
@click.option(
    "--profile-html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="the profile as a page: timeline, roofline, source with costs",
)
@click.option(
    "--trace", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="its timeline for Perfetto"
)
@click.option(
    "--float",
    "real",
    is_flag=True,
    help="inputs and outputs (and dumps) as real numbers: those that integers stand for, and 16-bit floats",
)
@click.option(
    "--dump-layers",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="write every tensor that a layer of the graph makes to DIR/NAME.npy",
)
@click.option(
    "--compare",
    "compared",
    type=click.Path(path_type=Path, exists=True),
    metavar="DIR|FILE.npz",
    help="compare tensors with arrays of their names; --rtol and --atol count",
)
@click.option("--raw", is_flag=True, help="files of other names, stdin and stdout are raw bytes")
@click.option("--remote", metavar="HOST:PORT", help="run on the server at this address (compassc rpc-server)")
@click.option("--tracker", metavar="HOST:PORT", help="run on a server that this tracker gives, of the kind --key")
@click.option("--key", default="", metavar="KEY", help="key of the server; with --tracker the kind of device")
@click.option(
    "--wait", type=click.FloatRange(min=0), metavar="SECONDS", help="how long to wait for a server (default: --timeout)"
)
@click.option("--json", is_flag=True, help="print JSON instead of the table")
@click.option("-v", "--verbose", is_flag=True, help="say on stderr what happens")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), help="colours on stderr")
@click.option("--error-format", type=click.Choice(["text", "json"]), help="errors as text or as JSON, one a line")
@click.version_option(VERSION, prog_name="compass-run")
def command(**options: Any) -> int:
    """Run AIPU_BIN on the simulator and write its outputs to files.

    AIPU_BIN can also be a file of kernels for NPU and host, as compassc partition -o writes it.
    """
    given = Options(**options)
    try:
        return run(given)
    except CompassError as error:
        note_changed_sources(error, given.program)
        raise


def main(args: Sequence[str] | None = None) -> None:
    """The program `compass-run`; exits with the status documented in its help."""
    from compass_core.errors import boundary

    words = sys.argv[1:] if args is None else list(args)
    sys.exit(
        boundary.run(
            lambda: command.main(words, prog_name="compass-run", standalone_mode=False),
            ["compass-run", *words],
            lambda error: _report(error, words),
            lambda: (list(map(Path, words)), None),
        )
    )


def _report(error: CompassError, words: list[str]) -> int:
    """Write an error the way the command line or the switches ask for it, behind what a kernel printed before its fault;
    returns the exit status."""
    from compass_core.errors.boundary import complain

    with suppress(OSError):  # a stdout that takes nothing leaves the error to be told
        sys.stdout.write(for_stream(getattr(error, "printed", ""), sys.stdout))
        sys.stdout.flush()
    try:
        format = switches.ERROR_FORMAT.get(_option(words, "--error-format"))
        color = wants_color(switches.COLOR.get(_option(words, "--color")))
    except UsageError:  # the error being reported is of an option or switch
        format, color = "text", False
    complain(shown(error, format, color))
    return error.exit_code


def _option(words: list[str], name: str) -> str | None:
    """The value of an option on the command line; None when it is not there."""
    for word, following in zip(words, [*words[1:], None]):
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def run(options: Options) -> int:
    """Runs the command; gives the exit status."""
    from compass_runtime.checks import Modes, applicable

    orders = None if options.schedule is None else ScheduleOptions.parse(options.schedule)
    debugger, profiling = _debugger(options), _profile_options(options)
    modes = None if options.check is None else Modes.parse(options.check)
    inspection = TensorInspection.from_options(options)
    _refuse_remote(options, inspection is not None, bool(profiling))
    _claim(options)
    program = _loaded(options, inspection is not None, bool(profiling))
    say = _talker(options.verbose)
    say(f"{options.program}: target {program.target}, {len(program.inputs)} inputs, {len(program.outputs)} outputs")
    sources = input_files(program, options.inputs)
    tensors = {info.name: info for info in (*program.inputs, *program.outputs)}
    if list(sources.values()).count(STDIO) > 1:
        raise UsageError("--inputs: only one tensor can come from stdin", code="inputs-mixed")
    arrays = {
        name: read_array(path, tensors[name], raw=options.raw, real=options.real) for name, path in sources.items()
    }
    targets = output_files(program, options.outputs, options.outputs_dir, options.raw)
    for path in targets.values():
        claims.writes(path, "-o")
    expected = expected_arrays(program, options.expect, options.raw)
    messages = _message_stream(targets, options)

    states = States.begun(program, options.state_file, options.reset_every)
    samples = samples_in(program, states.begin(arrays))
    _refuse_samples(options, len(samples), inspection is not None, bool(profiling))

    def create(program: Program | RemoteProgram) -> Any:
        return program.create_job(
            shapes=parse_shapes(options.shapes),
            values=parse_values(options.values),
            arrays={name: tensors[name].elements_of(array) for name, array in states.completed(samples[0]).items()},
        )

    if modes is not None:
        _check(program, modes, create, states.completed(arrays), options)
        done = ", ".join(applicable(program, modes).names())
        print(f"checked: no mistake found ({done})", file=sys.stderr)
    plain, program = program, debugger.prepared(program) if debugger else profiling.prepared(program)
    job = create(_there(options, program) if options.is_remote else program)
    _note_zeros(job, sources)
    results, seconds, printed = _run_all(
        job, samples, states, options, orders, debugger, bool(profiling), say, inspection
    )
    if options.real:
        results = {slot.info.name: slot.info.quantisation.real(results[slot.info.name]) for slot in job.outputs}
    mismatches = _compare(results, expected, options)
    write_arrays(targets, results, options.raw)
    states.save(options.state_file)
    profile = profiling.profile(plain, job.result) if profiling else None
    for words in changed_sources((file for file, _ in profile.lines), options.program) if profile else ():
        _note(words)
    shown = profile if profiling.tables else None
    compared = inspection.finish() if inspection else None
    outcome = Outcome(
        job, {**sources, **targets}, seconds, printed, list(expected), mismatches, shown, compared, len(samples)
    )
    if options.json:
        print(as_json(outcome))
    else:
        messages.write(for_stream(printed if not printed or printed.endswith("\n") else printed + "\n", messages))
        print(
            for_stream(text(outcome, options.repeat > 1), messages), file=messages, flush=True
        )  # before what follows on stderr
    return _told_differences(mismatches, compared, options)


def _loaded(options: Options, inspects: bool, profiles: bool) -> Any:
    """The program of the file: an aipu.bin, or several kernels for NPU and host. UsageError for options that go with the
    first alone."""
    from compass_runtime.graph_program import GraphProgram, is_package
    from compass_runtime.program import Program

    data = files.stored(options.program, code="open-file-fail")
    if not is_package(data):
        return Program.load(data, trusted=options.trust, where=str(options.program))
    remote = "--remote or --tracker" if options.is_remote else None
    other = _looking(options, inspects, profiles) or remote or ("--timeout" if options.timeout is not None else None)
    if other:
        raise UsageError(
            f"{other}: not with '{options.program}', which has kernels for NPU and host",
            code="usage",
            help="with an aipu.bin of one NPU",
        )
    return GraphProgram.load(bytes(data), str(options.program))


def samples_in(program: Program, arrays: Mapping[str, Array]) -> list[dict[str, Array]]:
    """The runs that arrays are for: of a graph of known shapes one for each sample along a first axis, else one."""
    inputs = [info for info in program.inputs if info.name in arrays]
    shapes = {info.name: info.shape for info in inputs if info.shape is not None}
    many = [name for name, shape in shapes.items() if has_samples(arrays[name].shape, shape)]
    if program.note is None or len(shapes) < len(inputs) or not many:
        return [dict(arrays)]
    found = list(samples_of(shapes, arrays))
    if not found:
        raise CompassError(f"the input '{many[0]}' has no samples", code="tensor-size", help="give at least one")
    return found


def _refuse_samples(options: Options, count: int, inspects: bool, profiles: bool) -> None:
    """UsageError where an option looks into one run, but there are several samples."""
    if count > 1 and (other := _looking(options, inspects, profiles)):
        raise UsageError(
            f"{other}: one run is looked at, but the inputs have {count} samples",
            code="inputs-mixed",
            help="give one of them",
        )


def _looking(options: Options, inspects: bool, profiles: bool) -> str | None:
    """An option that is given and looks into a run."""
    known = {
        "--check": options.check,
        "--schedule": options.schedule,
        "--debug": options.debugs,
        "--profile": profiles,
        "--dump-layers and --compare": inspects,
    }
    return next((name for name, given in known.items() if given), None)


def _refuse_remote(options: Options, inspects: bool, profiles: bool) -> None:
    """UsageError where an option needs a run on this machine, but a server is named, or where `Wanted` has one."""
    named = options.is_remote or options.key or options.wait is not None
    if named and options.place and (other := _looking(options, inspects, profiles)):
        raise UsageError(
            f"{other}: not on a server",
            code="remote-run",
            help="runs that look into a kernel are made on this machine",
        )


def _there(options: Options, program: Program) -> RemoteProgram:
    """The program on the server that the options name."""
    from compass_runtime.rpc.programs import RemoteProgram

    session = options.place.session(_note)
    return RemoteProgram(session, program, options.program.read_bytes())


def _claim(options: Options) -> None:
    """Tells what is read and written, besides the files of tensors."""
    for path in (options.program, options.debug_commands, options.compared):
        if path is not None:
            claims.reads(path)
    for option, path in (("--profile-html", options.profile_html), ("--trace", options.trace)):
        if path is not None:
            claims.writes(path, option)


def _note_zeros(job: Job, given: Mapping[str, Path]) -> None:
    """Say which outputs the kernel reads as zeros."""
    for name in (slot.info.name for slot in job.outputs if slot.info.in_out and slot.info.name not in given):
        _note(f"'{name}' is also read by the kernel; it starts as zeros (--inputs {name}=FILE gives its content)")


def _note(words: str) -> None:
    """Say something on stderr."""
    print(for_stream(f"note: {words}", sys.stderr), file=sys.stderr, flush=True)


def _told_differences(mismatches: Sequence[Mismatch], compared: Comparison | None, options: Options) -> int:
    """Say on stderr where results are not as expected; gives the exit status."""
    for mismatch in mismatches:
        print(for_stream("error: " + "\n  ".join(mismatch.lines()), sys.stderr), file=sys.stderr)
    beyond = [row.name for row in compared.rows if not row.within] if compared else []
    if beyond:
        print(
            f"error: {len(beyond)} of {len(compared.rows) if compared else 0} compared tensors differ beyond the "
            f"tolerance, first '{beyond[0]}'",
            file=sys.stderr,
        )
    if mismatches or beyond:
        print(f"  help: the tolerance is --rtol {options.rtol:g} --atol {options.atol:g}", file=sys.stderr)
    return 1 if mismatches or beyond else 0


def _message_stream(targets: Mapping[str, Path], options: Options) -> TextIO:
    """The stream for the table: stdout, unless an output goes there. UsageError when JSON should go there too."""
    if STDIO not in targets.values():
        return sys.stdout
    if options.json:
        raise UsageError("--json does not go with an output on stdout", code="json-stdout", help="write it to a file")
    return sys.stderr


def _debugger(options: Options) -> Debugger | None:
    """The debugger to run under, if any; UsageError when another option needs an uninterrupted run."""
    if not options.debugs:
        return None
    others = {"--schedule": options.schedule, "--timeout": options.timeout, "--repeat": options.repeat > 1}
    if other := next((name for name, given in others.items() if given), None):
        raise UsageError(
            f"--debug does not go with {other}",
            code="debug-options",
            help="under a debugger a kernel runs once, without a time limit",
        )
    from compass_runtime.debug import find_debugger

    return find_debugger(options.debugger)


def _profile_options(options: Options) -> ProfileOptions:
    """The profile options given; UsageError when another option needs a run without counters."""
    from compass_runtime.profile.options import ProfileOptions

    profiling = ProfileOptions(options.profile, options.profile_html, options.trace)
    profiling.check({"--debug": options.debugs, "--schedule explore": (options.schedule or "").startswith("explore")})
    return profiling


def _talker(verbose: bool) -> Callable[[str], object]:
    return (lambda message: print(message, file=sys.stderr)) if verbose else (lambda message: None)


def _check(
    program: Program, modes: Modes, create: Callable[[Program], Job], arrays: Mapping[str, Array], options: Options
) -> None:
    """Runs with checks. Raises the errors found; warnings go to stderr."""
    from compass_runtime.checks import check_job

    outcome = check_job(program, modes, create, arrays, options.timeout, arrays)
    outcome.raise_errors()
    for warning in outcome.warnings:
        print(
            shown(
                warning, switches.ERROR_FORMAT.get(options.error_format), wants_color(switches.COLOR.get(options.color))
            ),
            file=sys.stderr,
        )


def _run_all(
    job: Job, samples: Sequence[dict[str, Array]], states: States, *given: Any
) -> tuple[dict[str, Array], list[float], str]:
    """Runs every sample; outputs of several lie along a first axis."""
    runs = []
    for number, sample in enumerate(samples):
        states.turn(number)
        runs.append(_run(job, states.completed(sample), *given))
        states.keep(runs[-1][0])
    seconds, printed = [s for run in runs for s in run[1]], "".join(run[2] for run in runs)
    if len(runs) == 1:
        return runs[0][0], seconds, printed
    results = {o.info.name: joined(o.shape, [run[0][o.info.name] for run in runs]) for o in job.outputs}
    return results, seconds, printed


def _run(
    job: Job,
    arrays: Mapping[str, Array],
    options: Options,
    orders: ScheduleOptions | None,
    debugger: Debugger | None,
    record: bool,
    say: Callable[[str], object],
    inspection: TensorInspection | None,
) -> tuple[dict[str, Array], list[float], str]:
    """Runs as often as asked, each time from the same content; gives the outputs, engine times and printed text."""
    from compass_runtime.graph_program import GraphJob

    inputs = {slot.info.name: arrays[slot.info.name] for slot in job.inputs}
    initial = {slot.info.name: arrays[slot.info.name] for slot in job.outputs if slot.info.name in arrays}
    seconds, results, printed = [], {}, ""
    seed = 0 if orders is None else orders.seed
    if orders is not None and orders.explore:
        results = dict(explore(lambda s: job.run(inputs, options.timeout, initial, s), orders.explore))
        print(f"explored: {orders.explore} orders of the TECs give the same result", file=sys.stderr)
    for number in range(options.repeat):
        if options.is_remote or isinstance(job, GraphJob):
            results = job.run(inputs, options.timeout, initial)
        elif debugger is None and inspection is not None and not number:
            results = inspection.run(
                job, lambda after: job.run(inputs, options.timeout, initial, seed, False, after, True)
            )
        elif debugger is None:
            wanted = not (record or orders) and Progress.wanted(job.program, options.verbose)
            shown = Progress(job.program) if wanted else None
            try:
                results = job.run(inputs, options.timeout, initial, seed, record, shown.after if shown else None)
            finally:
                if shown:
                    shown.clear()
        else:
            results = debugger.run(job, inputs, initial, options.debug_commands)
        seconds.append(job.result.seconds)
        printed = printed or job.result.printf
        say(f"run {number + 1}: {job.result.seconds * 1e6:.1f} us")
    return results, seconds, printed


def _compare(
    results: Mapping[str, Array], expected: Mapping[str, tuple[Path, Array]], options: Options
) -> list[Mismatch]:
    found = [compare(name, results[name], array, options.rtol, options.atol) for name, (_, array) in expected.items()]
    return [mismatch for mismatch in found if mismatch is not None]
