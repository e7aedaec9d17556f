"""C forms of the operations whose text depends on more than their operands: memory, DMA, parts, narrowing shifts.

`FORMS` maps an operation to a function of the printer and the call. All other operations are spelt by the templates of
their declaration.
"""

from __future__ import annotations

from collections.abc import Callable

from compass_core.hostcc.promises import ONLY_READ, UNCLIPPED

from ..analysis.copies import viewer
from ..ir import exprs as E
from ..ops.assertions import ASSUMED
from .c_expr import ExprPrinter
from .c_types import c_type, codegen_error, string_text

Form = Callable[[ExprPrinter, E.Call], str]
FORMS: dict[str, Form] = {}

_AREAS = {
    "global": "kGlobal",
    "private": "kGlobal",
    "global.1": "kGlobal1",
    "global.2": "kGlobal2",
    "global.3": "kGlobal3",
    "lsram": "kLsram",
    "shared": "kShared",
}
_MEMSETS = {
    "global": ("MemsetDDR", 0),
    "private": ("MemsetDDR", 0),
    "lsram": ("MemsetSRAM", 4),
    "shared": ("MemsetSRAM", 8),
}
_PARTS = {"low": "l", "high": "h", "even": "e", "odd": "o"}


def form(*names: str) -> Callable[[Form], Form]:
    def register(fn: Form) -> Form:
        FORMS.update(dict.fromkeys(names, fn))
        return fn

    return register


# --------------------------------------------------------------------------------------------------------------- memory


def _mask_of(p: ExprPrinter, e: E.Call, lanes: int) -> str:
    return p.all_true(lanes) if e.mask is None else p.expr(e.mask)


def _byte_stride(p: ExprPrinter, stride: E.Expr, size: int) -> str:
    if type(stride) is E.IntImm:
        return str(stride.value * size)
    return p.expr(stride) if size == 1 else f"({p.expr(stride)} * {size})"


def is_one(e: E.Expr) -> bool:
    return type(e) is E.IntImm and e.value == 1


@form("vload")
def _vload(p: ExprPrinter, e: E.Call) -> str:
    pointer, stride = e.args
    address, mask = p.pointer_to(pointer, e.dtype), _mask_of(p, e, e.dtype.lanes)
    if is_one(stride):
        return f"__vload({address}, {mask})"
    return f"__vload_stride({address}, {_byte_stride(p, stride, e.dtype.bytes)}, {mask})"


@form("vstore")
def _vstore(p: ExprPrinter, e: E.Call) -> str:
    value, pointer, stride = e.args
    kind = value.dtype
    text, address, mask = p.expr(value), p.pointer_to(pointer, kind), _mask_of(p, e, kind.lanes)
    if is_one(stride):
        return f"__vstore({text}, {address}, {mask})"
    return f"__vstore_stride({text}, {address}, {_byte_stride(p, stride, kind.bytes)}, {mask})"


@form("__vload_gather")
def _gather(p: ExprPrinter, e: E.Call) -> str:
    tail = [p.expr(a) for a in (*e.args[1:], *(() if e.mask is None else (e.mask,)))]
    return f"__vload_gather({', '.join([p.pointer_to(e.args[0], e.dtype), *tail])})"


@form("__vstore_scatter")
def _scatter(p: ExprPrinter, e: E.Call) -> str:
    value, pointer = e.args[:2]
    tail = [p.expr(a) for a in (*e.args[2:], *(() if e.mask is None else (e.mask,)))]
    return f"__vstore_scatter({p.expr(value)},{', '.join([p.pointer_to(pointer, value.dtype), *tail])})"


# ------------------------------------------------------------------------------------------------------------------ DMA


def _area(scope: str) -> str:
    if scope not in _AREAS:
        raise codegen_error(f"DMA cannot reach memory scope {scope!r}")
    return _AREAS[scope]


def _dma(p: ExprPrinter, e: E.Call, family: str, macro: str, place: str = "") -> str:
    """A call of a generated DMA function; remembers the line that generates it. `place`: what stands for the destination."""
    dst, src = e.args[:2]
    to, source = dst.pointer_type.scope, src.pointer_type.scope
    inward = source.startswith("global") and to in ("lsram", "shared")
    name = f"{family}_{_area(source)}_to_{_area(to)}"
    if name not in p.used:
        p.used.add(name)
        p.dma[f"GEN_{macro}_{'EXT2INT' if inward else 'INT2EXT'}({_area(source)}, {_area(to)});"] = None
    return f"{name}({place or f'(int){p.expr(dst)}'}, (int){p.expr(src)}, {p.list(e.args[2:])})"


@form("dma_copy")
def _dma_copy(p: ExprPrinter, e: E.Call) -> str:
    pointer, place = viewer(e), ""
    if pointer is not None and pointer in p.readers:
        p.used.add("only_read")
        place = f"{ONLY_READ}({p.expr(pointer)})"
    return _dma(p, e, "DmaDirect", "DMA_DIRECT", place)


@form("async_dma_copy")
def _async_dma_copy(p: ExprPrinter, e: E.Call) -> str:
    return _dma(p, e, "AsyncDmaDirect", "ASYNC_DMA_DIRECT")


@form("dma_upsample")
def _dma_upsample(p: ExprPrinter, e: E.Call) -> str:
    return _dma(p, e, "DmaUpsample", "DMA_UPSAMPLE")


@form("dma_transpose2d")
def _dma_transpose(p: ExprPrinter, e: E.Call) -> str:
    size = e.attr("itemsize")
    return f"DMA_Transpose2D({p.list(e.args)}, {size // 2}, {size})"


@form("dma_memset")
def _dma_memset(p: ExprPrinter, e: E.Call) -> str:
    scope = e.args[0].pointer_type.scope
    if scope not in _MEMSETS:
        raise codegen_error(f"dma_memset cannot fill memory scope {scope!r}", "use global, lsram or shared memory")
    name, base = _MEMSETS[scope]
    return f"{name}({p.list(e.args)}, {e.attr('itemsize') // 2}, {base})"


# ----------------------------------------------------------------------------------------------------------- operations


@form("vconcat")
def _vconcat(p: ExprPrinter, e: E.Call) -> str:
    part = e.attr("part", "all")
    if part != "all" and len(e.args) != 2:
        raise codegen_error(f"vconcat {part!r} joins two registers, got {len(e.args)}")
    decimal, p.decimal_masks = p.decimal_masks, True
    parts = p.operands(e)
    p.decimal_masks = decimal
    if part == "all":
        return f"({c_type(e.dtype)})({','.join(parts)})"
    return f"__vext{_PARTS[part]}({', '.join(parts)})"


@form("vzip")
def _vzip(p: ExprPrinter, e: E.Call) -> str:
    part, operands = e.attr("part", "low"), ", ".join(p.operands(e))
    if part == "all":  # two masks that together are one register
        return f"({c_type(e.dtype)})(__vzipl({operands}),__vziph({operands}))"
    return f"__vzip{_PARTS[part]}({operands})"


@form("vtbl")
def _vtbl(p: ExprPrinter, e: E.Call) -> str:
    return f"{'__vperm' if len(e.args) == 3 else '__vtbl'}({p.list(e.args)})"


@form("printf")
def _printf(p: ExprPrinter, e: E.Call) -> str:
    p.used.add("printf")
    return f"printf({p.list(e.args)})"


@form("assert_", "assume")
def _assertion(p: ExprPrinter, e: E.Call) -> str:
    """Only checked runs define the macro so that it does something."""
    p.used.add("assertion")
    text = p.expr(e.args[1]) if e.op == "assert_" else string_text(ASSUMED)
    return f"__compass_assert({p.expr(e.args[0])}, {text})"


@form("assume_unclipped")
def _unclipped(p: ExprPrinter, e: E.Call) -> str:
    """A statement without code; who compiles the text for a host looks for it."""
    p.used.add("unclipped")
    return f"{UNCLIPPED}()"


@form("__set_lane")
def _set_lane(p: ExprPrinter, e: E.Call) -> str:
    """A new value for one lane of a register in an array."""
    register, lane, value = e.args
    return f"{p.expr(register)}[{p.expr(lane)}] = {p.expr(value)}"


@form("__self")
def _self(p: ExprPrinter, e: E.Call) -> str:
    """The variable being defined, as a register whose content does not matter."""
    return p.defining


@form("init_event_state")
def _init_event_state(p: ExprPrinter, e: E.Call) -> str:
    return "*addr_of_event_state() = 0"


# -------------------------------------------------------------------------------------------------------------- assembly


@form("asm")
def _asm(p: ExprPrinter, e: E.Call) -> str:
    """One statement of several lines; every section is there, also when empty."""
    outputs, inputs = e.attr("outputs", ()), e.attr("inputs", ())
    texts = [p.expr(a) for a in e.args]
    operands = [f'[{name}] "{how}"({text})' for (name, how), text in zip((*outputs, *inputs), texts, strict=True)]
    qualifier = f" {e.attr('qualifiers')} " if e.attr("qualifiers") else ""
    sections = (operands[: len(outputs)], operands[len(outputs) :], [f'"{c}"' for c in e.attr("clobbers", ())])
    lines = [f"__asm__{qualifier}(", "  " + string_text(e.attr("template"))]
    return "\n".join([*lines, *[f"  : {', '.join(section)}" for section in sections], ")"])
