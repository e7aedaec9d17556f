"""Writing addresses into parameter blocks and descriptors."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping

from compass_core.aipubin.layout import CLEAN_MASK, Area, Remap, ReuseSection, StaticSection

_WORD = struct.Struct("<I")


def patch_references(
    params: bytearray, desc: bytearray, placed: Iterable[tuple[ReuseSection | StaticSection, int]]
) -> None:
    """Replaces the masked bits of every referenced word by the address of its sub-section.

    `placed` are sections with the addresses they start at. References count through `params`, then `desc`.
    """
    for section, start in placed:
        for sub in section.subs:
            address, mask = start + sub.offset & 0xFFFFFFFF, sub.addr_mask
            for reference in sub.references:
                block, at = (params, reference) if reference < len(params) else (desc, reference - len(params))
                word = 0 if mask == CLEAN_MASK else _WORD.unpack_from(block, at)[0] & ~mask
                _WORD.pack_into(block, at, address & mask | word)


def remap_words(entries: Iterable[Remap], starts: Mapping[Area, int]) -> list[tuple[int, bytes]]:
    """The writes of the remap entries: addresses and words. `starts` are the addresses of the areas."""
    return [
        (
            starts[Area(entry.area)] + entry.offset,
            (starts[Area(entry.target_area)] + entry.target_offset & 0xFFFFFFFF).to_bytes(4, "little"),
        )
        for entry in entries
    ]
