"""The C text that an object keeps of itself, so that a run can have it compiled again in another way.

Checks, profiles and debuggers need other code than a plain run does. The section `.compass.source` (never loaded) holds
for each translation unit in the object three NUL-terminated strings: a JSON head (the file name, the target's macro, and
what it declares of the builder's flags, see `declared`) and the text, and a third for the linker: JSON of the unit's
entry symbols and what each is called in the linked object, `{}` in an object that was not linked.

The text is complete: files that it includes, but for the headers of the dialect, are in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache

from compass_core import targets
from compass_core.dataclass import dataclass
from compass_core.elf.elf64 import section
from compass_core.errors import CompassError
from compass_core.hostcc import declared
from compass_core.reading import names
from compass_core.reading.limits import KEPT_OPTIONS, KEPT_TEXT, KEPT_UNITS

SECTION = ".compass.source"
REBUILD_HELP = "build it again with this toolchain, without COMPASS_EMBED_SOURCE=0"
_QUESTIONS = ("__has_include", "__has_include_next", "__has_embed")
_NAME = re.compile(r"\w[\w .,+=@()-]{0,250}")
"""Letters of any language; nothing that ends a string, a line or a folder."""
_KEEPER = re.compile(r'^__asm__\("\.pushsection \.compass\.source,[^\n]*\n?\Z', re.MULTILINE)
"""The line that put a text into its object; compiled again it would read a file."""


@dataclass(frozen=True)
class Source:
    """A translation unit: its file name, target macro, what it declares of the builder's flags, its text, and the names
    linking gave.

    `identity` is what own builds are known by (`identity_of`), whatever becomes of the text; `trusted`: the user says that
    it may be compiled even where nothing confines the compiler.
    """

    name: str
    define: str
    macros: tuple[declared.Macro, ...]
    options: tuple[str, ...]
    text: str
    entries: Mapping[str, str] = field(default_factory=dict)
    identity: bytes = b""
    trusted: bool = False

    @property
    def unit(self) -> str:
        """The unit as clang compiles it: macros, then the text as line 1 of its file. It cannot ask which files
        there are."""
        head = [*(f"#undef {name}" for name in _QUESTIONS), *(macro.line for macro in self.macros)]
        return "\n".join((*head, f'# 1 "{self.name}"', self.text))


def identity_of(name: str, define: str, said: declared.Declared, text: str) -> bytes:
    """The bytes that identify a translation unit: everything that decides the compilation."""
    return json.dumps([name, define, said.macros, said.options, text]).encode()


def own_text(text: str) -> str:
    """A text without the line that puts it into its object."""
    return _KEEPER.sub("", text)


def section_source(kept_file: str, name: str, define: str, said: declared.Declared) -> str:
    """A line of C that puts the whole file `kept_file` into the object, as the text of the unit called `name`."""
    head = json.dumps({"name": name, "define": define, "macros": said.macros, "options": said.options})
    parts = (
        f'.pushsection {SECTION},"",@progbits',
        f".asciz {_quoted(head)}",
        f".incbin {_quoted(kept_file)}",
        ".byte 0",
        '.asciz "{}"',
        ".popsection",
    )
    return "__asm__(" + " ".join(_quoted(part + "\n") for part in parts) + ");\n"


def section_content(source: Source) -> bytes:
    """What the section of an object holds that was compiled from `source` without such a line."""
    head = {"name": source.name, "define": source.define, "macros": source.macros, "options": source.options}
    return b"\0".join((json.dumps(head).encode(), source.text.encode(), b"{}", b""))


def _quoted(text: str) -> str:
    """`text` as a string literal of C and of the assembler."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def with_entries(content: bytes, entries: Mapping[str, str]) -> bytes:
    """The section's content of an object with one unit, saying what its entries are called once it is linked."""
    head, text, _ = content.split(b"\0", 2)
    return b"\0".join((head, text, json.dumps(dict(entries)).encode(), b""))


def read_sources(elf: bytes, trusted: bool = False) -> list[Source]:
    """The translation units of an object. CompassError when it keeps none, or what it keeps is damaged or declares what
    no file may."""
    content = section(elf, SECTION)
    if not content:
        raise CompassError("the C text of the kernel is not in the file", code="no-source", help=REBUILD_HELP)
    KEPT_TEXT.check(len(content), "the C text of the kernel")
    strings = content.split(b"\0")[:-1]
    try:
        if len(strings) % 3:
            raise ValueError(f"{len(strings)} strings")
        KEPT_UNITS.check(len(strings) // 3, "the C text of the kernel")
        triples = zip(strings[::3], strings[1::3], strings[2::3])
        sources = [_source(head, text, entries, trusted) for head, text, entries in triples]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CompassError(
            f"the C text of the kernel is damaged ({error!r})", code="no-source", help=REBUILD_HELP
        ) from None
    KEPT_OPTIONS.check(len({(s.define, s.options) for s in sources}), "the C text of the kernel")  # each has its header
    return sources


def _source(head: bytes, text: bytes, entries: bytes, trusted: bool) -> Source:
    fields, renamed = json.loads(head), json.loads(entries)
    name, define = str(fields["name"]), str(fields["define"])
    if _NAME.fullmatch(name) is None or define not in _defines():
        raise ValueError(f"bad name '{name:.80}' or macro '{define:.80}'")
    said = declared.read(fields["macros"], fields["options"])
    symbols = {names.symbol(old, "entry symbol"): names.symbol(new, "entry symbol") for old, new in renamed.items()}
    own = own_text(text.decode())
    known_by = identity_of(name, define, said, own)
    return Source(name, define, said.macros, said.options, own, symbols, known_by, trusted)


@lru_cache(maxsize=1)
def _defines() -> frozenset[str]:
    """The macros of all targets."""
    return frozenset(targets.load(name).define for name in targets.names())
