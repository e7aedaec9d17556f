"""The cc stage: `NAME.cl` (and its line map) to the object `NAME.o` and the log `NAME.cc.log`.

clang runs in a folder of its own and is given plain file names, so an object depends on its text, the flags and the
compiler alone, not on where it is made or what others do there. What clang reads is kept as `NAME.cc.cl`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from compass_core import files, switches
from compass_core.dataclass import dataclass
from compass_core.errors import excerpts
from compass_core.files.cache import Cache, key_of
from compass_core.hostcc import arrays, command, declared, host, origins, pch, provenance, sources
from compass_core.hostcc.clang import Clang, find_clang
from compass_core.hostcc.objects import Compilation
from compass_core.targets import Target
from compassc.toolchain import diagnostics, unit


@dataclass(frozen=True)
class CcOptions:
    """How to compile: `clang` names the compiler (None: look for one), `extra` are further flags for it.

    Paths in include options of `extra` count from the working directory.

    `use_cache` says whether an object that was compiled before may be taken again (None: as the switch CACHE says); the
    precompiled header is used in any case. A text that includes files other than the headers of the dialect is compiled
    every time.
    """

    target: Target
    clang: str | None = None
    extra: tuple[str, ...] = ()
    use_cache: bool | None = None


@dataclass(frozen=True)
class CcResult:
    """The object, its log, the command lines, whether it came from the cache, and clang's warnings."""

    object: Path
    log: Path
    commands: tuple[tuple[str, ...], ...]
    cached: bool
    warnings: str


@dataclass(frozen=True)
class _Job:
    """One compilation, ready to run in the folder of `output`."""

    clang: Clang
    flags: list[str]
    unit_text: str
    unit_file: Path
    output: Path
    complete: bool
    """Whether the cache key covers everything that clang reads."""
    built: frozenset[str]
    """What the files are known by that the text comes from, and itself."""
    identity: bytes
    """What the text that the object keeps is known by (`compass_core.hostcc.provenance`)."""

    @property
    def folder(self) -> Path:
        return self.output.parent

    def compilation(self, header: Path, *options: str) -> Compilation:
        names = self.unit_file.name, self.unit_text, self.output.name
        return Compilation(self.clang.path, self.flags, header, *names, options)

    def key(self) -> str:
        return key_of(
            "obj-3",
            self.clang.identity,
            command.headers_hash(),
            host.current().features,
            self.unit_text,
            self.unit_file.name,
            *self.flags,
        )


def compile_file(
    source: Path, output: Path, options: CcOptions, meanwhile: Callable[[], object] | None = None
) -> CcResult:
    """Compile the dialect text in `source`, with the map `SOURCE.map` beside it, to the object `output`.

    `meanwhile` is called while clang runs.

    A CompassError at the kernel's line when the text is wrong, ToolchainError when clang is missing or breaks.
    """
    with _job(source, output, options) as job:
        return _compiled(job, output.absolute(), options, meanwhile)


@contextmanager
def _job(source: Path, output: Path, options: CcOptions) -> Iterator[_Job]:
    """The job in a private folder; the files that clang reads there are kept beside `output`."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="compassc-") as scratch:
        job = _prepare(source, Path(scratch, output.name), options)
        for path in Path(scratch).iterdir():
            files.write(output.with_name(path.name), path.read_bytes())
        yield job


def _compiled(job: _Job, output: Path, options: CcOptions, meanwhile: Callable[[], object] | None) -> CcResult:
    """The object and log of a job at their places, from the cache or from clang."""
    cache, folder = Cache(), output.parent
    log = output.with_suffix(".cc.log")
    compilation = job.compilation(pch.pch_path(job.clang, job.flags, cache))
    if job.identity:
        provenance.remember(job.identity)
    use_cache = job.complete and (switches.CACHE.get() if options.use_cache is None else options.use_cache)
    key = job.key()
    if use_cache and (kept := cache.get("obj", key)) and (said := cache.get("cc-log", key)):
        warnings = said.read_text(encoding="utf-8")
        files.write(output, kept.read_bytes())
        lines = compilation.commands()
        _write_log(log, folder, lines, warnings, "not run: the object came from the compile cache")
        return CcResult(output, log, tuple(map(tuple, lines)), True, warnings)
    header = pch.precompiled_header(job.clang, job.flags, cache)
    if header != compilation.header:
        compilation = replace(compilation, header=header)
    done = compilation.run(job.folder, meanwhile)
    lines = done.commands
    _write_log(log, folder, lines, done.output, f"exit status {done.status}")
    if done.status != 0:
        raise diagnostics.compile_error(done.output, folder, command.include_folder(), job.built)
    made = job.output.read_bytes()
    files.write(output, made)
    if use_cache:
        cache.put("cc-log", key, done.output.encode())
        cache.put("obj", key, made)
    return CcResult(output, log, tuple(map(tuple, lines)), False, done.output)


def write_assembly(source: Path, output: Path, options: CcOptions) -> Path:
    """Compile the dialect text in `source` to assembly text for the host; returns its path."""
    with _job(source, output, options) as job:
        header = pch.precompiled_header(job.clang, job.flags, Cache())
        done = job.compilation(header, "-S").run(job.folder)
        if done.status != 0:
            folder = output.absolute().parent
            raise diagnostics.compile_error(done.output, folder, command.include_folder(), job.built)
        return files.write(output, job.output.read_bytes())


def dry_run(source: Path, output: Path, options: CcOptions) -> list[str]:
    """The shell lines `compile_file` would run, for pasting; only the translation unit they read is written."""
    job = _prepare(source, output, options)
    cache = Cache()
    header = pch.pch_path(job.clang, job.flags, cache)
    lines = []
    if not header.exists():
        lines.append(f"mkdir -p {shlex.quote(str(header.parent))}")
        lines.append(shlex.join(pch.pch_command(job.clang, job.flags, header)))
    steps = map(shlex.join, job.compilation(header).commands())
    lines.append(" && ".join((f"cd {shlex.quote(str(job.folder))}", *steps)))
    return lines


def _prepare(source: Path, output: Path, options: CcOptions) -> _Job:
    """Read the inputs and write the translation unit beside the object."""
    clang = find_clang(options.clang)
    text = files.read_text(source)
    extra = command.with_absolute_includes(options.extra, Path.cwd())
    complete = command.is_complete(text, extra)
    if not complete:  # clang reads a copy of the text elsewhere: files beside the text come after our headers
        extra = ("-iquote", str(command.include_folder()), "-iquote", str(source.absolute().parent), *extra)
    flags = command.kernel_flags(clang, options.target.define, extra)
    output = output.absolute()
    line_map = unit.read_line_map(source.with_name(source.name + ".map"))
    built = line_map.digests | {excerpts.digest(text.encode())}
    unit_text = unit.translation_unit(text, line_map, source.name)
    unit_text += origins.section_source(built) + arrays.section_source(line_map.arrays)
    job = _Job(clang, flags, unit_text, output.with_suffix(".cc.cl"), output, complete, built, b"")
    if switches.EMBED_SOURCE.get():
        job = _keeping_text(job, options.target.define, extra)
    files.write(job.unit_file, job.unit_text)
    return job


def _keeping_text(job: _Job, define: str, extra: tuple[str, ...]) -> _Job:
    """The same job whose object keeps its text: the unit's own, or with what it includes in it."""
    kept, text, said = job.unit_file, job.unit_text, declared.declared(extra)
    if not job.complete:
        files.write(job.unit_file, text)
        header = pch.precompiled_header(job.clang, job.flags, Cache())
        done = command.run(
            [str(job.clang.path), *job.flags, "-w", "-E", "-x", "cl", "-include-pch", str(header), kept.name],
            job.folder,
        )
        if done.status != 0:
            return job  # compiling it will tell why
        kept = kept.with_suffix(".all.cl")
        text = command.behind_header(done.output, job.unit_file.name).lstrip()
        said = said._replace(macros=())  # they are in the text now
        files.write(kept, text)
    unit_text = job.unit_text + sources.section_source(kept.name, job.unit_file.name, define, said)
    return replace(job, unit_text=unit_text, identity=sources.identity_of(job.unit_file.name, define, said, text))


def _write_log(path: Path, folder: Path, lines: list[list[str]], output: str, outcome: str) -> None:
    commands = "".join(f"command: {shlex.join(line)}\n" for line in lines)
    text = f"working directory: {folder}\n{commands}outcome: {outcome}\n\n{output}"
    files.write(path, text)
