"""Programs from text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compassc.relay.module import IRModule
from compassc.relay.passes import infer_type
from compassc.relay.text.program import parse_expr, parse_module

__all__ = ["fromtext", "parse", "parse_expr"]


def parse(
    source: str,
    source_name: str = "from_string",
    init_module: IRModule | None = None,
    init_meta_table: Mapping[str, Sequence[object]] | None = None,
) -> IRModule:
    """The module of a text, with the types of its expressions. `init_module` is extended, and its functions and data types are known in the text;
    `init_meta_table`: objects by key, which are counted after those of the text's own metadata. DiagnosticError with the place
    of what is wrong."""
    return infer_type.run(parse_module(source, source_name, init_module, init_meta_table))


def fromtext(source: str, source_name: str = "from_string") -> IRModule:
    """The module of a text, with types."""
    return parse(source, source_name)
