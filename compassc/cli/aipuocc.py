"""`aipuocc`: the C compiler under its vendor's name and options, for programs that call it as one.

`aipuocc -c -target aipu -mcpu=T -I DIR -o OUT.o IN.cl` is `compassc cc IN.cl -t T -o OUT.o` that leaves the object only.
`compass/dsl.h` is always ours, whatever folders are given: objects for the simulator need its definitions.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

import click

from compass_core import VERSION, files, switches, targets
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, UsageError, flat
from compass_core.files import claims
from compassc.cli import errors
from compassc.cli.console import Console, artifact, shown

USAGE = """\
Usage: aipuocc -c|-S [-target aipu] [-mcpu=NAME] [-I DIR] [options] [-o OUT] IN.cl ...

Compile Compass OpenCL C to objects that aipugb takes.

  -c           to an object (IN.o)
  -S           to the assembly text of the host that simulates (IN.s)
  -target aipu the only target there is
  -mcpu=NAME   the NPU configuration without its multi-core suffix, e.g. X2_1204
  -o OUT       the file to write
  -I DIR       look for included files in DIR; compass/dsl.h is always that of this toolchain
  --version    show the version
  -h, --help   show this text

All other options go to clang: -DNAME=VALUE, -O0, -g, -W..., -include FILE, ..."""
_TARGET = "aipu"
_SUFFIXES = {"-c": ".o", "-S": ".s"}
_VALUES = {"-o": "output", "-target": "target", "--target": "target", "-mcpu": "mcpu"}
"""Options with a value of ours, in the same word behind `=` (that of -o behind the option itself) or the next word."""
_WITH_WORD = frozenset("-D -U -I -iquote -isystem -idirafter -include -imacros -Xclang -mllvm -x".split())
"""clang's options whose value may be the next word."""


@dataclass
class Line:
    """A command line: what to make (`-c` or `-S`), of which files, and the words for clang."""

    mode: str = ""
    sources: list[Path] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)


def parse(words: Sequence[str]) -> Line:
    """The meaning of a command line; UsageError when it has none here."""
    line, rest = Line(), iter(words)

    def following(option: str) -> str:
        if (word := next(rest, None)) is None:
            raise _usage(f"option {option} needs a value")
        return word

    for word in rest:
        name, equals, value = word.partition("=")
        if word in _SUFFIXES:
            line.mode = word
        elif name in _VALUES and (equals or word == name):
            line.values[_VALUES[name]] = value if equals else following(word)
        elif word.startswith("-o"):
            line.values["output"] = word[2:]
        elif word in _WITH_WORD:
            line.extra += [word, following(word)]
        elif word.startswith("-") and word != "-":
            line.extra.append(word)
        else:
            line.sources.append(Path(word))
    return _checked(line)


def _checked(line: Line) -> Line:
    target = line.values.get("target", _TARGET)
    if not line.mode:
        raise _usage("neither -c nor -S is given", "objects are linked by aipugb")
    if not line.sources:
        raise _usage("no C file is given")
    if "output" in line.values and len(line.sources) > 1:
        raise _usage("-o names one file, but several are to be made")
    if target != _TARGET:
        raise _usage(f"unknown target '{target}'", f"the target is {_TARGET}; -mcpu names the NPU configuration")
    return line


def _usage(message: str, help: str = "`aipuocc --help` shows how to use it") -> UsageError:
    return UsageError(message, code="usage", help=help)


def compile_line(line: Line, console: Console) -> None:
    """Do what a command line says."""
    target = targets.load(line.values.get("mcpu") or switches.TARGET.get())
    for source in line.sources:
        output = Path(line.values.get("output") or source.with_suffix(_SUFFIXES[line.mode]).name)
        console.inputs.append(source)
        claims.reads(source)
        claims.writes(output, "-o" if "output" in line.values else f"the object of {source}")
        _compile(source, output, target, tuple(line.extra), line.mode == "-S", console)


def _compile(
    source: Path, output: Path, target: targets.Target, extra: tuple[str, ...], assembly: bool, console: Console
) -> None:
    """Copy one file to an empty folder, because clang looks for included files beside the text first."""
    from compassc.toolchain import cc

    options = cc.CcOptions(target, extra=extra)
    with tempfile.TemporaryDirectory(prefix="compassc-") as scratch:
        made = Path(scratch, output.name)
        try:
            if assembly:
                cc.write_assembly(source, made, options)
            elif warnings := cc.compile_file(source, made, options).warnings:
                console.say(warnings.rstrip())
        except CompassError as error:
            _place(error, source)
            raise
        files.write(output, made.read_bytes())
    console.detail(shown(output))


def _place(error: CompassError, source: Path) -> None:
    """Makes errors name the file as the command line does; clang knows the name without its folder only."""
    for one in flat(error):
        if one.span is not None and one.span.file == source.name:
            one.span = replace(one.span, file=str(source))


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(console: Console, words: tuple[str, ...]) -> None:
    """Compile Compass OpenCL C to objects that aipugb takes."""
    if {"-h", "--help"} & set(words):
        artifact(USAGE + "\n")
    elif {"--version", "-v"} & set(words):
        artifact(f"aipuocc, compassc {VERSION}\n")
    else:
        compile_line(parse(words), console)


def main() -> None:
    """Entry point of the `aipuocc` program."""
    sys.exit(errors.run(command, sys.argv[1:], "aipuocc"))


if __name__ == "__main__":
    main()
