"""Files of a build as tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from compass_core import aipubin, files, targets
from compass_core.aipubin.kernelinfo import KernelFields
from compass_core.elf import link
from compass_core.elf.hostcode import ENTRY_PREFIX, HostCodeError, parse_text_blob
from compass_core.errors import CompassError, Span
from compass_core.hostcc import host
from compass_core.reading import jsontext, yamltext
from compass_core.reading.limits import RECORD_BYTES
from compassc.cli.tables import Table
from compassc.driver.files import read_graph
from compassc.driver.interface import read_interface
from compassc.driver.stages import read_kernel
from compassc.toolchain.unit import find_kernels, read_line_map

PLUGIN_NOTE = "compassc_kernel"
"""The attribute of a plugin that holds the parameters of its kernel."""
PARAMETER_COLUMNS = ("name", "kind", "dtype", "scope", "role", "index", "shape", "value")


def describe_file(path: Path) -> list[Table]:
    """The tables for a file, chosen by its name, or for the folder of a build.

    CompassError when the file is none of ours or damaged.
    """
    if path.is_dir():
        return _folder(path)
    for suffix, describe in _BY_SUFFIX.items():
        if path.name.endswith(suffix):
            return describe(path)
    return _by_content(path)


def _by_content(path: Path) -> list[Table]:
    data = files.read(path)
    if data[:4] in _CONTROL_CHAIN:
        return _descriptors(path)
    if data.startswith(b"\x7fELF\x02"):
        return _object(path)
    if data.startswith(b"\x7fELF"):
        return _aipu_bin(path)
    raise _foreign(path)


_CONTROL_CHAIN = (b"\x18\0\0\0", b"\x81\0\0\0")
"""How a chain of AIFF control descriptors begins."""


def _descriptors(path: Path) -> list[Table]:
    """A chain of AIFF control descriptors: what its nodes set. Its registers say which generation it is for."""
    from compassc.dsl.aiff import Aiff, AiffError, report

    try:
        found = Aiff("X2_1204", str(path))
    except AiffError:
        try:
            found = Aiff("X3P_1304", str(path))
        except AiffError as error:
            raise CompassError(f"{path}: {error.message}", code=error.code) from error
    return [
        (f"node {k} ({config.generation.name})", report.COLUMNS, list(report.rows(config)))
        for k, config in enumerate(found.reg_cfgs)
    ]


def _foreign(path: Path) -> CompassError:
    return CompassError(
        f"'{path}' is neither a stage file nor an aipu.bin",
        code="unknown-file",
        help=f"files end in {', '.join(_BY_SUFFIX)}",
    )


def _folder(path: Path) -> list[Table]:
    """The build record, and the files there are."""
    if not (path / "build.yaml").is_file():
        raise CompassError(f"'{path}' is not the folder of a build: it has no build.yaml", code="unknown-file")
    files = sorted(file for file in path.iterdir() if file.is_file())
    return [*_record(path / "build.yaml"), ("files", ("file", "bytes"), [(f.name, f.stat().st_size) for f in files])]


def _aipu_bin(path: Path) -> list[Table]:

    try:
        content = aipubin.read(files.read(path))
    except aipubin.AipuBinError as error:
        raise CompassError(f"{path}: {error.message}", code=error.code, notes=error.notes, help=error.help) from error
    return [*aipubin.describe(content), *_entries(content.text)]


def _entries(text: bytes) -> list[Table]:
    """The entry records of `.text`; nothing for code of another toolchain."""
    try:
        blob = parse_text_blob(text)
    except HostCodeError:
        return []
    rows = [(hex(at), symbol, _words(asids)) for (symbol, at), asids in zip(blob.entries, blob.asids, strict=True)]
    return [
        (
            "entries (of each parameter word: the ASID of an address, d of descriptors, - a value)",
            ("entry", "symbol", "words"),
            rows,
        )
    ]


def _words(asids: str) -> str:
    """An ASID text as it is shown: of descriptors how many of their words are addresses."""
    params, _, words = asids.partition("+")
    return f"{params} and {words.count(',') + 1} words of descriptors" if words else params


def _module(path: Path) -> list[Table]:
    """IR text: its functions with their parameters and sizes."""
    from compassc.ir import parse_module, walk_stmts

    module = parse_module(files.read_text(path), str(path), read_graph)
    functions = [
        (f.name, "entry" if f.name == module.entry else "", f.ret_type, sum(1 for _ in walk_stmts(f.body)))
        for f in module.functions
    ]
    params = [(f.name, p.name, p.dtype) for f in module.functions for p in f.params]
    return [
        (f"IR for {module.target}", ("function", "", "returns", "statements"), functions),
        ("parameters", ("function", "name", "type"), params),
    ]


def _legalised(path: Path) -> list[Table]:
    """IR text, and the interface behind it."""
    interface = read_interface(files.read_text(path), path)
    return [*_module(path), ("interface", PARAMETER_COLUMNS, _parameter_rows(interface.params))]


def _c_text(path: Path) -> list[Table]:
    """Compass OpenCL C: its kernels, and how many lines lead back to Python."""

    text = files.read_text(path)
    line_map = read_line_map(path.with_name(path.name + ".map"))
    kernels = []
    for kernel in find_kernels(text):
        place = line_map.place(kernel.line)
        kernels.append((kernel.name, kernel.line, f"{place[0]}:{place[1]}" if place else "", ", ".join(kernel.params)))
    mapped = sum(1 for place in line_map.places if place)
    general = [("lines", text.count("\n")), ("lines that come from Python", mapped)]
    return [
        (path.name, ("what", "value"), general),
        ("kernels", ("kernel", "line", "comes from", "parameters"), kernels),
    ]


def _line_map(path: Path) -> list[Table]:

    places = enumerate(read_line_map(path).places, 1)
    rows = [(line, f"{place[0]}:{place[1]}" if place else "") for line, place in places]
    return [(path.name, ("line", "comes from"), rows)]


def _params(path: Path) -> list[Table]:
    params = read_kernel(path)
    general, *others = _parameter_tables(params)
    cores = targets.load(params["target"]).cores if params["target"] in targets.names() else 1
    if cores == 1:
        return [general, *others]
    title, columns, rows = general
    rows = [row for row in rows if row[0] != "groups"]
    return [(title, columns, [*rows, ("runs on", f"{params.get('groups', 1)} of {cores} cores")]), *others]


def _parameter_tables(params: KernelFields) -> list[Table]:
    general = [(key, _cell(value)) for key, value in params.items() if not isinstance(value, (list, dict))]
    return [
        ("kernel", ("what", "value"), general),
        ("parameters", PARAMETER_COLUMNS, _parameter_rows(params.get("params", []))),
    ]


def _parameter_rows(params: Sequence[Mapping[str, object]]) -> list[tuple[str, ...]]:
    return [tuple(_cell(param.get(column)) for column in PARAMETER_COLUMNS) for param in params]


def _cell(value: object) -> str:
    """A JSON value as a table cell: a shape as 4x1024, nothing for null."""
    if isinstance(value, list):
        return "x".join(map(str, value)) or "scalar"
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return "" if value is None else str(value)


def _record(path: Path) -> list[Table]:
    """build.yaml."""
    text = files.read_text(path, RECORD_BYTES)
    record = yamltext.parse(text, str(path), "bad-record", "the record of a build")
    try:
        stages = [(s["name"], f"{s['seconds'] * 1e3:.1f} ms", s["sha256"][:16], s["output"]) for s in record["stages"]]
        source = ("model", "layers") if "model" in record else ("kernel", "entry")
        general = [(key, _cell(record[key])) for key in ("target", *source)]
        general += [(f"version of {name}", version) for name, version in record["versions"].items()]
        tuned = [(one["for"], one["as"]) for one in record.get("tuned", ())]
        ends = _ends(record) if "model" in record else _parameters(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CompassError(
            f"not the record of a build: {error!r:.300}", Span(str(path), 1), code="bad-record"
        ) from None
    return [
        ("build", ("what", "value"), general),
        ends,
        *([("from tuning records", ("for", "as"), tuned)] if tuned else []),
        ("stages", ("stage", "time", "sha256", "output"), stages),
    ]


def _parameters(record: Any) -> Table:
    """Of a kernel."""
    return "parameters", PARAMETER_COLUMNS, _parameter_rows(record["parameters"])


def _ends(record: Any) -> Table:
    """The inputs and outputs of a model."""
    keys = ("name", "dtype", "shape", "scale", "zero")
    rows = [
        (role, *(_cell(tensor.get(key)) for key in keys))
        for role in ("input", "output")
        for tensor in record[f"{role}s"]
    ]
    return "tensors", ("role", *keys), rows


def _object(path: Path) -> list[Table]:
    """A host object: what it was compiled for, its sections and entry points."""

    data = files.read(path)
    try:
        listed, symbols = link.contents(path.name, data)
    except CompassError as error:
        raise CompassError(f"'{path}' is not an object of the cc stage: {error.message}", code="bad-object") from None
    sections = [(s.name, s.size) for s in listed if s.size and s.flags & 2]
    entries = [(s.name, s.size) for s in symbols if s.name.startswith(ENTRY_PREFIX)]
    stamp = host.read_stamp(data)
    general = [("triple", stamp.triple), ("CPU features", stamp.features)] if stamp else []
    return [
        (path.name, ("what", "value"), general),
        ("sections", ("section", "bytes"), sections),
        ("entry functions", ("symbol", "bytes"), entries),
    ]


def _log(path: Path) -> list[Table]:
    """The compile log: its head line by line."""
    head, _, output = files.read_text(path).partition("\n\n")
    rows = [tuple(line.partition(": ")[::2]) for line in head.splitlines()]
    return [(path.name, ("what", "value"), rows), ("output", ("line",), [(line,) for line in output.splitlines()])]


def _json_text(path: Path) -> list[Table]:
    content = jsontext.parse(files.read_text(path), str(path))
    rows = [(key, _cell(value)) for key, value in content.items()] if isinstance(content, dict) else []
    return [(path.name, ("what", "value"), rows)]


def _compass_ir(path: Path) -> list[Table]:
    """Compass IR text: `key=value` lines in blocks."""
    lines = [line for line in files.read_text(path).splitlines() if "=" in line]
    return [(path.name, ("key", "value"), [tuple(line.partition("=")[::2]) for line in lines])]


def _constants(path: Path) -> list[Table]:
    """The constants of Compass IR, which are bare bytes."""
    return [(path.name, ("what", "value"), [("constants", f"{path.stat().st_size} bytes")])]


def _plugin(path: Path) -> list[Table]:
    """A plugin of the gbuild stage: what it says of its kernel."""
    import ast

    from compassc.ir.text import parse_python

    try:
        tree = parse_python(files.read_text(path), str(path))
        assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        texts = [ast.literal_eval(a.value) for a in assigned if ast.unparse(a.targets[0]) == PLUGIN_NOTE]
        return _parameter_tables(json.loads(texts[0]))
    except (CompassError, ValueError, AttributeError, TypeError, IndexError, RecursionError, MemoryError):
        raise _foreign(path) from None


def _bin(path: Path) -> list[Table]:
    """An aipu.bin, or AIFF descriptors."""
    return _descriptors(path) if files.read(path)[:4] in _CONTROL_CHAIN else _aipu_bin(path)


_BY_SUFFIX: dict[str, Callable[[Path], list[Table]]] = {
    ".ir.txt": _module,
    ".lowered.txt": _module,
    ".legal.txt": _legalised,
    ".cl.map": _line_map,
    ".cl": _c_text,
    ".params.json": _params,
    ".cc.log": _log,
    ".o": _object,
    ".yaml": _record,
    "compass_ir.txt": _compass_ir,
    ".json": _json_text,
    "compass_ir.bin": _constants,
    ".py": _plugin,
    ".bin": _bin,
}
