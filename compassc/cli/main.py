"""`compassc`: the group of sub-commands."""

from __future__ import annotations

import sys
from importlib import import_module
from keyword import iskeyword

import click

from compass_core import VERSION
from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compassc.cli import errors

COMMANDS: dict[str, dict[str, str]] = {
    "Whole chain": {
        "build": "Build kernel.py or a model to aipu.bin, all stages.",
    },
    "Stages, one arrow each": {
        "parse": "kernel.py to IR text (NAME.ir.txt).",
        "lower": "IR text, or a kernel, to lowered IR text (NAME.lowered.txt).",
        "legalize": "Lowered IR text to what the target has (NAME.legal.txt).",
        "codegen": "Legalised IR text, or a kernel, to Compass OpenCL C (NAME.cl).",
        "cc": "Compass OpenCL C to an object for the simulator (NAME.o).",
        "gbuild": "Object and parameters, or a Compass IR graph, to aipu.bin.",
    },
    "Models": {
        "import": "A model (ONNX, TFLite, PyTorch) to a graph (GRAPH.txt, GRAPH.bin).",
        "optimize": "A graph to a simpler one with the same results (GRAPH.txt, GRAPH.bin).",
        "quantize": "A float graph to a graph of integers (GRAPH.txt, GRAPH.bin).",
        "partition": "Which operators of a model run on the NPU, which on the host, and why.",
        "tvmc": "Compile, run and tune models with the options of tvmc.",
        "group": "Which layers of a graph run in one launch, and why no more (launches.txt).",
        "aipubuild": "A model to aipu.bin as a configuration file (.cfg) of the vendor says.",
        "run": "Build a model, and run it on the simulator: real numbers in files go in and come out.",
        "evaluate": "How good a built model is: accuracy on a data set, and each layer's distance from the float graph.",
    },
    "Tuning": {
        "tune": "Search the best constants of kernels, the best schedules, and the best choices for the layers of a model.",
        "records": "List, merge, prune or compare files of tuning records.",
    },
    "Look": {
        "check": "Find mistakes in kernel.py without building it.",
        "explain": "Explain an error code, with a wrong and a right example.",
        "inspect": "Show a stage file or an aipu.bin as tables.",
        "targets": "List the NPU configurations and kinds of targets.",
        "passes": "List the passes and the pipelines.",
        "ops": "List the operations of the language.",
        "layers": "List the layer types of graphs, and what has kernels.",
        "operators": "List the operators, of which tensor expressions and layers of graphs are made.",
    },
    "Other machines": {
        "rpc-server": "Offer this machine's simulator to other programs and machines.",
        "rpc-tracker": "Give clients whatever server of a kind is free.",
        "rpc-proxy": "Bring together clients and servers that nobody reaches.",
        "rpc-query": "Show the servers that a tracker knows, and who waits.",
        "rpc-daemon": "Write compass-rpcd, the server of remote sessions for boards, which need no Python.",
    },
    "Set-up": {
        "sim-plugin": "Write the simulators that the vendor's driver and front end look for.",
        "doctor": "Show which tools were found, what is missing and how to get it.",
        "env": "Show every switch with its value and origin.",
        "cache": "Show, shrink or empty the compile cache.",
    },
}
"""Section -> command -> one line. Kept here so that help imports no command."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one when it is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for section in COMMANDS.values() for name in section]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:  # a shell that completes a word asks without arguments
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = cmd_name.replace("-", "_") + "_" * iskeyword(cmd_name)
        found: click.Command = import_module(f"compassc.cli.commands.{module}").command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            raise UsageError(
                f"unknown command '{args[0]}'",
                code="unknown-command",
                help=help_for(args[0], self.list_commands(ctx), "commands"),
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for section, commands in COMMANDS.items():
            with formatter.section(section):
                formatter.write_dl(list(commands.items()))


EPILOG = """\b
Example:
  compassc build kernel.py -t X2_1204
  compass-run aipu.bin --inputs a.npy

\b
Exit status: 0 ok, 1 the kernel or a file is wrong, 2 usage,
3 a tool is missing, 70 a defect of compassc."""


@click.command(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="compassc")
def cli() -> None:
    """Compile kernels written in the Compass DSL.

    Every stage is a command that reads the file of the stage before; `build` runs them all.
    """


def main() -> None:
    """Entry point of the `compassc` program."""
    sys.exit(errors.run(cli, sys.argv[1:]))


if __name__ == "__main__":
    main()
