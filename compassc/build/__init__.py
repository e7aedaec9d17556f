"""Kernels made by Python: a typed builder of kernel IR.

A generated kernel is a program like a user's. So this package has no typing rules, operators or calls of its own: a
`Recorder` takes the parser's place (`language.dispatch.Parser`), and inside `with kernel.active():` Python's operators and
`S` do by the parser's functions what they do in a kernel file. What is made is IR; no text is parsed, but macros.

    b = Builder()
    with b.active():
        tile = b.alloc(64, "int32", "tile")
        S.dma_copy(tile, x, n)
        with b.for_range(0, n, 8) as i:
            v = S.min(S.vload(tile + i, lanes=8), 100)
            S.vstore(v * 2, tile + i)

| what | where |
|---|---|
| values: an IR expression with its type, the range of its integers, and its text | `values`, `ranges` (by the rules of `compass_core.operators`) |
| expressions: operators, calls of `S`, formulas | `recorder` |
| statements: variables, memory, events, loops, branches, macros; what nothing uses is dropped | `builder` |

**Expressions are not variables.** As in a kernel, an expression is computed where a statement uses it; what is used twice,
or read before a store changes it, gets a name (`define`).

**IR is made late.** Most kernels were compiled before, and of these only the text counts, which is their key. So an
expression knows its type, its variables and its text; its IR and its range are found when somebody asks. What operations
give is found once for operands of the same types (`recorder`), by making it; so mistakes show at once.

**Text.** Each value knows how a kernel file would say it, and each statement is a line. The lines of a finished kernel are
such a file: `structural_equal(parse(text), ir)` holds, which tests demand of every layer type. People read it, PySim runs
it, and it is the key of compiled kernels. A `formula` is a function that makes an expression: the text has the call.

**Places.** A statement's place is the line of Python outside of this package that asked for it; so an error or a profile
leads from a line of C to the code that made it. Statements of a macro are at the macro's own lines.

**Frames.** A frame makes loops around what somebody else makes. Steps that must know nothing of loops are made `apart`,
and the frame splices their lines where they belong, or some of them outside of an inner loop (`invariant`). Other frames are
context managers around what they loop over, and generators where it is made several times. There are three:
`layers.loops` of element-wise steps, `layers.axes` of reductions along axes, `layers.sliding` of windows over images.

**Macros** are called as in a kernel file (`multiply_wide(high, low, scale)`), and are the form for a part that is one
algorithm: real code, whose places are its own lines. The text has the call; `Builder.called` says of which module.

Kernels of layers (`compassc.layers`) are made by `layers.layer_kernel.LayerKernel`, a builder that has numbers, tables and
tensors of layers as parameters: `k.number`, `k.table`, `k.tensor`; `k.let` and `k.held` name a value, `k.changing` and
`k.assign` are for one that changes; `k.when`, `k.for_range`, `k.while_loop`, `k.shared` (items of all TECs) and `k.scratch`
(LSRAM) are the rest. Statements that are the same in many kernels, whatever their sizes, are a `k.part`, which is made once. A step of an element-wise layer makes values of values, and is all that its author writes. Each kernel
ends in a `layers.layer_kernel.Kernel`: text, arguments, and the function. `make replay` says what a change did to results
and cycles.
"""

from __future__ import annotations

from compassc.build.builder import Builder, Line, invariant
from compassc.build.recorder import Recorder, both, call_text, either, formula
from compassc.build.values import (
    Address,
    Expression,
    Pointer,
    Value,
    pointer,
    pointer_of,
    recorded,
    variable,
    variable_within,
    whole_range,
)

__all__ = [
    "Address",
    "Builder",
    "Expression",
    "Line",
    "Pointer",
    "Recorder",
    "Value",
    "both",
    "call_text",
    "either",
    "formula",
    "invariant",
    "pointer",
    "pointer_of",
    "recorded",
    "variable",
    "variable_within",
    "whole_range",
]
