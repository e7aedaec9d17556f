"""Which source files an object was built from: their hashes, in a section that is never loaded.

`compass_core.errors.excerpts` shows lines of these files, and of no others that the object's line tables name.
"""

from __future__ import annotations

from collections.abc import Iterable

from compass_core.elf.elf64 import section

SECTION = ".compass.origins"
_DIGITS = 64


def section_source(digests: Iterable[str]) -> str:
    """A line of C that notes the digests (`excerpts.digest`) in the object."""
    texts = "".join(f' ".ascii \\"{digest}\\"\\n"' for digest in sorted(set(digests)))
    return f'__asm__(".pushsection {SECTION},\\"\\",@progbits\\n"{texts} ".popsection\\n");\n'


def read(elf: bytes) -> frozenset[str]:
    """The digests that an object notes; those of linked objects stand one behind the other."""
    text = (section(elf, SECTION) or b"").decode("ascii", "replace")
    return frozenset(text[at : at + _DIGITS] for at in range(0, len(text), _DIGITS))
