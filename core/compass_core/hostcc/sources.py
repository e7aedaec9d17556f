"""The C text that an object keeps of itself, so that a run can have it compiled again in another way.

Checks, profiles and debuggers need other code than a plain run does. The section `.compass.source` (never loaded) holds
for each translation unit in the object three NUL-terminated strings: a JSON head (the file name, the flags that were the
builder's own, the target's macro) and the text, and a third for the linker: JSON of the unit's entry symbols and what
each is called in the linked object, `{}` in an object that was not linked.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from compass_core import host
from compass_core.cache import Cache, key_of
from compass_core.clang import find_clang
from compass_core.elf64 import section
from compass_core.errors import CompassError, ToolchainError
from compass_core.hostcc import command, pch
from compass_core.hostcc.objects import Compilation

SECTION = ".compass.source"
_HARMLESS = re.compile(
    r"-[DU].+|-[gO][\w-]*|-W(?![alp],)[\w=+-]+|-std=\S+|-cl-[\w=.-]+|-f[a-z0-9-]+|-ffp-\w+=\w+|-m(?!llvm)[\w.-]+(=[\w.+-]+)?",
    re.DOTALL,
)
"""Options that only shape the code. A file may come from anybody: none that loads, writes or runs a file is taken."""
REBUILD_HELP = "build it again with this toolchain, without COMPASS_EMBED_SOURCE=0"


@dataclass(frozen=True)
class Source:
    """A translation unit: its file name, target macro, the builder's flags, its text, and the names linking gave."""

    name: str
    define: str
    flags: tuple[str, ...]
    text: str
    entries: Mapping[str, str] = field(default_factory=dict)


def section_source(unit_file: str, define: str, flags: Sequence[str]) -> str:
    """A line of C, to stand in the file called `unit_file`, that puts the whole file into the object."""
    head = json.dumps({"name": unit_file, "define": define, "flags": list(flags)})
    parts = (
        f'.pushsection {SECTION},"",@progbits',
        f".asciz {_quoted(head)}",
        f".incbin {_quoted(unit_file)}",
        ".byte 0",
        '.asciz "{}"',
        ".popsection",
    )
    return "__asm__(" + " ".join(_quoted(part + "\n") for part in parts) + ");\n"


def _quoted(text: str) -> str:
    """`text` as a string literal of C and of the assembler."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def with_entries(content: bytes, entries: Mapping[str, str]) -> bytes:
    """The section's content of an object with one unit, saying what its entries are called once it is linked."""
    head, text, _ = content.split(b"\0", 2)
    return b"\0".join((head, text, json.dumps(dict(entries)).encode(), b""))


def read_sources(elf: bytes) -> list[Source]:
    """The translation units of an object. CompassError when it keeps none, or what it keeps is damaged."""
    content = section(elf, SECTION)
    if not content:
        raise CompassError("the C text of the kernel is not in the file", code="no-source", help=REBUILD_HELP)
    strings = content.split(b"\0")[:-1]
    try:
        if len(strings) % 3:
            raise ValueError(f"{len(strings)} strings")
        return [_source(*strings[i : i + 3]) for i in range(0, len(strings), 3)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CompassError(
            f"the C text of the kernel is damaged ({error!r})", code="no-source", help=REBUILD_HELP
        ) from None


def _source(head: bytes, text: bytes, entries: bytes) -> Source:
    fields, renamed = json.loads(head), json.loads(entries)
    name, define = str(fields["name"]), str(fields["define"])
    if os.sep in name or not name or not define.isidentifier():
        raise ValueError(f"bad name '{name}' or macro '{define}'")
    flags = tuple(str(flag) for flag in fields["flags"])
    _refuse_harmful(flags)
    return Source(name, define, flags, text.decode(), {str(k): str(v) for k, v in renamed.items()})


def _refuse_harmful(flags: Sequence[str]) -> None:
    words = iter(command.without_includes(flags))
    for word in words:
        if word in ("-D", "-U"):
            next(words, "")
        elif not _HARMLESS.fullmatch(word):
            raise ValueError(f"the compiler option '{word}' is not taken from a file")


def compile_source(source: Source, flags: Sequence[str], clang: str | None = None) -> bytes:
    """The object of a source compiled with `flags` behind its own; taken from the compile cache when it is there.

    ToolchainError when clang is missing or does not compile what it compiled before (a header of the builder's own may
    be missing on this machine).
    """
    import tempfile

    compiler, cache = find_clang(clang), Cache()
    options = command.kernel_flags(source.define, (*source.flags, *flags))
    key = key_of("variant-2", compiler.identity, command.headers_hash(), " ".join(host.cpu_features()),
                 source.text, source.name, *options)  # fmt: skip
    complete = command.is_complete(source.text, options)
    if complete and (kept := cache.get("obj", key)) is not None:
        return kept.read_bytes()
    header = pch.precompiled_header(compiler, options, cache)
    with tempfile.TemporaryDirectory(prefix="compassc-") as scratch:
        unit, output = Path(scratch, source.name), Path(scratch, "out.o")
        unit.write_text(source.text, encoding="utf-8")
        done = Compilation(compiler.path, options, header, unit.name, source.text, output.name).run(Path(scratch))
        if done.status != 0:
            raise ToolchainError(
                f"the kernel's C text does not compile here ('{source.name}')",
                code="no-variant",
                notes=tuple(done.output.strip().splitlines()[:12]),
                help="build the kernel again on this machine",
            )
        data = output.read_bytes()
    if complete:
        cache.put("obj", key, data)
    return data
