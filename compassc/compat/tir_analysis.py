"""What the framework's analyses say of functions and their parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod

from compass_core.errors import CompassError
from compassc.analysis.arith import Arith
from compassc.analysis.conditions import conjuncts
from compassc.analysis.structure import is_pure
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Expr, IntImm, Var
from compassc.ir.stmts import Body, IRModule, PrimFunc, Stmt
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.tir.blocks import declared
from compassc.tir.regions import regions

from .autotvm.flops import operations


class AnalysisError(CompassError):
    """What an analysis is asked for is not known, or what it forbids is there."""


def _statements(node: object) -> Body:
    """The statements of a module, function, body or statement. AnalysisError for anything else."""
    if isinstance(node, IRModule):
        return tuple(s for f in node.functions for s in f.body)
    if isinstance(node, PrimFunc):
        return node.body
    if isinstance(node, Stmt):
        return (node,)
    if isinstance(node, tuple):
        return node
    raise AnalysisError(f"a {type(node).__name__} has no statements", code="compat-name")


def undefined_vars(node: object, defs: Sequence[Var] | None = None) -> list[Var]:
    """The variables that an expression, statement, body or function uses and does not define, in the order of their first use;
    without those of `defs`. The data of buffers are variables, too; a declaration defines the variables of a buffer's shape."""
    known = set(defs or ())
    found: dict[Var, None] = {}

    def used(e: Expr) -> None:
        for x in walk_exprs(e):
            if isinstance(x, Var) and x not in known:
                found.setdefault(x)

    def body(statements: Iterable[Stmt]) -> None:
        own = set()
        for s in statements:
            if isinstance(s, S.DeclBuffer):
                new = {x for e in s.buffer.shape for x in walk_exprs(e) if isinstance(x, Var)} - set(found)
            else:
                new = set(S.defined(s)) - known
            if isinstance(s, (S.Block, S.DeclBuffer, S.Alloc, S.AllocConst)):
                known.update(new)
            for e in s.exprs():
                used(e)
            known.update(new)
            for inner in s.bodies():
                body(inner)
            if isinstance(s, (S.For, S.Block)):
                known.difference_update(new)
            else:
                own |= new
        known.difference_update(own)

    if isinstance(node, PrimFunc):
        known.update(node.params)
        body(node.body)
    elif isinstance(node, Expr):
        used(node)
    else:
        body(_statements(node))
    return list(found)


def verify_ssa(func: PrimFunc) -> bool:
    """Whether each variable of a function is defined once."""
    seen = [*func.params, *(v for s in walk_stmts(func.body) for v in S.defined(s))]
    return len(seen) == len(set(seen)) and not any(isinstance(s, S.Assign) for s in walk_stmts(func.body))


def is_pure_function(func: PrimFunc, assert_on_error: bool = False) -> bool:
    """Whether a function writes to memory of its own alone, and calls nothing that may do more. `assert_on_error`: AnalysisError
    instead of False."""
    own = {s.buffer.data for s in walk_stmts(func.body) if isinstance(s, (S.Alloc, S.AllocConst))}
    for s in walk_stmts(func.body):
        foreign = isinstance(s, S.BufferStore) and s.buffer.data not in own
        if foreign or not all(map(is_pure, s.exprs())):
            if assert_on_error:
                raise AnalysisError(
                    f"'{func.name}' is not pure: {type(s).__name__} has an effect outside of it", code="compat-name"
                )
            return False
    return True


# -------------------------------------------------------------------------------------------------------------- memory


def _bytes(buffer: E.Buffer) -> int:
    """The size of a buffer. AnalysisError where it is no number."""
    sizes = [e.value for e in buffer.shape if isinstance(e, IntImm)]
    if len(sizes) < len(buffer.shape):
        raise AnalysisError(
            f"the size of '{buffer.name}' is not known", code="compat-name", help="give it a constant shape"
        )
    return prod(sizes) * buffer.dtype.total_bytes


def _peak(body: Iterable[Stmt], size: Callable[[E.Buffer], int]) -> int:
    """The most memory that lives at one time: what a body allocates lives up to its end."""
    live = most = 0
    for s in body:
        live += size(s.buffer) if isinstance(s, S.Alloc) else 0
        most = max(most, live, live + max((_peak(b, size) for b in s.bodies()), default=0))
    return most


def _aligned(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment


def calculate_workspace_bytes(func: PrimFunc, workspace_byte_alignment: int) -> int:
    """The bytes of memory that a function has at one time at most, each buffer from a multiple of so many bytes on."""
    return _peak(func.body, lambda b: _aligned(_bytes(b), workspace_byte_alignment))


def calculate_constant_bytes(func: PrimFunc, constant_byte_alignment: int) -> int:
    """The bytes of a function's constants, each from a multiple of so many bytes on."""
    constants = [s for s in walk_stmts(func.body) if isinstance(s, S.AllocConst)]
    return sum(_aligned(len(s.data), constant_byte_alignment) for s in constants)


def calculate_allocated_bytes(func_or_mod: PrimFunc | IRModule) -> dict[str, int] | dict[str, dict[str, int]]:
    """Per scope of memory the bytes that a function has at one time at most; of a module that of each function by its name."""
    if isinstance(func_or_mod, IRModule):
        return {f.name: _by_scope(f) for f in func_or_mod.functions}
    return _by_scope(func_or_mod)


def _by_scope(func: PrimFunc) -> dict[str, int]:
    def within(scope: str) -> Callable[[E.Buffer], int]:
        return lambda buffer: _bytes(buffer) if _scope(buffer) == scope else 0

    scopes = dict.fromkeys(_scope(s.buffer) for s in walk_stmts(func.body) if isinstance(s, S.Alloc))
    return {scope: _peak(func.body, within(scope)) for scope in scopes}


def _scope(buffer: E.Buffer) -> str:
    return buffer.data.pointer_type.scope


# ------------------------------------------------------------------------------------------------------------ accesses


def _accesses(
    body: Iterable[Stmt], around: tuple[Stmt, ...] = ()
) -> Iterator[tuple[E.Buffer, tuple[Expr, ...], tuple[Stmt, ...]]]:
    """The accesses of statements: buffer, indices, and the statements around, outermost first."""
    for s in body:
        if isinstance(s, S.BufferStore):
            yield s.buffer, s.indices, (*around, s)
        roots = (*s.iter_values, s.predicate) if isinstance(s, S.Block) else s.exprs()
        for root in roots:
            for e in walk_exprs(root):
                if isinstance(e, E.BufferLoad):
                    yield e.buffer, e.indices, (*around, s)
        for inner in s.bodies():
            yield from _accesses(inner, (*around, s))


def detect_buffer_access_lca(func: PrimFunc) -> dict[E.Buffer, Stmt | None]:
    """The innermost loop or block around all accesses of each buffer; None where that is the function."""
    found: dict[Var, tuple[E.Buffer, list[Stmt]]] = {}
    for buffer, _, around in _accesses(func.body):
        chain: list[Stmt] = [s for s in around if isinstance(s, (S.For, S.Block))]
        known = found.get(buffer.data)
        common = chain if known is None else [a for a, b in zip(known[1], chain) if a is b]
        found[buffer.data] = known[0] if known else buffer, common
    declarations = declared(func.body)
    return {declarations.get(data, buffer): chain[-1] if chain else None for data, (buffer, chain) in found.items()}


def get_block_read_write_region(block: S.Block, buffer_var_map: Mapping[Var, E.Buffer]) -> list[list[Expr]]:
    """What the statements of a block read and write, as far as buffers of the map are concerned: two lists of regions."""
    facts = Arith()
    for var, start, extent in zip(block.vars, block.starts, block.extents):
        if isinstance(start, IntImm) and isinstance(extent, IntImm):
            facts.bind(var, start.value, start.value + extent.value - 1)
    return [list(side) for side in regions(block, buffer_var_map, facts)]


GRIDS = ("cuda", "rocm", "opencl", "metal", "vulkan", "webgpu")


def verify_memory(func: PrimFunc) -> bool:
    """Whether a function for threads (attribute `target`) accesses global memory inside of loops over threads only; True for
    functions for other machines."""
    target = str(func.attr("target", ""))
    if target.split(" ")[0] not in GRIDS:
        return True
    own = {s.buffer.data for s in walk_stmts(func.body) if isinstance(s, S.Alloc)}
    return all(
        buffer.data in own or any(isinstance(s, S.For) and s.kind in S.THREAD_LOOPS for s in around)
        for buffer, _, around in _accesses(func.body)
    )


def check_bounds(module: IRModule) -> IRModule:
    """The module. AnalysisError for an access that is out of its buffer whenever it is made."""
    for f in module.functions:
        buffers = declared(f.body)
        for buffer, indices, around in _accesses(f.body):
            facts, shape = _facts(around), buffers.get(buffer.data, buffer).shape
            for d, (index, extent) in enumerate(zip(indices, shape if len(shape) == len(indices) else ())):
                if index.dtype.is_vector:
                    continue
                low, high = facts.range_of(index)
                if high < 0 or facts.compare("ge", index, extent):
                    raise AnalysisError(
                        f"'{buffer.name}' in '{f.name}' is accessed at {index} of {extent} in dimension {d}, which is from {low} to {high}",
                        code="compat-name",
                        help="change the index, or the loops around it",
                    )
    return module


def _facts(around: Iterable[Stmt]) -> Arith:
    """What is known inside of statements."""
    facts = Arith()
    for s in around:
        if isinstance(s, S.For):
            facts.bind_loop(s.loop_var, s.min, s.stop, s.step)
        elif isinstance(s, S.Block):
            for c in conjuncts(s.predicate):
                facts.assume(c)
            for var, value in zip(s.vars, s.iter_values):
                facts.bind(var, *facts.range_of(value))
    return facts


# ---------------------------------------------------------------------------------------------------------- operations


def estimate_tir_flops(stmt_or_mod: object) -> float:
    """The operations of statements, of a function or of a module: each arithmetic, comparison and logical one on values is one,
    on indices none; of branches the longer. AnalysisError where a loop has no constant extent."""
    return float(sum(map(_flops, _statements(stmt_or_mod))))


def _flops(s: Stmt) -> float:
    if isinstance(s, S.For):
        return _turns(s) * estimate_tir_flops(s.body)
    if isinstance(s, S.IfThenElse):
        branches = (estimate_tir_flops(b or ()) for b in (s.then_case, s.else_case))
        return operations(s.condition) + max(branches)
    if isinstance(s, S.While):
        raise AnalysisError("the turns of a 'while' are not known", code="compat-name")
    if isinstance(s, S.Block):
        return sum(map(estimate_tir_flops, s.bodies()))
    values = [s.value] if isinstance(s, (S.BufferStore, S.Let, S.Assign, S.Evaluate)) else []
    return sum(map(operations, values)) + sum(map(estimate_tir_flops, s.bodies()))


def _turns(s: S.For) -> int:
    if not all(isinstance(e, IntImm) for e in (s.min, s.stop, s.step)):
        raise AnalysisError(f"the extent of the loop '{s.loop_var.name}' is no number", code="compat-name")
    return len(range(*(e.value for e in (s.min, s.stop, s.step) if isinstance(e, IntImm))))


def find_anchor_block(mod: IRModule) -> S.Block | None:
    """The block of a module that does the most operations of those that begin a reduction; None where there is none."""
    best: tuple[float, S.Block | None] = (-1.0, None)
    for f in mod.functions:
        for turns, block in _blocks(f.body, 1):
            count = turns * estimate_tir_flops(block.body) if block.init else -1.0
            best = max(best, (count, block), key=lambda pair: pair[0])
    return best[1]


def _blocks(body: Iterable[Stmt], turns: int) -> Iterator[tuple[int, S.Block]]:
    for s in body:
        inside = turns * _turns(s) if isinstance(s, S.For) else turns
        if isinstance(s, S.Block):
            yield turns, s
        for inner in s.bodies():
            yield from _blocks(inner, inside)


# ------------------------------------------------------------------------------------------------- limits of a machine

LIMITS = """max_local_memory_per_block max_shared_memory_per_block max_threads_per_block max_thread_x max_thread_y max_thread_z
    max_vthread max_vector_bytes max_kernels""".split()


def verify_gpu_code(func: PrimFunc, constraints: Mapping[str, object]) -> bool:
    """Whether a function keeps limits of a machine of threads, by the names of `LIMITS`: bytes of memory of a block, threads of a
    block in all and by dimension, virtual threads, bytes of a vector, kernels. AnalysisError for other names, and where a size is
    no number."""
    unknown = sorted(set(constraints) - set(LIMITS))
    if unknown:
        raise AnalysisError(
            f"there is no limit '{unknown[0]}'", code="compat-name", help=f"the limits are {', '.join(LIMITS)}"
        )
    kernels = list(_kernels(func.body))
    found = [_measured(func, k) for k in kernels] + [{"max_kernels": len(kernels)}]
    return all(m[name] <= int(str(limit)) for m in found for name, limit in constraints.items() if name in m)


def _kernels(body: Iterable[Stmt]) -> Iterator[S.For]:
    """The outermost loops over threads."""
    for s in body:
        if isinstance(s, S.For) and s.kind in S.THREAD_LOOPS:
            yield s
        else:
            for inner in s.bodies():
                yield from _kernels(inner)


def _measured(func: PrimFunc, kernel: S.For) -> dict[str, int]:
    """What a kernel needs of each limit."""
    extents: dict[str, int] = {}
    for s in walk_stmts((kernel,)):
        if isinstance(s, S.For) and s.kind in (*S.THREAD_LOOPS, *S.VIRTUAL_LOOPS):
            extents[s.kind] = max(extents.get(s.kind, 1), _turns(s))
    accesses = list(_accesses((kernel,)))
    used = {buffer.data for buffer, _, _ in accesses}
    memory = dict.fromkeys(("local", "shared"), 0)
    for s in walk_stmts(func.body):
        if isinstance(s, S.Alloc) and s.buffer.data in used and _scope(s.buffer) in memory:
            memory[_scope(s.buffer)] += _bytes(s.buffer)
    vectors = [buffer.dtype.total_bytes * i[-1].data_type.lanes for buffer, i, _ in accesses if i]
    threads = {f"max_thread_{d}": extents.get(f"threadIdx_{d}", 1) for d in "xyz"}
    return {
        **{f"max_{scope}_memory_per_block": size for scope, size in memory.items()},
        **threads,
        "max_threads_per_block": prod(threads.values()),
        "max_vthread": prod(extents.get(kind, 1) for kind in S.VIRTUAL_LOOPS),
        "max_vector_bytes": max(vectors, default=0),
    }
