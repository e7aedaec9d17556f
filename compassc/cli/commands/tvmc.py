"""`compassc tvmc`: the commands of the program tvmc."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from click.core import ParameterSource

from compass_core.errors import UsageError
from compassc import services
from compassc.cli import options
from compassc.cli.console import Console, artifact

EXAMPLE = """\
compassc tvmc compile model.onnx --target X2_1204 -o model.tar
compassc tvmc run model.tar -i inputs.npz -o outputs.npz --print-time
compassc tvmc tune model.onnx --target X2_1204 -o records.jsonl
compassc tvmc tune model.onnx --target llvm --trials 200 -o records.log"""


def _shapes(ctx: click.Context, param: click.Parameter, text: str | None) -> Mapping[str, Sequence[object]]:
    from compassc.relay.tvmc import parse_shape_string

    try:
        return parse_shape_string(text) if text else {}
    except ArgumentTypeError as error:
        raise UsageError(f"--input-shapes: {error}", code="usage") from None


def _words(ctx: click.Context, param: click.Parameter, text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _configs(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, object]:
    """NAME=VALUE by the types of the settings of passes."""
    from compassc.pass_manager.context import CONFIGS

    found: dict[str, object] = {}
    for text in texts:
        name, _, value = text.partition("=")
        kind = CONFIGS[name][0] if name in CONFIGS else str
        found[name] = value.lower() in ("1", "true") if kind is bool else int(value) if kind is int else value
    return found


model_options = options.chain(
    click.argument("source", type=click.Path(path_type=Path), metavar="MODEL"),
    click.option(
        "--target", default="llvm", show_default=True, metavar="T", help="An NPU ('X2_1204'), or llvm, c, cuda."
    ),
    click.option("--model-format", metavar="F", help="onnx, pytorch or relay (default: by the file's name)."),
    click.option(
        "--input-shapes", "shapes", callback=_shapes, metavar="'a:[1,3,8,8]'", help="Shapes of inputs by name."
    ),
)
layout_options = options.chain(
    click.option("--desired-layout", multiple=True, metavar="NCHW|NHWC:HWIO", help="A layout of data (and weights)."),
    click.option("--desired-layout-ops", callback=_words, default="", metavar="A,B", help="The operators in it."),
    click.option("--mixed-precision", is_flag=True, help="Compute in float16 where that is usual."),
)


@click.group(epilog=options.example(EXAMPLE))
@options.talk_options
def command() -> None:
    """Compile, run and tune models with the options of tvmc."""


@command.command("compile", epilog=options.example("compassc tvmc compile model.onnx --target llvm -O 3"))
@model_options
@click.option("-o", "--output", type=options.OUTPUT, metavar="FILE", default="module.tar", help="The package.")
@click.option("-O", "--opt-level", type=click.IntRange(0, 4), default=3, show_default=True, help="Level of passes.")
@click.option("--module-name", default="default", metavar="NAME", help="The name that kernels begin with.")
@click.option("--disabled-pass", callback=_words, default="", metavar="A,B", help="Passes to leave out.")
@click.option("--pass-config", callback=_configs, multiple=True, metavar="NAME=VALUE", help="A setting. Repeatable.")
@layout_options
@click.option("-f", "--output-format", metavar="so", help="The kind of package; model libraries (mlf) are refused.")
@click.option("--cross-compiler", "cross", metavar="CC", help="Refused: packages need no compiler.")
@click.option("--cross-compiler-options", "cross_options", metavar="WORDS", help="Refused, too.")
@click.option("--dump-code", callback=_words, default="", metavar="relay", help="Write the optimised program, too.")
@click.option("--dump-offloads", default="", metavar="FILE|-", help="Tell which operator runs where.")
@click.option("--tuning-records", type=options.INPUT, metavar="FILE", help="Kernels of the host by records of tune.")
@options.talk_options
@click.pass_obj
def compile_(
    console: Console,
    /,
    source: Path,
    target: str,
    model_format: str | None,
    shapes: dict[str, list[int]],
    output: Path,
    pass_config: dict[str, object],
    module_name: str,
    **given: list[str],
) -> None:
    """Build a model and write its package."""
    from compassc.relay import tvmc

    console.inputs.append(source)
    chosen = {name: value for name, value in given.items() if value}
    services.compile_program(
        tvmc.load(source, model_format, shapes),
        target,
        package_path=str(output),
        mod_name=module_name,
        pass_context_configs=pass_config,
        **chosen,
    )
    console.made(output)


@command.command("run", epilog=options.example("compassc tvmc run model.tar --fill-mode ones --print-top 5"))
@click.argument("package", type=click.Path(path_type=Path))
@click.option("--device", default="cpu", show_default=True, metavar="D", help="cpu (also for NPUs) or cuda.")
@click.option("-i", "--inputs", type=options.INPUT, metavar="FILE.npz", help="Arrays by names of inputs.")
@click.option("-o", "--outputs", type=options.OUTPUT, metavar="FILE.npz", help="Write the outputs, output_0, ...")
@click.option("--fill-mode", type=click.Choice(["zeros", "ones", "random"]), default="random", help="For other inputs.")
@click.option("--print-top", type=click.IntRange(1), metavar="N", help="Print the N largest numbers of output_0.")
@click.option("--print-time", is_flag=True, help="Measure, and print the times.")
@click.option("--repeat", type=click.IntRange(1), default=1, metavar="N", help="Groups of runs that are measured.")
@click.option("--number", type=click.IntRange(1), default=1, metavar="N", help="Runs of a group.")
@click.option("--end-to-end", is_flag=True, help="Copy inputs in each run.")
@click.option("--profile", is_flag=True, help="Measure each kernel by itself, and print what it takes.")
@click.option(
    "--rpc-tracker", metavar="HOST:PORT", help="Run on this server or, with a key, one that this tracker gives."
)
@click.option("--rpc-key", metavar="KEY", help="Kind of that server.")
@options.talk_options
@click.pass_obj
def run(
    console: Console,
    /,
    package: Path,
    inputs: Path | None,
    outputs: Path | None,
    print_top: int | None,
    print_time: bool,
    rpc_tracker: str | None,
    **given: object,
) -> None:
    """Run a package."""
    from compass_core.reading import arrays
    from compass_runtime.rpc.access import parse_address
    from compassc.relay import tvmc

    known = {name: arrays.load(inputs, name) for name in arrays.names_in(inputs)} if inputs is not None else {}
    if rpc_tracker is not None:
        given["hostname"], given["port"] = parse_address(rpc_tracker, 9090)
    result = tvmc.run(tvmc.TVMCPackage(package), inputs=known, benchmark=print_time, **given)  # type: ignore[arg-type]  # by the names of the options
    if outputs is not None:
        result.save(outputs)
        console.made(outputs)
    if print_time:
        artifact(f"{result.format_times()}\n")
    if result.report is not None:
        artifact(f"{result.report.table()}\n")
    if print_top is not None:
        artifact(f"{tvmc.get_top_results(result, print_top)}\n")


host_options = options.chain(
    layout_options,
    click.option(
        "--tasks", "tasks_filter", default="all", metavar="0,2-3|list", help="Tasks to search; list prints them."
    ),
    click.option(
        "--tuner", default="xgb", show_default=True, metavar="T", help="ga, gridsearch, random, xgb, xgb_rank, ..."
    ),
    click.option("--number", type=click.IntRange(1), default=10, metavar="N", help="Runs of a group."),
    click.option("--repeat", type=click.IntRange(1), default=1, metavar="N", help="Groups of runs of a candidate."),
    click.option("--min-repeat-ms", type=click.FloatRange(0), metavar="MS", help="The least time of a group."),
    click.option(
        "--tuning-records", "prior_records", type=options.INPUT, metavar="FILE", help="Records to begin with."
    ),
    click.option("--enable-autoscheduler", is_flag=True, help="Search loops of whole kernels."),
    click.option("--include-simple-tasks", is_flag=True, help="Also those of kernels without sums."),
    click.option("--log-estimated-latency", is_flag=True, help="Write total_latency.tsv."),
)
"""What searches for kernels of hosts alone take."""


@command.command("tune", epilog=options.example("compassc tvmc tune model.onnx --target X2_1204 -o records.jsonl"))
@model_options
@click.option("-o", "--output", type=options.OUTPUT, required=True, metavar="FILE", help="The records.")
@click.option(
    "--trials", type=click.IntRange(1), default=1000, show_default=True, metavar="N", help="Candidates to try."
)
@click.option("--early-stopping", type=click.IntRange(1), metavar="N", help="End after N trials that are not better.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), default=10.0, metavar="S", help="Limit of a run.")
@click.option("--parallel", type=click.IntRange(1), default=1, metavar="N", help="Processes that measure.")
@host_options
@options.talk_options
@click.pass_context
def tune(
    ctx: click.Context,
    /,
    source: Path,
    target: str,
    model_format: str | None,
    shapes: dict[str, list[int]],
    output: Path,
    trials: int,
    early_stopping: int | None,
    timeout: float,
    parallel: int,
    **given: object,
) -> None:
    """Search the best programs for the layers of a model (compassc tune), or for a host's kernels of it.

    Options from --desired-layout on are for kernels of a host.
    """
    from compassc.cli.commands.tune import command as search
    from compassc.relay.tvmc import TVMCException, load, target_of
    from compassc.targets.target import NPU

    chosen = target_of(target)
    of_host = {n: v for n, v in given.items() if ctx.get_parameter_source(n) is not ParameterSource.DEFAULT}
    if chosen.kind.name != NPU:
        if parallel != 1:
            raise TVMCException("kernels of a host are measured one by one", "leave --parallel out")
        limits = {"trials": trials, "early_stopping": early_stopping, "timeout": timeout, **of_host}
        services.tune_program(load(source, model_format, shapes), target, str(output), **limits)
        if given["tasks_filter"] != "list":
            ctx.obj.made(output)
        return
    if of_host:
        raise TVMCException(
            f"{', '.join(sorted(of_host))}: options of searches for kernels of a host, and {target} is an NPU",
            "leave them out; compassc tune has more options for NPUs",
        )
    if any(not isinstance(n, int) for shape in shapes.values() for n in shape):
        raise TVMCException("an extent is open", "give all of them in --input-shapes")
    ctx.invoke(
        search,
        source=source,
        target=chosen.mcpu,
        shapes={name: tuple(shape) for name, shape in shapes.items()},
        output=output,
        trials=trials,
        patience=early_stopping,
        timeout=timeout,
        jobs=parallel,
    )
