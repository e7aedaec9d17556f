"""Functions of blocks for the tests of the passes that lower them."""

from __future__ import annotations

from compassc import pass_manager, te, tir
from compassc.ir import IRModule, walk_stmts
from compassc.ir import stmts as S
from compassc.te.machine import Grid

TARGET = "X2_1204"


def row_sums(n: int, m: int) -> IRModule:
    """Rows summed up, then doubled: two blocks, of which the first has an initial value and a memory of its own."""
    a = te.placeholder((n, m), "int32", name="A")
    k = te.reduce_axis((0, m), name="k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    made = te.create_prim_func([a, te.compute((n,), lambda i: b[i] * 2, name="C")]).module()
    return made.replace(target=TARGET)


def scheduled(module: IRModule, block: str, loop: int, thread: str = "threadIdx.x") -> IRModule:
    """The module with a loop of a block bound to a thread."""
    s = tir.Schedule(module)
    s.bind(s.get_loops(s.get_block(block))[loop], thread)
    return s.mod.replace(target=TARGET)


def after(module: IRModule, *names: str) -> IRModule:
    """The module after passes, verified."""
    return pass_manager.run_pipeline(names, module, pass_manager.PassOptions(verify=True))


def on_grid(module: IRModule, *names: str) -> IRModule:
    """The module after passes for a grid of threads."""
    return Grid("cuda").passed(module.replace(target="cuda"), names)


def statements(module: IRModule, kind: type[S.Stmt]) -> list[S.Stmt]:
    return [s for s in walk_stmts(module.entry_func.body) if isinstance(s, kind)]
