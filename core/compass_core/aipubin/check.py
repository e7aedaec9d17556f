"""The rules that hold between the parts of an aipu.bin, beyond each record's own layout.

These are the refusals of the driver's loader, and also what a driver would stumble over without noticing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compass_core.aipubin import layout as lay
from compass_core.aipubin.device import TARGETS, is_x3, target_name
from compass_core.aipubin.fields import AipuBinError

if TYPE_CHECKING:
    from compass_core.aipubin.model import AipuBin

    _Section = lay.StaticSection | lay.ReuseSection
    _Listed = list[tuple[str, str, int, _Section]]


def check(content: AipuBin) -> None:
    """AipuBinError for the first rule that `content` breaks."""
    for rule in (_device, _text, _bss, _statics):
        rule(content)
    listed = list(_sections(content))
    _sizes(listed)
    _references(content, listed)
    for rule in (_tensors, _subgraphs, _remap, _gm):
        rule(content)
    _segmmu(content, listed)
    for rule in (_dynamic, _extra_weights):
        rule(content)


def _fail(note: str, field: str, message: str, code: str = "invalid-gbin", offset: int | None = None) -> AipuBinError:
    return AipuBinError(message, place=f"note '{note}'", field=field, code=code, offset=offset)


def _device(content: AipuBin) -> None:
    word = content.compiler.device
    name = target_name(word)
    if name not in TARGETS:
        raise _fail(
            "compilermsg",
            "device",
            f"the device word {word:#010x} means '{name}', which no driver knows",
            "target-not-found",
            8,
        )
    if name[0] == "Z" or name.startswith("X1"):
        raise _fail(
            "compilermsg",
            "device",
            f"'{name}' is older than this form of the file; X2 and X3 use it",
            "target-not-found",
            8,
        )
    if word >> 20 & 0xFF:
        raise _fail(
            "compilermsg", "device", f"architecture {word >> 20 & 0xFF} is not Zhouyi (0)", "target-not-found", 8
        )


def _text(content: AipuBin) -> None:
    if not content.text:
        raise AipuBinError("empty: there is no code", place="section '.text'")


def _bss(content: AipuBin) -> None:
    if not content.features.bss:
        raise _fail("fmlist", "bss count", "no BSS descriptor", offset=8)
    for b, bss in enumerate(content.features.bss):
        for field in ("stack_size", "stack_align"):
            if getattr(bss, field) == 0:
                raise _fail("fmlist", f"bss[{b}].{field}", "0 is not possible")
        if not bss.reuses:
            raise _fail("fmlist", f"bss[{b}].reuses count", "0 is not possible: there is no input or output")


_SEGMMU = int(lay.Kind.SEGMMU)
_CONSTANTS = (int(lay.Kind.CONSTANT), int(lay.Kind.ZERO_COPY))
"""Plain numbers: a graph has hundreds of parts to compare with them."""


def _statics(content: AipuBin) -> None:
    weights = len(content.weights)
    for b, bss in enumerate(content.features.bss):
        # BSS 1 and further may take their constants from files of their own, whose size is not known here
        own_file = content.extra_weights is not None and 1 <= b <= len(content.extra_weights.files)
        at = f"bss[{b}].statics"
        for s, section in enumerate(bss.statics):
            if section.align == 0 or section.align & (section.align - 1):
                raise _fail("fmlist", f"{at}[{s}].align", f"{section.align} is not a power of two")
            if not section.subs:
                raise _fail("fmlist", f"{at}[{s}].subs count", "0: nothing says what kind of constant it is")
            if section.subs[-1].type not in _CONSTANTS:
                raise _fail("fmlist", f"{at}[{s}].subs[-1].type", f"{section.subs[-1].type} is no kind of constant")
            if not own_file and section.src_offset + section.size > weights:
                raise _fail(
                    "fmlist",
                    f"{at}[{s}].src_offset",
                    f"{section.src_offset} with {section.size} bytes reaches past the {weights} bytes of note 'weight'",
                )


def _sections(content: AipuBin) -> Iterator[tuple[str, str, int, _Section]]:
    """Every section of the file, with the note, the list and the position it stands at."""
    for b, bss in enumerate(content.features.bss):
        lists: tuple[tuple[str, tuple[_Section, ...]], ...] = (("statics", bss.statics), ("reuses", bss.reuses))
        for field, sections in lists:
            name = f"bss[{b}].{field}"
            for s, section in enumerate(sections):
                yield "fmlist", name, s, section
    for g, graph in enumerate(content.subgraphs):
        for s, buffer in enumerate(graph.private_buffers):
            yield "subgraphs", f"subgraphs[{g}].private_buffers", s, buffer


def _sizes(listed: _Listed) -> None:
    total = 0
    for note, at, s, section in listed:
        total += -(-section.size // lay.PAGE) * lay.PAGE
        for i, sub in enumerate(section.subs):
            if sub.offset + sub.size > section.size:
                raise _fail(
                    note,
                    f"{at}[{s}].subs[{i}].size",
                    f"{sub.size} bytes at {sub.offset} lie outside the section ({section.size} bytes)",
                )
    if total > lay.REGION_SIZE:
        raise _fail("fmlist", "sections", f"{total} bytes in all do not fit the device's {lay.REGION_SIZE} bytes")


def _references(content: AipuBin, listed: _Listed) -> None:
    params, desc = len(content.params), len(content.desc)
    for note, at, s, section in listed:
        for i, sub in enumerate(section.subs):
            for reference in sub.references:
                limit = params if reference < params else params + desc
                if reference + 4 > limit:
                    raise _fail(
                        note,
                        f"{at}[{s}].subs[{i}].references",
                        f"the word at {reference} lies outside notes 'rodata' and 'desc' ({params} + {desc} bytes)",
                        "invalid-size",
                    )


def _tensors(content: AipuBin) -> None:
    found: dict[int, list[int]] = {kind: [] for kind in lay.INDEXED_KINDS}
    for bss in content.features.bss:
        for section in bss.reuses:
            for sub in section.subs:
                if sub.type in found:
                    found[sub.type].append(sub.id)
    for kind in lay.INDEXED_KINDS:
        ids = sorted(found[kind])
        if ids != list(range(len(ids))):
            raise _fail(
                "fmlist",
                "subs.id",
                f"the ids of the {lay.KIND_NAMES[kind]} tensors are {_short(ids)}, expected 0 .. {len(ids) - 1}",
            )


def _short(ids: list[int]) -> str:
    shown = ", ".join(map(str, ids[:8]))
    return f"{shown}, ..." if len(ids) > 8 else shown


_OF_SUBGRAPHS = (
    ("text_offset", "'.text' has {text} bytes"),
    ("bss_index", "{bss} BSS exist"),
    ("params_offset", "it must be a multiple of 4"),
    ("params_size", "note 'rodata' has {params} bytes, and the block starts at {graph.params_offset}"),
    ("desc_size", "note 'desc' has {desc} bytes, and the block starts at {graph.desc_offset}"),
    ("private_data_size", "it must be at least 1"),
    ("private_data_size", "it does not fit the device"),
)
"""Fields of a sub-graph, each with what is wrong where its rule does not hold."""


def _subgraphs(content: AipuBin) -> None:
    x3 = is_x3(target_name(content.compiler.device))
    if content.subgraphs and not content.params:
        raise AipuBinError("missing or empty: kernels have no parameters", place="note 'rodata'")
    text, bss, params, desc = len(content.text), len(content.features.bss), len(content.params), len(content.desc)
    for g, graph in enumerate(content.subgraphs):
        hold = (
            graph.text_offset < text,
            graph.bss_index < bss,
            graph.params_offset % 4 == 0,
            graph.params_offset + graph.params_size <= params,
            graph.desc_offset + graph.desc_size <= desc,
            graph.private_data_size > 0,
            graph.private_data_size <= lay.REGION_SIZE,
        )
        if not all(hold):
            field, reason = _OF_SUBGRAPHS[hold.index(False)]
            why = reason.format(text=text, bss=bss, params=params, desc=desc, graph=graph)
            raise _fail("subgraphs", f"subgraphs[{g}].{field}", f"{getattr(graph, field)} is wrong: {why}")
        if graph.precursors:
            _precursors(g, graph.precursors, x3)


def _precursors(g: int, waits: tuple[int, ...], x3: bool) -> None:
    if len(waits) > (4 if x3 else 1):
        raise _fail(
            "subgraphs",
            f"subgraphs[{g}].precursors count",
            f"{len(waits)}: the target can wait for {'4' if x3 else 'one'} sub-graph at most, or for all (-1)",
        )
    for other in waits:
        if other >= g or other > 0x7FFF:
            raise _fail("subgraphs", f"subgraphs[{g}].precursors", f"{other} does not come before sub-graph {g}")


def _remap(content: AipuBin) -> None:
    sizes = {lay.Area.PARAMS: len(content.params), lay.Area.DESC: len(content.desc), lay.Area.TEXT: len(content.text)}
    for i, entry in enumerate(content.remap):
        for field, area, offset, width in (
            ("offset", entry.area, entry.offset, 4),
            ("target_offset", entry.target_area, entry.target_offset, 0),
        ):
            if area not in list(lay.Area):
                raise _fail("remap", f"remap[{i}].{field.replace('offset', 'area')}", f"{area} is no part of the file")
            size = sizes[lay.Area(area)]
            if offset + width > size:
                raise _fail(
                    "remap",
                    f"remap[{i}].{field}",
                    f"{offset} lies outside the {size} bytes of {lay.Area(area).name.lower()}",
                )


def _gm(content: AipuBin) -> None:
    if content.gm is None:
        return
    reuses = sum(len(bss.reuses) for bss in content.features.bss)
    for i, buffer in enumerate(content.gm.buffers[: min(content.gm.control & 0xF, 1)]):
        rules = (
            ("fm_index", buffer.fm_index == 0, "0"),
            ("buffer_type", buffer.buffer_type <= 1, "0 (reuse) or 1 (constant)"),
            ("buffer_index", buffer.buffer_type == 1 or buffer.buffer_index < reuses, f"less than {reuses}"),
        )
        for field, holds, wanted in rules:
            if not holds:
                raise _fail(
                    "gmconfig", f"buffers[{i}].{field}", f"{getattr(buffer, field)} instead of {wanted}", "invalid-gm"
                )


def _segmmu(content: AipuBin, listed: _Listed) -> None:
    """One configuration for all cores or one per core; patched control words exist."""
    count = len(content.segmmu)
    if count not in (0, 1, content.cores):
        raise _fail("segmmu", "count", f"{count} configurations for {content.cores} cores", offset=0)
    for note, at, s, section in listed:
        for i, sub in enumerate(section.subs):
            if sub.type == _SEGMMU and (sub.id & 0xFF > 1 or sub.id >> 8 & 0xFF > 3):
                raise _fail(
                    note,
                    f"{at}[{s}].subs[{i}].id",
                    f"{sub.id:#x} names control {sub.id & 0xFF} of segment "
                    f"{sub.id >> 8 & 0xFF}; there are 2 controls in each of 4 segments",
                )


def _extra_weights(content: AipuBin) -> None:
    """Names of further files must not leave their folder; hashes are SHA-256."""
    for i, extra in enumerate(content.extra_weights.files if content.extra_weights else ()):
        if not extra.name or set(extra.name) & set("/\\\0") or extra.name in (".", ".."):
            raise _fail("extra_weight_name", f"files[{i}]", f"{extra.name[:40]!r} is not a plain file name")
        if len(extra.sha256) != 64 or set(extra.sha256.lower()) - set("0123456789abcdef"):
            raise _fail("extra_weight_name", f"files[{i}]", f"{extra.sha256[:70]!r} is not a SHA-256 in hex")


def _dynamic(content: AipuBin) -> None:
    limits = content.shape_limits
    inputs = len(content.sub_sections(lay.Kind.INPUT))
    if content.compiler.dynamic_shape and limits and len(limits) != 2 * inputs:
        raise _fail(
            "inputshapeconstraint", "count", f"{len(limits)}, expected two for each of {inputs} inputs", offset=0
        )
    if len(limits) % 2:
        raise _fail("inputshapeconstraint", "count", f"{len(limits)} is odd: every input has a least and a greatest")
    for i in range(0, len(limits), 2):
        low, high = limits[i].dims, limits[i + 1].dims
        if len(low) != len(high) or any(a > b for a, b in zip(low, high, strict=True)):
            raise _fail(
                "inputshapeconstraint",
                f"input {i // 2}",
                f"no shape lies between {_short(list(low))} and {_short(list(high))}",
            )
