"""The readers that are tried, besides that of the container: objects with their debug information, module files, graphs,
and the stage files of a build."""

from __future__ import annotations

import hashlib
import json
import random
import tarfile
import tempfile
from collections.abc import Container
from functools import cache
from pathlib import Path

from compass_core.aipubin import KernelInfo, Param
from compass_core.elf import elf64, link
from compass_core.errors import CompassError
from compass_core.hostcc import host, origins, sources
from tests.hostile.container import CONTAINER
from tests.hostile.harness import Ranges, Target, bytes_mutant, refused, scratch, text_mutant
from tests.hostile.messages import MESSAGES
from tests.hostile.models import MODELS
from tests.hostile.readers import READERS

KERNEL = """
from compassc.dsl import script as S


@S.prim_func
def vadd(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    local = S.alloc((16,), "int32", "lsram")
    for i in S.tec_range(0, n):
        if a[i] > 3:
            b[i] = a[i] * 2 + S.cast(local[0], "int32")
        else:
            b[i] = S.max(a[i], n)
"""


@cache
def stage_files() -> dict[str, bytes]:
    """The files of a build of a small kernel, by their endings."""
    from compassc.driver import Request, run_build

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "vadd.py")
        source.write_text(KERNEL, encoding="utf-8")
        run_build(Request("X2_1204", source, output=Path(folder, "aipu.bin"), values={"n": 8}))
        paths = [Path(folder, "aipu.bin"), *Path(folder, "vadd.compass").iterdir()]
        files = {path.name: path.read_bytes() for path in paths if path.is_file()}
    return {name.removeprefix("vadd"): data for name, data in files.items()}


# ------------------------------------------------------------------------------------------------------- objects, DWARF


def _object_parts(data: bytes) -> Ranges:
    """The parts of an object that readers look at: its section table and what it says of lines, symbols and sources."""
    try:
        header = elf64.EHDR.unpack_from(data)
    except Exception:  # noqa: BLE001 - a mutant that is too short
        return []
    table, count = header[6], header[12]
    parts = [(table, 64 * count)] if table + 64 * count <= len(data) else []
    for name in (
        ".debug_line",
        ".debug_line_str",
        ".rela.debug_line",
        ".symtab",
        ".strtab",
        sources.SECTION,
        origins.SECTION,
    ):
        content = elf64.section(data, name)
        at = data.find(content) if content else -1
        parts += [(at, len(content or b""))] if at >= 0 else []
    return [part for part in parts if part[1]]


def _objects() -> list[bytes]:
    data = stage_files()[".o"]
    return [
        data,
        link.link(
            [
                link.Part("a", data, {"__compass_entry_vadd": "__compass_entry_a"}),
                link.Part("b", data, {"__compass_entry_vadd": "__compass_entry_b"}),
            ]
        ),
    ]


def _object(data: bytes, known: Container[str], thorough: bool) -> str:
    from compass_sim.lines import locate

    said = []
    for read in (
        lambda: locate(data, 20),
        lambda: link.link([link.Part("x", data, {"__compass_entry_vadd": "other"})]),
        lambda: sources.read_sources(data),
        lambda: (host.read_stamp(data), origins.read(data)),
    ):
        try:
            said.append(f"read {type(read()).__name__}")
        except CompassError as error:
            said.append(refused(error))
    return ("read: " if any(one.startswith("read") for one in said[:3]) else "refused: ") + "; ".join(said)


# -------------------------------------------------------------------------------------------------------------- modules


def _modules() -> list[bytes]:
    from compass_runtime.compass_module import CompassModule
    from compass_runtime.module import HostModule, pack

    host_module, shared = HostModule(), CompassModule(b"aipu", "f", False, "X2_1204")
    middle = [HostModule(), HostModule()]
    for one in middle:
        one.import_module(shared)
        host_module.import_module(one)
    return [pack(host_module), pack(CompassModule(b"", "", True))]


def _module_parts(data: bytes) -> Ranges:
    return [(at, 512) for at in range(0, len(data), 512)]


def _with_right_hashes(data: bytes) -> bytes:
    """The same archive as somebody writes it who knows the format: damage is not found by the hashes."""
    from compass_runtime import module

    try:
        members = module._members(data, "m.so")
        modules = json.loads(members["module.json"])["modules"]
        members["module.json"] = module._description([(m["type_key"], m["imports"]) for m in modules])
    except (ValueError, KeyError, TypeError, CompassError, tarfile.TarError, RecursionError):
        return data
    size = hashlib.sha256().digest_size
    hashed = {n: hashlib.sha256(c[size:]).digest() + c[size:] for n, c in members.items() if n != "module.json" and c}
    return module._archive(members | hashed)


def _module(data: bytes, known: Container[str], thorough: bool) -> str:
    from compass_runtime.module import pack, unpack

    try:
        unpack(data, "m.so")
    except CompassError as error:
        first = refused(error)
    else:
        first = "read"
    try:
        module = unpack(_with_right_hashes(data), "m.so")
    except CompassError as error:
        return f"{first}; {refused(error)}"
    again = pack(module)
    assert pack(unpack(again, "again")) == again, "written and read again, the file differs"
    return f"read: {len(module.tree())} {[len(one.imported_modules) for one in module.tree()][:4]}"


# --------------------------------------------------------------------------------------------------------------- graphs


def _graphs() -> list[bytes]:
    from compassc.gbuilder.writer import GraphWriter

    with tempfile.TemporaryDirectory() as folder:
        graph = GraphWriter()
        x = graph.input("x", (2, 8), "float32")
        y = graph.layer("Activation", [x], (2, 8), "float32", method="RELU")
        z = graph.layer("Eltwise", [y, x], (2, 8), "float32", method="ADD")
        path = graph.write(Path(folder), [z, graph.layer("Reshape", [z], (4, 4), "float32")])
        text = path.read_bytes()
    constant = b"""model_name=c
input_tensors=[a]

layer_id=0
layer_name=a
layer_type=Input
layer_bottom=[]
layer_bottom_shape=[]
layer_bottom_type=[]
layer_top=[a]
layer_top_shape=[[1,4]]
layer_top_type=[int8]
layer_top_scale=[0.5]
layer_top_zp=[3]

layer_id=1
layer_name=b
layer_type=FullyConnected
layer_bottom=[a]
layer_bottom_shape=[[1,4]]
layer_bottom_type=[int8]
layer_top=[b]
layer_top_shape=[[1,2]]
layer_top_type=[int8]
weights_type=int8
weights_offset=0
weights_size=8
weights_shape=[2,4]
biases_type=[int32,int32]
biases_offset=[8,12]
biases_size=[4,4]
biases_shape=[[1],[1]]
"""
    return [text, constant]


def _graph(data: bytes, known: Container[str], thorough: bool) -> str:
    from compassc.gbuilder.memory import Step, plan
    from compassc.gbuilder.nodes import nodes_of
    from compassc.gbuilder.order import waits
    from compassc.graph import read
    from compassc.layers.views import make_views

    try:
        graph = nodes_of(read(data.decode("utf-8", "replace"), bytes(64), "g.txt"))
        make_views(graph)
        steps = [Step(tuple(node.inputs), tuple(node.outputs)) for node in graph.nodes]
        planned = plan(graph, steps)
        waits(steps, planned, "X3P_1304")
    except CompassError as error:
        return refused(error)
    return f"read: {len(graph.nodes)} {len(graph.inputs)} {len(graph.outputs)} {len(planned.sections)}"


# --------------------------------------------------------------------------------------------------------- stage files


_SUFFIXES = (
    ".ir.txt",
    ".lowered.txt",
    ".legal.txt",
    ".params.json",
    ".cl.map",
    ".yaml",
    ".json",
    ".py",
    "compass_ir.txt",
)


def _stage_texts() -> list[bytes]:
    """The stage files that `compassc inspect` and later stages read; the first line tells which kind each one is."""
    files = stage_files()
    extents = KernelInfo("k", "X2_1204", (Param("n", "scalar", "int32", "attr", value=3),), extents={"entry": "k"})
    texts = {suffix: next((data for name, data in files.items() if name.endswith(suffix)), b"") for suffix in _SUFFIXES}
    texts[".json"] = (
        repr(extents.to_json()).replace("'", '"').replace("None", "null").replace("False", "false").encode()
    )
    return [suffix.encode() + b"\n" + text for suffix, text in texts.items() if text]


def _stage_mutant(pool: list[bytes], source: random.Random) -> bytes:
    suffix = source.choice(_SUFFIXES).encode()
    same = [data.partition(b"\n")[2] for data in pool if data.partition(b"\n")[0] == suffix]
    return suffix + b"\n" + (text_mutant(same, source) if same else b"")


def _stage_file(data: bytes, known: Container[str], thorough: bool) -> str:
    from compassc.cli.inspecting import describe_file

    suffix, _, text = data.partition(b"\n")
    path = scratch("stages") / f"x{suffix.decode()}"
    path.write_bytes(text)
    try:
        tables = describe_file(path)
        if suffix.endswith(b".txt") and suffix.startswith(b"."):
            _through_text(text.decode())
    except CompassError as error:
        return f"{refused(error)} {suffix.decode()}"
    return f"read: {suffix.decode()} {[len(rows) for _, _, rows in tables]}"


def _through_text(text: str) -> None:
    """A module that was read and is well formed is printed and read back."""
    from compassc.ir import parse_module, print_module
    from compassc.ir.verify import VerifyError, verify

    module = parse_module(text, "x.ir.txt")
    try:
        verify(module)
    except VerifyError as error:
        raise CompassError(f"not well formed: {str(error).partition(':')[0]}", code="ir-text") from None
    parse_module(print_module(module), "again")


# --------------------------------------------------------------------------------------------------------------- arrays


def _arrays() -> list[bytes]:
    import io

    import numpy as np

    from compass_core.reading import arrays

    out = []
    for array in (np.arange(12, dtype="int32").reshape(3, 4), np.ones((2, 2), "float16", order="F"), np.array(True)):
        file = io.BytesIO()
        arrays.write(file, array)
        out.append(file.getvalue())
    for compressed in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        compressed(file, a=np.arange(5), b=np.zeros((0, 3), "uint8"))
        out.append(file.getvalue())
    return out


def _array(data: bytes, known: Container[str], thorough: bool) -> str:
    from compass_core.reading import arrays

    try:
        found = arrays.from_bytes(data, "x.npy", "a")
    except CompassError as error:
        return refused(error)
    assert found.nbytes <= 1 << 20, "an array of a few bytes of file has a mebibyte"
    return f"read: {found.dtype} {found.ndim} {found.tobytes()[:0]!r}"


TARGETS = {
    target.name: target
    for target in (
        CONTAINER,
        Target("debug", _objects, _object, lambda pool, source: bytes_mutant(pool, source, _object_parts)),
        Target("modules", _modules, _module, lambda pool, source: bytes_mutant(pool, source, _module_parts)),
        Target(
            "npy",
            _arrays,
            _array,
            lambda pool, source: bytes_mutant(pool, source, lambda data: [(0, min(128, len(data)))]),
        ),
        Target("graphs", _graphs, _graph, text_mutant),
        Target("stages", _stage_texts, _stage_file, _stage_mutant),
        *MODELS,
        *READERS,
        MESSAGES,
    )
}
"""All targets in Python by name."""
