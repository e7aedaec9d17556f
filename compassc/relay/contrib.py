"""What other compilers take of programs: tables of patterns, and `target.NAME` of operators (`relay.op.register_op_attr`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TypeVar, overload

from compassc.relay.dataflow_pattern import DFPattern
from compassc.relay.expr import Expr

Check = Callable[[Expr], bool]
Entry = tuple[str, DFPattern] | tuple[str, DFPattern, Check]
"""A composite function: its name (`mine.conv2d_relu`), the pattern of its body, and what must hold of the match's root."""
Table = Sequence[Entry]
Maker = TypeVar("Maker", bound=Callable[[], Table])
OWN = {"compass": "compassc.relay.backend.layers"}
"""The compilers of this package: the module that says what they take."""
_TABLES: dict[str, Table] = {}


@overload
def register_pattern_table(compiler: str) -> Callable[[Maker], Maker]: ...
@overload
def register_pattern_table(compiler: str, table: Maker) -> Maker: ...
def register_pattern_table(compiler: str, table: Maker | None = None) -> Maker | Callable[[Maker], Maker]:
    """Register the patterns of a compiler, which a function gives that is called at once; without `table` a decorator."""

    def keep(maker: Maker) -> Maker:
        _TABLES[compiler] = maker()
        return maker

    return keep if table is None else keep(table)


def get_pattern_table(compiler: str) -> Table | None:
    """The patterns of a compiler; None where none are registered."""
    load(compiler)
    return _TABLES.get(compiler)


def load(compiler: str) -> None:
    """Have declared what a compiler of this package takes."""
    if compiler in OWN:
        import_module(OWN[compiler])
