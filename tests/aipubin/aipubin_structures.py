"""Hypothesis strategies for valid aipu.bin structures."""

from __future__ import annotations

from hypothesis import strategies as st

from compass_core.aipubin import AipuBin, KernelInfo, Note, Param
from compass_core.aipubin import layout as lay
from compass_core.aipubin.device import device_word
from tests.words import word

U32 = st.integers(0, 0xFFFFFFFF)
TARGETS = ("X2_1204", "X2_1204MP3", "X3P_1304", "X3S_1304MP2")
NAMES = word(r"[a-z][a-z0-9_]{0,8}")


def _words(count: int) -> st.SearchStrategy[tuple[int, ...]]:
    return st.tuples(*[U32] * count)


RESERVED = _words(3)
MMU = st.lists(st.builds(lay.SegMmu, control=_words(8), ctl=U32), max_size=1)
GLOBAL_PARAMS = st.one_of(st.none(), st.builds(lay.GlobalParams, U32, U32, st.binary(max_size=8)))
HASHES = st.lists(st.builds(lay.ConstantHash, U32, U32, st.binary(min_size=32, max_size=32)), max_size=2)
HASH_TABLES = st.lists(st.builds(lay.HashTable, HASHES.map(tuple)), max_size=2)
OTHER_NOTES = st.dictionaries(NAMES.map("x{}".format), st.binary(max_size=9), max_size=2)
ROLES = st.lists(st.sampled_from(("input", "output", "const", "attr")), max_size=5)
SHAPES = st.one_of(st.none(), st.lists(st.integers(0, 64), max_size=3).map(tuple))
VALUES = st.one_of(st.none(), st.integers(-5, 5), st.floats(allow_nan=False))
EXTENTS = st.one_of(st.none(), st.dictionaries(NAMES, st.integers(), max_size=2))
BUFFERS = st.builds(lay.GmBuffer, buffer_type=st.integers(0, 1), reserved=U32)


@st.composite
def sub_sections(draw, section_size: int, words: int, kinds=(lay.Kind.INTERMEDIATE, lay.Kind.PROFILER, 99)):
    offset = draw(st.integers(0, section_size))
    references = draw(st.lists(st.integers(0, words - 1).map(lambda w: 4 * w), max_size=3)) if words else []
    return lay.SubSection(
        offset=offset,
        size=draw(st.integers(0, section_size - offset)),
        type=int(draw(st.sampled_from(kinds))),
        id=draw(U32),
        data_type=draw(st.integers(0, 0x23)),
        scale=draw(st.floats(width=32, allow_nan=False)),
        zero_point=draw(st.integers(-(2**31), 2**31 - 1)),
        reserved=draw(RESERVED),
        addr_mask=draw(U32),
        references=tuple(references),
    )


@st.composite
def reuse_sections(draw, words: int):
    size = draw(st.integers(1, 1 << 20))
    subs = draw(st.lists(sub_sections(size, words), max_size=3))
    return lay.ReuseSection(size, draw(st.sampled_from((1, 32, 4096))), draw(U32), tuple(subs))


@st.composite
def static_sections(draw, weights: int, words: int):
    start = draw(st.integers(0, weights))
    size = draw(st.integers(0, weights - start))
    subs = draw(st.lists(sub_sections(size, words, (lay.Kind.CONSTANT, lay.Kind.ZERO_COPY)), min_size=1, max_size=2))
    return lay.StaticSection(start, size, draw(st.sampled_from((1, 64, 4096))), tuple(subs))


@st.composite
def bss(draw, weights: int, words: int, tensors: list[lay.SubSection]):
    reuses = draw(st.lists(reuse_sections(words), min_size=1, max_size=3))
    reuses += [lay.ReuseSection(max(t.size, 1), subs=(t,)) for t in tensors]
    return lay.Bss(
        reuses=tuple(reuses),
        statics=tuple(draw(st.lists(static_sections(weights, words), max_size=2))),
        stack_size=draw(st.integers(1, 1 << 20)),
        stack_align=draw(st.sampled_from((1, 4096))),
    )


@st.composite
def subgraphs(draw, index: int, text: int, params: int, desc: int, bss_count: int, x3: bool):
    params_offset = 4 * draw(st.integers(0, params // 4))
    desc_offset = draw(st.integers(0, desc))
    most = min(index, 4 if x3 else 1)
    waits = draw(st.one_of(st.none(), st.lists(st.integers(0, max(index - 1, 0)), max_size=most).map(tuple)))
    return lay.Subgraph(
        text_offset=draw(st.integers(0, text - 1)),
        params_offset=params_offset,
        params_size=draw(st.integers(0, params - params_offset)),
        id=draw(U32),
        type=draw(U32),
        bss_index=draw(st.integers(0, bss_count - 1)),
        desc_offset=desc_offset,
        desc_size=draw(st.integers(0, desc - desc_offset)),
        printf_size=draw(U32),
        profiler_offset=draw(U32),
        private_data_size=draw(st.integers(1, 1 << 20)),
        warmup_len=draw(U32),
        precursors=waits,
        private_buffers=tuple(draw(st.lists(reuse_sections((params + desc) // 4), max_size=2))),
    )


@st.composite
def params(draw):
    roles = draw(ROLES)
    made = []
    for i, role in enumerate(roles):
        shape, value = draw(SHAPES), draw(VALUES)
        kind = {"kind": "scalar", "value": value} if role == "attr" else {"kind": "pointer", "shape": shape}
        index = 0 if role == "attr" else roles[:i].count(role)
        made.append(
            Param(name=f"p{i}", dtype=draw(st.sampled_from(("int8x32", "float16"))), role=role, index=index, **kind)
        )
    return tuple(made)


@st.composite
def kernels(draw):
    return KernelInfo(
        kernel=draw(NAMES),
        target=draw(st.sampled_from(TARGETS)),
        params=draw(params()),
        uses_printf=draw(st.booleans()),
        stack_size=draw(st.integers(1, 1 << 20)),
        extents=draw(EXTENTS),
    )


def _tensors(draw) -> list[lay.SubSection]:
    out = []
    for kind in lay.INDEXED_KINDS:
        for i in range(draw(st.integers(0, 2))):
            out.append(lay.SubSection(size=draw(st.integers(0, 4096)), type=int(kind), id=i))
    return draw(st.permutations(out))


@st.composite
def gm_configs(draw):
    return lay.GmConfig(draw(st.integers(0, 2)), draw(_words(2)), draw(RESERVED), (draw(BUFFERS), draw(BUFFERS)))


@st.composite
def shape_limits(draw):
    low = tuple(draw(st.lists(st.integers(0, 100), max_size=4)))
    return (lay.ShapeLimit(low), lay.ShapeLimit(tuple(d + draw(st.integers(0, 9)) for d in low)))


GM_CONFIGS = st.one_of(st.none(), gm_configs())
SHAPE_LIMITS = st.one_of(st.just(()), shape_limits())
KERNELS = st.one_of(st.none(), kernels())


@st.composite
def aipu_bins(draw) -> AipuBin:
    target = draw(st.sampled_from(TARGETS))
    text = draw(st.binary(min_size=1, max_size=64))
    words, desc_words = draw(st.integers(1, 16)), draw(st.integers(0, 8))
    weights = draw(st.binary(max_size=128))
    bss_count = draw(st.integers(1, 2))
    every = [draw(bss(len(weights), words + desc_words, _tensors(draw) if b == 0 else [])) for b in range(bss_count)]
    count = draw(st.integers(0, 3))
    graphs = [
        draw(subgraphs(i, len(text), 4 * words, 4 * desc_words, bss_count, target.startswith("X3")))
        for i in range(count)
    ]
    area = st.tuples(st.integers(0, 0), st.integers(0, 4 * words - 4))
    remap = draw(st.lists(st.tuples(area, area).map(lambda p: lay.Remap(*p[0], *p[1])), max_size=3))
    return AipuBin(
        compiler=lay.CompilerMessage(
            device_word(target), build_version=draw(U32), flag=draw(U32) & ~lay.DYNAMIC_SHAPE_FLAG
        ),
        features=lay.FeatureMaps(tuple(every), draw(U32), draw(U32)),
        subgraphs=tuple(graphs),
        text=text,
        params=draw(st.binary(min_size=4 * words, max_size=4 * words)),
        desc=draw(st.binary(min_size=4 * desc_words, max_size=4 * desc_words)),
        weights=weights,
        remap=tuple(remap),
        comment=draw(st.sampled_from(("", f"target:{target};", f"made by hand\ntarget:{target};"))),
        const_data=draw(st.binary(max_size=16)),
        data=draw(st.binary(max_size=16)),
        gm=draw(GM_CONFIGS),
        segmmu=tuple(draw(MMU)),
        global_params=draw(GLOBAL_PARAMS),
        shape_limits=draw(SHAPE_LIMITS),
        hash_tables=tuple(draw(HASH_TABLES)),
        graph_json=draw(st.sampled_from((b"", b'{"layers": []}'))),
        kernel=draw(KERNELS),
        other_notes=tuple(Note(name, b"\1" + payload) for name, payload in draw(OTHER_NOTES).items()),
    )
