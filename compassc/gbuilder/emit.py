"""From a graph whose layers have their plugins to the content of an aipu.bin."""

from __future__ import annotations

import struct
from collections import Counter, defaultdict
from dataclasses import field
from pathlib import Path
from typing import Any

from compass_core import VERSION, files
from compass_core.aipubin import AipuBin
from compass_core.aipubin import layout as lay
from compass_core.aipubin.device import device_word
from compass_core.aipubin.dtypes import element_dtype
from compass_core.aipubin.fields import replace
from compass_core.dataclass import dataclass
from compass_core.elf.hostcode import DESCRIPTORS, entry_symbol, make_text_blob, parse_text_blob
from compass_core.elf.link import Part, link
from compass_core.errors import CompassError
from compass_core.files.pieces import Piece, Pieces, same, start_of
from compass_core.hostcc import host
from compassc.gbuilder.graph_json import graph_note
from compassc.gbuilder.launches import Launch, steps_of
from compassc.gbuilder.memory import Plan, PlannedSection, nbytes, owner
from compassc.gbuilder.nodes import Nodes
from compassc.gbuilder.order import waits
from compassc.gbuilder.plugin_api import BuilderParams, Tensor

BLOCK_ALIGN = 32
"""Alignment of parameter and descriptor blocks."""
CONST_ALIGN = 64
PRINTF_BYTES = 1024
_LEAST_SECTION = 32
"""Size of one task's printf area."""


@dataclass
class WordBuffer:
    """A block of 32-bit words growing in a note, and who refers to which tensor."""

    data: bytearray = field(default_factory=bytearray)
    tensors: list[tuple[int, Tensor]] = field(default_factory=list)

    def append(self, block: BuilderParams) -> int:
        """Adds an aligned block; gives its offset."""
        self.data += bytes(-len(self.data) % BLOCK_ALIGN)
        start = len(self.data)
        for word in block.words:
            if isinstance(word, Tensor):
                self.tensors.append((len(self.data), word))
            self.data += (0 if isinstance(word, Tensor) else word).to_bytes(4, "little")
        return start


def assemble(graph: Nodes, runs: list[Launch], target: str, planned: Plan, flags: int = 0) -> AipuBin:
    """The aipu.bin of a graph whose tensors lie as `planned`. `flags`: bit 0 no reuse of inputs, bit 1 of outputs."""
    params, desc = WordBuffer(), WordBuffer()
    blocks = [(params.append(run.params), desc.append(run.desc)) for run in runs]
    params.data = params.data or bytearray(4)  # a file whose kernels have no parameters has a word, too
    text, records = _text(runs)
    entries = parse_text_blob(text).entries
    descriptors = {id(r.match.merged.attrs.descriptorbase): at for r, (_, at) in zip(runs, blocks, strict=True)}
    references = _References(params, desc, descriptors)
    subgraphs = tuple(
        lay.Subgraph(
            id=i,
            text_offset=entries[record][1],
            params_offset=at_params,
            params_size=4 * len(run.params),
            desc_offset=at_desc,
            desc_size=4 * len(run.desc),
            printf_size=PRINTF_BYTES if run.printf else 0,
            precursors=before,
            private_buffers=_private(run, references),
        )
        for i, (run, record, (at_params, at_desc), before) in enumerate(
            zip(runs, records, blocks, waits(steps_of(runs), planned, target), strict=True)
        )
    )
    subgraphs = _on_all_cores(subgraphs, runs)
    weights, statics = _constants(runs, references)
    reuses = tuple(_reuse(section, references) for section in planned.sections)
    reuses = reuses or (lay.ReuseSection(_LEAST_SECTION),)  # a file without tensors needs one, too
    references.check_all_used()
    return AipuBin(
        compiler=lay.CompilerMessage(
            device=device_word(target), build_version=_build_version(), reserved=(flags, *(0,) * 7)
        ),
        features=lay.FeatureMaps((lay.Bss(reuses=reuses, statics=statics, stack_size=max(r.stack for r in runs)),)),
        subgraphs=subgraphs,
        text=text,
        params=bytes(params.data),
        desc=bytes(desc.data),
        weights=weights,
        remap=tuple(references.remap),
        comment=f"compassc {VERSION}\ntarget:{target};",
        kernel=runs[0].info if len(runs) == 1 else None,
        graph_json=b"" if len(runs) == 1 and runs[0].info else graph_note(graph, runs, planned).to_bytes(),
    )


def _on_all_cores(subgraphs: tuple[lay.Subgraph, ...], runs: list[Launch]) -> tuple[lay.Subgraph, ...]:
    """A sub-graph for each group of a kernel that runs on several cores: they wait for nothing, and their number is the
    group's. CompassError for such a kernel among others, whose sub-graphs have numbers, too."""
    wide = next((run for run in runs if run.info is not None and run.info.groups > 1), None)
    if wide is None or wide.info is None:
        return subgraphs
    if len(runs) > 1:
        raise CompassError(
            f"the kernel '{wide.kernel}' runs on all cores, which it cannot as a layer among others",
            code="grid",
            help="leave out S.get_group_id and S.get_num_groups; layers without dependencies run on several cores",
        )
    return tuple(replace(subgraphs[0], id=number, precursors=()) for number in range(wide.info.groups))


def _private(run: Launch, references: _References) -> tuple[lay.ReuseSection, ...]:
    """The launch's private buffers."""
    sections = []
    for buffer in run.match.merged.attrs.private_buffers:
        sub = lay.SubSection(size=nbytes(buffer), type=lay.Kind.INTERMEDIATE, data_type=_code(buffer))
        subs = references.sub_sections(buffer, [sub], lay.Kind.INTERMEDIATE)
        sections.append(lay.ReuseSection(nbytes(buffer), subs=tuple(subs)))
    return tuple(sections)


def _build_version() -> int:
    """major, minor and number of the version, as `compilermsg` packs them."""
    major, minor, number = (int(part) for part in VERSION.split(".")[:3])
    return major | minor << 8 | number << 16


def _asids(run: Launch) -> str:
    """Which words of a launch are addresses (docs/internals/files.md, ASID text): the parameters, and behind them the words of
    descriptors."""
    words = [_asid(word) for word in run.params.words]
    base = run.match.merged.attrs.descriptorbase
    places = [word.memory_offset().resolve() if isinstance(word, Tensor) else None for word in run.params.words]
    starts = [(place[1], i) for i, place in enumerate(places) if place is not None and place[0] is base]
    addresses = [(4 * i, word) for i, word in enumerate(run.desc.words) if isinstance(word, Tensor)]
    if not starts or not addresses:
        return "".join(words)
    last, first = min(starts)
    words[first] = DESCRIPTORS
    items = []
    for at, word in addresses:
        items.append(f"{(at - last) & 0xFFFFFFFF:x}:{_asid(word)}")
        last = at
    return "".join(words) + "+" + ",".join(items)


def _asid(word: int | Tensor) -> str:
    """The ASID that a word is an address in: constants are in ASID 1, all else is in ASID 0."""
    return "-" if not isinstance(word, Tensor) else "1" if owner(word).is_constant else "0"


def _text(runs: list[Launch]) -> tuple[bytes, list[int]]:
    """The host code of all launches, and the number of each one's entry record."""
    objects: dict[Path, dict[str, str]] = {}
    taken: set[str] = set()
    records: dict[tuple[str, str], None] = {}
    wanted = []
    for run in runs:
        entries = objects.setdefault(run.object_path.resolve(), {})
        symbol = entry_symbol(run.kernel)
        if symbol not in entries:
            name = symbol
            while name in taken:  # kernels of different objects may have the same name
                name = entry_symbol(f"{run.kernel}.{len(taken)}")
            taken.add(name)
            entries[symbol] = name
        wanted.append((entries[symbol], _asids(run)))
        records[wanted[-1]] = None
    data = {path: files.read(path) for path in objects}
    code = next(iter(data.values())) if len(data) == 1 else link([Part(p.name, data[p], objects[p]) for p in objects])
    order = sorted(records)
    symbols, asids = [symbol for symbol, _ in order], [text for _, text in order]
    blob = make_text_blob(code, symbols, host.features_of(data.values()), host.triple(), asids)
    return blob, [order.index(record) for record in wanted]


class _References:
    """Which words hold the address of which tensor, and at which distance from its start."""

    def __init__(self, params: WordBuffer, desc: WordBuffer, descriptors: dict[int, int]) -> None:
        self.remap: list[lay.Remap] = []
        self._by_tensor: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._names: dict[int, str] = {}
        for area, words, base in ((lay.Area.PARAMS, params, 0), (lay.Area.DESC, desc, len(params.data))):
            for at, tensor in words.tensors:
                owner, offset = tensor.memory_offset().resolve()
                if id(owner) in descriptors:
                    self.remap.append(lay.Remap(area, at, lay.Area.DESC, descriptors[id(owner)] + offset))
                    continue
                self._by_tensor[id(owner)][offset].append(base + at)
                self._names[id(owner)] = owner.name or repr(owner)

    def sub_sections(self, tensor: Tensor, subs: list[lay.SubSection], extra: lay.Kind) -> list[lay.SubSection]:
        """`subs` (all at the tensor's start) with the references to the start, and one of `extra` per other offset."""
        found = self._by_tensor.pop(id(tensor), {})
        first = replace(subs[0], references=tuple(found.pop(0, ())))
        others = []
        for offset, references in sorted(found.items()):
            if not 0 <= offset <= max(nbytes(tensor), lay.PAGE):
                raise CompassError(
                    f"a parameter points {offset} bytes behind the start of '{tensor.name}'", code="plugin"
                )
            others.append(lay.SubSection(offset=subs[0].offset + offset, type=extra, references=tuple(references)))
        return [first, *subs[1:], *others]

    def join(self, tensor: Tensor, other: Tensor) -> None:
        """Record that `other` shares the memory of `tensor`."""
        for offset, at in self._by_tensor.pop(id(other), {}).items():
            self._by_tensor[id(tensor)][offset] += at

    def check_all_used(self) -> None:
        """CompassError when a plugin refers to a tensor that is not part of the graph."""
        for key in self._by_tensor:
            raise CompassError(
                f"a plugin refers to the tensor {self._names[key]}, which is not part of the graph", code="plugin"
            )


def _constants(runs: list[Launch], references: _References) -> tuple[Pieces, tuple[lay.StaticSection, ...]]:
    """The weights, and a static section per constant that a layer has or reads; equal constants of layers share one."""
    parts: list[Piece | Pieces] = []
    at = 0
    sections = []
    for tensor, *equal in _by_content(runs):
        data = tensor.content or b""
        for other in equal:
            references.join(tensor, other)
        parts.append(bytes(-at % CONST_ALIGN))
        at += len(parts[-1])
        sub = lay.SubSection(size=len(data), type=lay.Kind.CONSTANT, data_type=_code(tensor))
        subs = references.sub_sections(tensor, [sub], lay.Kind.CONSTANT)
        sections.append(lay.StaticSection(at, len(data), CONST_ALIGN, tuple(subs)))
        parts.append(data)
        at += len(data)
    return Pieces(parts), tuple(sections)


def _by_content(runs: list[Launch]) -> list[list[Tensor]]:
    """The constants, those of equal content and type together. A kernel's own (of the note `compassc`) are alone: a call
    may give one of them other content."""
    found: dict[int, tuple[Tensor, Piece | Pieces, bool]] = {}
    for run in runs:
        for tensor in (*run.match.merged.constants.values(), *run.match.merged.inputs):
            if tensor.content is not None:
                found.setdefault(id(tensor), (tensor, tensor.content, run.info is None))
    many = Counter((len(data), _code(tensor)) for tensor, data, _ in found.values())
    groups: list[list[Tensor]] = []
    alike: dict[tuple[object, ...], list[tuple[Piece | Pieces, list[Tensor]]]] = defaultdict(list)
    for tensor, data, may_share in found.values():
        kind = len(data), _code(tensor)
        near = alike[(*kind, start_of(data))] if may_share and many[kind] > 1 else []
        equal = next((group for known, group in near if same(known, data)), None)
        if equal is None:
            groups.append(equal := [])
            near.append((data, equal))
        equal.append(tensor)
    return groups


def _reuse(section: PlannedSection, references: _References) -> lay.ReuseSection:
    subs: list[lay.SubSection] = []
    for placed in section.placements:
        size, code = nbytes(placed.tensor), _code(placed.tensor)
        own = [
            lay.SubSection(
                offset=placed.offset,
                size=size,
                type=role.kind,
                id=role.number,
                data_type=code,
                scale=_f32(_single(placed.tensor.scale, 1.0)),
                zero_point=_single(placed.tensor.zero_point, 0),
            )
            for role in placed.roles
        ]
        subs += references.sub_sections(placed.tensor, own, lay.Kind.INTERMEDIATE)
    return lay.ReuseSection(section.size, subs=tuple(subs))


def _code(tensor: Tensor) -> int:
    return element_dtype(str(tensor.dtype)).code


def _single(value: object, default: float) -> Any:
    """A scale or zero point; the default where there is one per channel, which the record cannot hold."""
    return default if isinstance(value, (tuple, list)) else value


def _f32(value: float) -> float:
    """The nearest float32: what the record can hold."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])
