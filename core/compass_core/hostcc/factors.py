"""Bytes that a kernel's C text brings by DMA and multiplies several times, taken apart once for hosts that multiply 16 bits.

Hosts without an instruction for sums of four products of bytes make two vectors of 16 bits of each vector of bytes. Where
bytes in LSRAM are factors for one pixel after the other, code for the host takes them apart behind the copy that brings them,
and then loads the halves (compass/horiz.h). A text is changed only where it shows that nothing else is done with the array:
it is written by copies of one piece to its begin, and read as factors alone, in whole vectors from its begin on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

_POINTER = re.compile(
    r"^ *__lsram char\* (?P<name>\w+) = (?P<open>\()?(?P<base>\w+)(?(open) \+ (?P<offset>[^;]*)\));$", re.MULTILINE
)
_MOVE = re.compile(r"^ *(?P<name>\w+) = \((?P<base>\w+) \+ (?P<offset>[^;]*)\);$", re.MULTILINE)
_COPY = re.compile(
    r"^ *DmaDirect_\w+_to_kLsram\(\(int\)(?P<name>\w+), [^;]*, (?P<size>\w+)(?:, (?P=size)){3}\);$", re.MULTILINE
)
_LOAD = re.compile(
    r"^ *(?P<type>char32) (?P<factor>\w+) = (?P<call>__vload\()\(__lsram char32\*\)\(?(?P<name>\w+)(?: \+ (?P<offset>\d+)\))?, ALL_TRUE_b\);$",
    re.MULTILINE,
)
_PRODUCT = re.compile(r"= __wqdpa\(\w+, \w+, (?P<factor>\w+), ALL_TRUE_b\);")
_ADDED = re.compile(r" __compass_halve(?:s_of)?\(\w+, \w+\);")
_ARRAY = re.compile(r"__lsram char (\w+)\[(\d+)\];")
VECTOR = 32
"""Bytes of a vector."""
_TYPES, _CALLS = ("char32", "__pair"), ("__vload(", "__wload(")
"""What types and calls of loads become."""
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[()]| [*+] ")


def apart(text: str) -> str:
    """The text of one kernel file with halves of factors; what is added stands at ends of lines."""
    if text.count("__wqdpa(") < 2:
        return text
    arrays = [name for name, size in _ARRAY.findall(text) if int(size) % VECTOR == 0]
    found = [edits for array in arrays if (edits := sorted(_edits(text, array), reverse=True))]
    for start, end, words in found[0] if len(found) == 1 else ():
        text = text[:start] + words + text[end:]
    return text


def whole(text: str) -> str:
    """The text from which `apart` made this one: what profiles count."""
    return _ADDED.sub("", text).replace(*_TYPES[::-1]).replace(*_CALLS[::-1]) if _TYPES[1] in text else text


def _edits(text: str, array: str) -> Iterator[tuple[int, int, str]]:
    """What to put in the place of which characters; nothing where more is done with the array, or with an array of this name."""
    pointers = _followers(text, array)
    names, roots = {p["name"] for p in pointers}, [p for p in pointers if p["base"] == array]
    copies = [c for c in _COPY.finditer(text) if c["name"] in names]
    loads = [m for m in _LOAD.finditer(text) if m["name"] in names]
    if not copies or len(roots) != 1 or roots[0]["offset"] or any(c["name"] != roots[0]["name"] for c in copies):
        return
    root = roots[0]
    factors = Counter(m["factor"] for m in loads)
    products = [m["factor"] for m in _PRODUCT.finditer(text) if m["factor"] in factors]
    moves = [m for m in _MOVE.finditer(text) if m["base"] == m["name"] != root["name"] and m["name"] in names]
    told = Counter([array, *products]) + factors
    for found in (*pointers, *moves):
        told.update((found["name"], found["base"]))
    told.update(found["name"] for found in (*copies, *loads))
    said = Counter(_WORD.findall(text))
    own = {array, *factors, *names}
    if not all(_is_whole(text, found["offset"]) for found in (*pointers, *moves, *loads)):
        return
    if len(products) < 2 * len(loads) or any(told[name] != said[name] for name in own):
        return
    yield root.end(), root.end(), f" __compass_halves_of({root['name']}, {array});"
    for copy in copies:
        yield copy.end(), copy.end(), f" __compass_halve({copy['name']}, {copy['size']});"
    for load in loads:
        yield load.start("type"), load.end("type"), _TYPES[1]
        yield load.start("call"), load.end("call"), _CALLS[1]


def _is_whole(text: str, offset: str | None, known: frozenset[str] = frozenset()) -> bool:
    """Whether an offset is certainly one of whole vectors: a number, a variable whose values are, or a sum or product in
    brackets. `known`: variables that are, if all else is."""
    if offset is None or offset.isdecimal():
        return int(offset or 0) % VECTOR == 0
    if offset.isidentifier():
        return offset in known or _holds_whole(text, offset, known | {offset})
    depth, at = 0, None
    for part in _PART.finditer(offset):
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if (depth == 0 and part.end() < len(offset)) or (depth == 1 and at and part[0] not in "()"):
            return False  # not one pair of brackets around two parts
        at = part if depth == 1 and part[0] not in "()" else at
    if at is None or not offset.startswith("("):
        return False
    sides = [_is_whole(text, side, known) for side in (offset[1 : at.start()], offset[at.end() : -1])]
    return any(sides) if at[0] == " * " else all(sides)


def _holds_whole(text: str, name: str, known: frozenset[str]) -> bool:
    """Whether all that a variable is given are offsets of whole vectors."""
    values = re.findall(rf"^ *(?:int )?{name} = ([^;]*);$", text, re.MULTILINE)
    changes = re.findall(rf"\b{name} *(?:[-+*/%&|^]|<<|>>)?=(?!=)|\b{name} *(?:\+\+|--)|(?:\+\+|--) *{name}\b", text)
    return 0 < len(values) == len(changes) and all(_is_whole(text, value, known) for value in values)


def _followers(text: str, array: str) -> list[re.Match[str]]:
    """The definitions of pointers into an array."""
    every = list(_POINTER.finditer(text))
    names, found = {array}, list[re.Match[str]]()
    while len(now := [p for p in every if p["base"] in names]) > len(found):
        found = now
        names.update(p["name"] for p in found)
    return found
