"""An aipu.bin as readable tables, for `compassc inspect`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from compass_core.aipubin import layout as lay
from compass_core.aipubin.dtypes import CODE_NAMES
from compass_core.aipubin.graphnote import read_note

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
        _layers(content),
        _tensors(content),
        _sections(content),
        _references(content),
        _remap(content),
        _words("parameter words before patching", content.params),
        _words("descriptor words before patching", content.desc),
        _gm(content),
        _segmmu(content),
        _hashes(content),
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
    kept = [what for bit, what in enumerate(("inputs", "outputs")) if message.reserved[0] >> bit & 1]
    if kept:
        rows.append(("memory not reused", " and ".join(kept)))
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


_SUBGRAPH: tuple[tuple[str, Callable[[lay.Subgraph], str]], ...] = (
    ("entry", lambda g: f"{g.text_offset:#x}"),
    ("bss", lambda g: str(g.bss_index)),
    ("parameters", lambda g: f"{g.params_offset:#x}"),
    ("size", lambda g: str(g.params_size)),
    ("descriptors", lambda g: f"{g.desc_offset:#x}" if g.desc_size else "-"),
    ("size", lambda g: str(g.desc_size)),
    ("printf", lambda g: str(g.printf_size)),
    ("profiler", lambda g: f"{g.profiler_offset:#x}"),
    ("private data", lambda g: str(g.private_data_size)),
    ("buffers", lambda g: str(len(g.private_buffers))),
    ("warm-up", lambda g: str(g.warmup_len)),
    ("waits for", lambda g: "all" if g.precursors is None else ", ".join(map(str, g.precursors)) or "-"),
)
"""Columns of the sub-graphs' table."""


def _subgraphs(content: AipuBin) -> Table:
    rows = [(str(i), *(show(g) for _, show in _SUBGRAPH)) for i, g in enumerate(content.subgraphs)]
    return "sub-graphs", ("sub-graph", *(title for title, _ in _SUBGRAPH)), rows


def _layers(content: AipuBin) -> Table:
    """Which layers each launch computes, as the note `graphjson` says when it has this toolchain's form."""
    note = read_note(content.graph_json)
    rows = [
        (str(number), ", ".join(run.names), ", ".join(run.types), run.kernel)
        + tuple(", ".join(names) for names in (run.inputs, run.outputs, run.inner))
        for number, run in enumerate(note.launches if note else ())
    ]
    return "launches and their layers", ("sub-graph", "layers", "types", "kernel", "inputs", "outputs", "inside"), rows


def _tensors(content: AipuBin) -> Table:
    """The graph's tensors by name, of this toolchain's note."""
    note = read_note(content.graph_json)
    columns = ("name", "role", "dtype", "shape", "scale", "zero point", "section", "offset", "made by")
    rows = [
        (t.name, role, t.dtype, "x".join(map(str, t.shape)), _several(t.scale), _several(t.zero_point))
        + (("", "") if t.section is None else (str(t.section), hex(t.offset)))
        + (str(t.made) if t.made >= 0 else "",)
        for role, listed in (
            (("input", note.inputs), ("", note.tensors), ("output", note.outputs)) if note is not None else ()
        )
        for t in listed
    ]
    return "tensors", columns, rows


def _several(numbers: float | tuple[float, ...]) -> str:
    return f"{len(numbers)} values" if isinstance(numbers, tuple) else f"{numbers:g}"


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
            rows.append(
                (*head, kind, str(sub.id), dtype, str(sub.offset), str(sub.size), f"{sub.scale:g}", str(sub.zero_point))
            )
    stacks = ", ".join(f"{bss.stack_size:#x}" for bss in content.features.bss)
    columns = ("section", "bytes", "align", "kind", "id", "dtype", "offset", "size", "scale", "zero point")
    return f"feature maps (stack {stacks})", columns, rows


def _references(content: AipuBin) -> Table:
    found = [
        (reference, name, i, sub.addr_mask)
        for name, section in _all_sections(content)
        for i, sub in enumerate(section.subs)
        for reference in sub.references
    ]
    size = len(content.params)
    rows = [
        (f"rodata+{at:#x}" if at < size else f"desc+{at - size:#x}", name, str(i), f"{mask:#010x}")
        for at, name, i, mask in sorted(found)
    ]
    return "patched words", ("word", "address of", "sub-section", "mask"), rows


def _remap(content: AipuBin) -> Table:
    def at(area: int, offset: int) -> str:
        return f"{lay.Area(area).name.lower()}+{offset:#x}"

    rows = [(at(r.area, r.offset), at(r.target_area, r.target_offset)) for r in content.remap]
    return "remap", ("word", "address of"), rows


def _words(title: str, data: bytes) -> Table:
    rows = []
    for start in range(0, min(len(data), 4096) & ~3, 16):
        words = [data[i : i + 4][::-1].hex() for i in range(start, min(start + 16, len(data) & ~3), 4)]
        rows.append((f"{start:#06x}", " ".join(words)))
    return title, ("offset", "words"), rows


def _gm(content: AipuBin) -> Table:
    rows = []
    if content.gm is not None:
        for i, buffer in enumerate(content.gm.buffers):
            used = "yes" if i < content.gm.control & 0xF else "no"
            kind = {0: "reuse", 1: "constant"}.get(buffer.buffer_type, str(buffer.buffer_type))
            region = f"{content.gm.region_control[i]:#010x}"
            rows.append((str(i), used, region, str(buffer.fm_index), kind, str(buffer.buffer_index)))
    return "global memory", ("region", "used", "control", "bss", "kind", "section"), rows


def _segmmu(content: AipuBin) -> Table:
    rows = [
        (str(i), f"{core.ctl:#x}", f"{core.remap:#x}", " ".join(f"{word:08x}" for word in core.control))
        for i, core in enumerate(content.segmmu)
    ]
    return "segment MMU", ("core", "control", "remap", "segments"), rows


def _hashes(content: AipuBin) -> Table:
    rows = [
        (str(i), str(item.offset), str(item.size), item.hash.hex()[:16])
        for i, table in enumerate(content.hash_tables)
        for item in table.items
    ]
    return "hashes of constants", ("bss", "offset", "bytes", "hash"), rows


def _others(content: AipuBin) -> Table:
    rows: list[tuple[str, ...]] = []
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
    rows += [(f"note {note.name}", f"type {note.type}, {len(note.payload)} bytes") for note in content.other_notes]
    return "more", ("what", "value"), rows
