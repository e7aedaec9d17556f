"""Put what patterns of a table match into composite functions.

Before: a typed module. `table`: entries (name, pattern) or (name, pattern, check), of which the first ones go first; `check`
is asked with the root of a match.
After: matches are calls of function literals with the attributes `Composite` (the name) and `PartitionedFromPattern`.
"""

from __future__ import annotations

from compassc.ir.errors import ExpressionError
from compassc.relay.contrib import Table
from compassc.relay.dataflow_pattern.rewriting import partition
from compassc.relay.expr import Function
from compassc.relay.module import IRModule
from compassc.relay.passes._functions import on_functions

NAME = "MergeComposite"
LEVEL = 0
REQUIRED = ("InferType",)


def run(module: IRModule, table: Table = ()) -> IRModule:
    for name, pattern, *checks in table:
        if not isinstance(name, str) or len(checks) > 1:
            raise ExpressionError(f"{name!r} names no entry of a table", "entries are (name, pattern[, check])")
        check = checks[0] if checks else (lambda e: True)

        def merged(f: Function, m: IRModule) -> Function:
            made = partition(pattern, f, {"Composite": name}, check)  # noqa: B023 - called before the next entry
            assert isinstance(made, Function), "a function stays one"
            return made

        module = on_functions(module, merged)
    return module
