"""Pragmas of loops: what each means here. Those that say how to do what is done anyway change nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compass_core import vendor
from compassc.ir import stmts as S
from compassc.ir.exprs import IntImm
from compassc.ir.stmts import Body, Stmt
from compassc.ir.tensor_exprs import ProducerLoad
from compassc.te.tensor import ComputeOp, Operation

STEPS = ("unroll", "vectorize")
"""Pragmas that are steps of their own."""
DONE_ANYWAY = (
    "unroll_explicit",
    "loop_partition_hint",
    "compass_dma_copy",
    "parallel_launch_point",
    "parallel_stride_pattern",
    "parallel_barrier_when_finish",
)
"""Unrolled loops are written out, loops parted at their edges and copies made transfers where they can be; parallel
loops are shared out evenly, and waited for."""
IMPORTS = ("import_c", "import_llvm")
"""Their value is the text of functions, or the path of a file with it."""
KNOWN = (*STEPS, "auto_unroll_max_step", "debug_skip_region", *IMPORTS, *DONE_ANYWAY)


def why_wrong(kind: str, value: object, op: Operation) -> str:
    """Why a pragma cannot be at a loop of an operation; an empty text where it can."""
    if kind in IMPORTS and not (isinstance(value, str) and value.strip()):
        return f"'{kind}' takes the text of functions, or the path of a file, got {value!r}"
    if kind not in KNOWN and not vendor.names_in_use:  # programs for other machines say more, which changes nothing
        return f"there is no '{kind}'; known are {', '.join(KNOWN)}"
    if kind == "auto_unroll_max_step" and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        return f"'{kind}' takes the largest number of statements to write out, got {value!r}"
    if value is not None and not isinstance(value, (bool, int, float, str)):
        return f"the value of '{kind}' is a number or a word, got {type(value).__name__}"
    copies = isinstance(op, ComputeOp) and len(op.body) == 1 and isinstance(op.body[0], ProducerLoad)
    if kind == "compass_dma_copy" and not copies:
        return f"'{kind}' is for a copy, and '{op.name}' computes something"
    return ""


def applied(pragmas: Mapping[str, object], statements: Sequence[Stmt]) -> list[Stmt]:
    """The statements of a loop (with it) as its pragmas have them."""
    if "debug_skip_region" in pragmas:
        return []
    most = pragmas.get("auto_unroll_max_step")
    if not isinstance(most, int):
        return list(statements)
    return [_unrolled(s, most)[0] for s in statements]


def _unrolled(s: Stmt, most: int) -> tuple[Stmt, int]:
    """The statement with small loops unrolled, and how many statements it is when they are written out."""
    counts: list[int] = []

    def inner(body: Body) -> Body:
        made = [_unrolled(x, most) for x in body]
        counts.extend(n for _, n in made)
        return tuple(x for x, _ in made)

    new = s.map(lambda e: e, inner)
    count = sum(counts) or 1
    if not isinstance(new, S.For):
        return new, count
    turns = new.stop.value if isinstance(new.stop, IntImm) else most + 1
    if new.kind == "serial" and isinstance(new.min, IntImm) and count * turns <= most:
        new = new.replace(kind="unrolled")
    return new, count * turns
