"""The interface of a kernel as the last lines of `NAME.legal.txt`: a comment of JSON behind the module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import PARAMS_FORMAT
from compass_core.errors import CompassError, Span
from compass_core.reading import jsontext

if TYPE_CHECKING:
    from compassc.analysis.interface import Interface

_HEADING = "# interface of the kernel"


def interface_text(interface: Interface) -> str:
    """The lines that `read_interface` reads."""
    params = ",\n#  ".join(json.dumps(param) for param in interface.params)
    groups = f', "groups": {interface.groups}' if interface.groups > 1 else ""
    return f'{_HEADING}\n# {{"params": [\n#  {params}\n# ],\n# "extents": {json.dumps(interface.extents)}{groups}}}\n'


def read_interface(text: str, path: Path) -> Interface:
    """The interface behind the module of a text. CompassError when there is none, or it is no interface."""
    from compass_core.aipubin import KernelInfo
    from compassc.analysis.interface import Interface

    before, heading, after = f"\n{text}".rpartition(f"\n{_HEADING}\n")
    if not heading:
        raise CompassError(
            "this IR is not legalised: the interface of the kernel does not follow it",
            Span(str(path), 1),
            code="ir-text",
            help=f"`compassc legalize {path}` makes it of lowered IR",
        )
    first = before.count("\n") + 1
    bare = "\n".join(line.removeprefix("# ") for line in after.split("\n"))
    content: Any = jsontext.parse("\n" * first + bare, str(path), code="bad-params")
    try:
        checked = {"format": PARAMS_FORMAT, "kernel": "kernel", "target": "target", **content}
        KernelInfo.from_json(checked, path.name)
    except (CompassError, TypeError) as error:
        message = error.message if isinstance(error, CompassError) else "the interface of the kernel is no object"
        raise CompassError(message, Span(str(path), first), code="bad-params") from None
    return Interface(content["params"], content.get("extents"), content.get("groups", 1))
