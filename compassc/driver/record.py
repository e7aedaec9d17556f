"""The files that describe a build: build.yaml and the make dependencies."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import VERSION, files
from compass_core.errors import CompassError
from compass_core.hostcc.clang import find_clang

if TYPE_CHECKING:
    from compassc.driver.build import Build, StageRecord

_PARAMETER_KEYS = ("name", "kind", "dtype", "scope", "role", "index", "shape", "value")


def write_build_record(build: Build) -> Path:
    """Write `build.yaml`: versions, target, entry, parameters, and the hash and wall time of each stage."""
    request = build.request
    about = {
        "kernel": str(request.kernel) if request.kernel else None,
        "entry": build.name,
        "set": dict(request.values),
        "shapes": {name: list(shape) for name, shape in request.shapes.items()},
        "parameters": [_parameter(build, param) for param in (build.params["params"] if build.params else ())],
    }
    return write_record(build.folder, build.target.name, build.records, about, build.versions or _clang_version(build))


def write_record(
    folder: Path, target: str, records: Sequence[StageRecord], about: Mapping[str, object], versions: Mapping[str, str]
) -> Path:
    """Write the `build.yaml` of a folder: versions, target, what there is to say `about` the source, and the stages."""
    content = {
        "versions": {"compassc": VERSION, "python": platform.python_version(), **versions},
        "target": target,
        **about,
        "tuned": [{"for": what, "as": how} for record in records for what, how in record.tuned.items()],
        "stages": [
            {
                "name": record.name,
                "output": str(record.outputs[0]),
                "sha256": record.sha256,
                "seconds": round(record.seconds, 6),
            }
            for record in records
        ],
    }
    return files.write(folder / "build.yaml", "".join(f"{line}\n" for line in _yaml(content, "")))


def _parameter(build: Build, param: Mapping[str, object]) -> dict[str, object]:
    """A parameter with the shape or value that the build found or was given."""
    shown = {key: param[key] for key in _PARAMETER_KEYS if key in param}
    if param["name"] in build.shapes:
        shown["shape"] = list(build.shapes[str(param["name"])])
    if param["name"] in build.request.values:
        shown["value"] = build.request.values[str(param["name"])]
    return shown


def _clang_version(build: Build) -> dict[str, str]:
    if not any(record.name == "cc" for record in build.records):
        return {}

    return {"clang": ".".join(map(str, find_clang(build.request.clang).version))}


def _yaml(value: object, indent: str) -> Iterable[str]:
    """`value` as lines of block-style YAML; scalars and lists of scalars in their JSON form, which is YAML too."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _labelled(f"{indent}{key}:", item, indent + "  ")
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            first, *rest = _yaml(item, indent + "  ")
            yield f"{indent}- {first.strip()}"
            yield from rest
    else:
        yield indent + json.dumps(value, ensure_ascii=False)


def _labelled(label: str, value: object, indent: str) -> Iterable[str]:
    lines = list(_yaml(value, indent))
    nested = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value))
    if nested and value:
        yield label
        yield from lines
    else:
        yield f"{label} {lines[0].strip()}"


def write_depfile(path: Path, target: Path, kernel: Path, dependencies: list[Path]) -> Path:
    """Write make rules: `target` depends on `kernel` and on `dependencies`, which may vanish without breaking make.

    `target` and `kernel` are written as the user spelled them, for that is how the makefile knows them.
    """
    others = [_as_in_makefile(dependency) for dependency in dependencies if dependency.absolute() != kernel.absolute()]
    names = list(dict.fromkeys(_make_name(name) for name in (kernel, *others)))
    rule = f"{_make_name(target)}:" + "".join(f" \\\n  {name}" for name in names)
    # An empty rule per further dependency: make rebuilds, instead of stopping, when a module was removed or renamed.
    return files.write(path, rule + "\n" + "".join(f"\n{name}:\n" for name in names[1:]))


def _as_in_makefile(path: Path) -> Path:
    """Relative to the current folder when below it, as a makefile there would name it."""
    absolute = path.absolute()
    return absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute


def _make_name(path: Path) -> str:
    """A path as make reads it in a rule. CompassError for one that it would take for more than a path."""
    if "\n" in str(path):
        raise CompassError(f"rules for make cannot name {str(path)!r}: it has a line break", code="bad-name")
    return str(path).replace("$", "$$").replace("#", "\\#").replace(" ", "\\ ")
