"""An aipu.bin as readable tables, for `compassc inspect`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from compass_core.aipubin import layout as lay
from compass_core.aipubin.dtypes import CODE_NAMES

if TYPE_CHECKING:
    from compass_core.aipubin.model import AipuBin

Table = tuple[str, tuple[str, ...], Sequence[tuple[str, ...]]]
"""A title, the column names, and the rows."""


def tables(content: AipuBin) -> list[Table]:
    """Tables that show all of `content`; those without rows are left out."""
    found = [
        _general(content),
        _kernel(content),
        _subgraphs(content),
        _sections(content),
        _references(content),
        _remap(content),
        _words(content),
        _others(content),
    ]
    return [table for table in found if table[2]]


def _general(content: AipuBin) -> Table:
    message = content.compiler
    version, build = message.file_version, message.build_version
    rows = [
        ("target", content.target),
        ("device word", f"{message.device:#010x}"),
        ("file version", f"{version >> 16 & 0xFF}.{version >> 24}"),
        ("build version", f"{build & 0xF}.{build >> 8 & 0xF}.{build >> 16}"),
        ("flags", f"{message.flag:#x}" + (" (dynamic shape)" if message.dynamic_shape else "")),
    ]
    sizes = {
        ".text": content.text,
        ".rodata": content.const_data,
        ".data": content.data,
        "parameters": content.params,
        "descriptors": content.desc,
        "weights": content.weights,
        "graph json": content.graph_json,
    }
    rows += [(name, f"{len(data)} bytes") for name, data in sizes.items() if data]
    if content.comment:
        rows.append(("comment", content.comment.replace("\n", " | ")))
    return "aipu.bin", ("what", "value"), rows


def _kernel(content: AipuBin) -> Table:
    kernel = content.kernel
    columns = ("name", "role", "index", "dtype", "scope", "shape", "value")
    if kernel is None:
        return "kernel", columns, []
    rows = []
    for p in kernel.params:
        if p.role == "attr":
            rows.append((p.name, p.role, "", p.dtype, "", "", "at run time" if p.value is None else str(p.value)))
            continue
        shape = "at run time" if p.shape is None else "x".join(map(str, p.shape)) or "scalar"
        role = "in/output" if p.role == "output" and p.read else p.role
        rows.append((p.name, role, str(p.index), p.dtype, p.scope, shape, ""))
    return f"kernel {kernel.kernel}", columns, rows


def _subgraphs(content: AipuBin) -> Table:
    rows = []
    for i, g in enumerate(content.subgraphs):
        waits = "all" if g.precursors is None else ", ".join(map(str, g.precursors)) or "-"
        rows.append((str(i), f"{g.text_offset:#x}", f"{g.params_offset:#x}", str(g.params_size), str(g.desc_size),
                     str(g.printf_size), str(g.private_data_size), str(len(g.private_buffers)), waits))  # fmt: skip
    columns = (
        "sub-graph",
        "entry",
        "parameters",
        "size",
        "descriptors",
        "printf",
        "private data",
        "buffers",
        "waits for",
    )
    return "sub-graphs", columns, rows


def _all_sections(content: AipuBin) -> Iterator[tuple[str, lay.StaticSection | lay.ReuseSection]]:
    for b, bss in enumerate(content.features.bss):
        for s, static in enumerate(bss.statics):
            yield f"bss {b} static {s}", static
        for s, reuse in enumerate(bss.reuses):
            yield f"bss {b} reuse {s}", reuse
    for g, graph in enumerate(content.subgraphs):
        for s, buffer in enumerate(graph.private_buffers):
            yield f"sub-graph {g} private {s}", buffer


def _sections(content: AipuBin) -> Table:
    rows = []
    for name, section in _all_sections(content):
        for sub in section.subs or (None,):
            head = (name, str(section.size), str(section.align))
            if sub is None:
                rows.append((*head, "scratch", "", "", "", "", "", ""))
                continue
            kind = lay.KIND_NAMES.get(sub.type, f"type {sub.type}")
            dtype = CODE_NAMES.get(sub.data_type, f"code {sub.data_type:#x}")
            rows.append((*head, kind, str(sub.id), dtype, str(sub.offset), str(sub.size),
                         f"{sub.scale:g}", str(sub.zero_point)))  # fmt: skip
    stacks = ", ".join(f"{bss.stack_size:#x}" for bss in content.features.bss)
    columns = ("section", "bytes", "align", "kind", "id", "dtype", "offset", "size", "scale", "zero point")
    return f"feature maps (stack {stacks})", columns, rows


def _references(content: AipuBin) -> Table:
    rows = []
    for name, section in _all_sections(content):
        for i, sub in enumerate(section.subs):
            for ref in sub.references:
                at = f"rodata+{ref:#x}" if ref < len(content.params) else f"desc+{ref - len(content.params):#x}"
                rows.append((at, name, str(i), f"{sub.addr_mask:#010x}"))
    return "patched words", ("word", "address of", "sub-section", "mask"), sorted(rows)


def _remap(content: AipuBin) -> Table:
    def at(area: int, offset: int) -> str:
        return f"{lay.Area(area).name.lower()}+{offset:#x}"

    rows = [(at(r.area, r.offset), at(r.target_area, r.target_offset)) for r in content.remap]
    return "remap", ("word", "address of"), rows


def _words(content: AipuBin) -> Table:
    data = content.params
    rows = []
    for start in range(0, min(len(data), 4096) & ~3, 16):
        words = [data[i : i + 4][::-1].hex() for i in range(start, min(start + 16, len(data) & ~3), 4)]
        rows.append((f"{start:#06x}", " ".join(words)))
    return "parameter words before patching", ("offset", "words"), rows


def _others(content: AipuBin) -> Table:
    rows: list[tuple[str, ...]] = []
    if content.gm is not None:
        rows.append(("gmconfig", f"control {content.gm.control:#x}, {content.gm.control & 0xF} buffers"))
    if content.segmmu:
        rows.append(("segmmu", f"{len(content.segmmu)} cores"))
    if content.global_params is not None:
        shared = content.global_params
        rows.append(
            ("globalparam", f"{shared.num_params} parameters, input shapes at {shared.input_shape_offset}"),
        )
    for i in range(0, len(content.shape_limits), 2):
        low, high = content.shape_limits[i].dims, content.shape_limits[i + 1].dims
        rows.append((f"input {i // 2} shape", f"{list(low)} .. {list(high)}"))
    for extra in content.extra_weights.files if content.extra_weights else ():
        rows.append(("extra weights", f"{extra.name} sha256 {extra.sha256[:16]}"))
    for i, table in enumerate(content.hash_tables):
        rows.append((f"constant hashes of bss {i}", f"{len(table.items)}"))
    rows += [(f"note {note.name}", f"type {note.type}, {len(note.payload)} bytes") for note in content.other_notes]
    return "more", ("what", "value"), rows
