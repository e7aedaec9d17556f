"""What a kind of target makes of a schedule: threads, scopes of memory, annotated loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from compass_core import targets
from compass_core.namedtuple import NamedTuple
from compassc import services
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL, INT32, STORAGE, VOID, DataType, dtype
from compassc.ir.exprs import IntImm
from compassc.ir.stmts import Body, IRModule, PrimFunc, Stmt
from compassc.pass_manager import pipeline_names, run_pipeline
from compassc.te.errors import LowerError

if TYPE_CHECKING:
    from compass_core.targets import Target
    from compassc.ir.iter_vars import IterVar
    from compassc.te.schedule.stage import Stage

_ZERO, _ONE = IntImm(INT32, 0), IntImm(INT32, 1)
_WIDE = tuple(map(dtype, ("int64", "uint64", "float64")))


OWN_MEMORY = ("lsram", "private")
"""The memories of a single TEC or thread."""


class Use(NamedTuple):
    """Who uses an array. `alone`: one thread does, inside of a loop over threads; `bound`: there are such loops; `launches`:
    several statements of the outermost level do; `apart`: the kinds of the loops over threads of which several turns do."""

    alone: bool
    bound: bool
    launches: bool
    apart: Sequence[str]


class Machine:
    """One processor with one memory: loops that are bound to threads are plain loops.

    `name`: the target that modules are made for. `loops`: what an annotation makes of a loop; those of
    `constant_loops` have a constant extent. `storage`: the types that memory holds.
    """

    loops: ClassVar[Mapping[str, str]] = {"vectorize": "vectorized", "unroll": "unrolled", "parallel": "parallel"}
    constant_loops: ClassVar[tuple[str, ...]] = ("vectorize",)
    storage: tuple[DataType, ...] = (*STORAGE, *_WIDE, BOOL)
    memory = "memory"
    narrower = "give it another type, and cast its elements where they are read"
    """What to do about a tensor of a type that memory does not hold."""
    together: ClassVar[bool] = False
    """Whether threads can compute a stage together inside of a loop."""
    everywhere: ClassVar[bool] = False
    """Whether each thread runs what is in no loop over threads, and so has what it computes there."""
    single_threads: ClassVar[bool] = False
    """Whether a loop of one turn that is bound to a thread says that one thread runs it."""
    kernels: ClassVar[bool] = False
    """Whether functions of the kernel language can be called."""
    kinds: tuple[str, ...] = ("llvm", "c")
    """The kinds of targets for which there may be rules of operations."""
    externals: ClassVar[str] = "all"
    """Which functions of C can be called: "all", those that take "values" only, none."""
    imports: ClassVar[tuple[str, ...]] = ("import_c", "import_llvm")
    """The pragmas that bring functions."""
    open_memory: ClassVar[frozenset[str]] = frozenset(("private",))
    """The scopes of which memory can have a size that is known when the kernel is called."""
    stage: ClassVar[str] = ""
    """The stage of passes that plain loops go through: "loops", "grid", or empty where they stay."""
    shared_scope: ClassVar[str] = ""
    """The memory for what one thread computes and another one reads."""

    def __init__(self, name: str) -> None:
        self.name = name

    def storage_type(self, label: str, kind: DataType) -> DataType:
        """The type in memory. LowerError for types that memory does not hold."""
        if kind not in self.storage:
            raise LowerError(f"'{label}' has elements of type {kind}, which {self.memory} does not hold", self.narrower)
        return kind

    def shares(self, thread: IterVar | None) -> bool:
        """Whether a loop that is bound to this thread is shared out over what runs at the same time."""
        return False

    def threads(self, stage: Stage) -> dict[IterVar, IterVar]:
        """The loops of a stage that are shared out, outermost first, each with its thread."""
        notes = ((a, stage.annotations.get(a)) for a in stage.leaf_iter_vars)
        return {a: n.thread for a, n in notes if n is not None and n.thread is not None and self.shares(n.thread)}

    def scope(self, stage: Stage, use: Use) -> str:
        """The memory of a stage that is no parameter. LowerError where that of the user's is not for who uses it."""
        return self.memory_of(stage.label, stage.scope, use)

    def memory_of(self, name: str, chosen: str, use: Use) -> str:
        """The memory of an array: what was chosen, where that is for who uses it; without it (`global`, but no parameter)
        what is near to these. LowerError where it is not shared by those who use it."""
        return "private"

    def sequence(self, roots: Sequence[Body]) -> Body:
        """The stages of the outermost level, one after another."""
        return tuple(chain.from_iterable(roots))

    def passed(self, module: IRModule, names: Sequence[str]) -> IRModule:
        """The module after passes that ask for whom it is made (`machine_of`)."""
        token = _current.set(self)
        try:
            return run_pipeline(tuple(names), module)
        finally:
            _current.reset(token)

    def form(self, module: IRModule) -> IRModule:
        """What a kernel of plain loops (`SCALAR_LOOPS`) becomes: that after the passes of the machine's stage."""
        marked = module.entry_func.attr(S.SCALAR_LOOPS) is not None
        return self.passed(module, pipeline_names(self.stage)) if marked else module


class Npu(Machine):
    """A core of TECs: `threadIdx.x` are the TECs, each with its lsram; all of them have the shared memory."""

    loops: ClassVar[Mapping[str, str]] = {"vectorize": "vectorized", "unroll": "unrolled", "parallel": "serial"}
    constant_loops: ClassVar[tuple[str, ...]] = ("vectorize", "unroll")
    storage = (*STORAGE, BOOL)
    memory = "NPU memory"
    narrower = "give it as int32 or float32; an expression may cast elements to 64 bits and what comes of it back"
    together = True
    kernels = True
    externals = ""
    kinds = ("compass",)
    imports = ()
    open_memory = frozenset()
    stage = "loops"
    shared_scope = "shared"
    _scopes: ClassVar[Mapping[str, str]] = {
        "": "",
        "shared": "shared",
        "lsram": "lsram",
        "local": "private",
    }

    def __init__(self, target: Target) -> None:
        super().__init__(target.name)
        self.target, self.tecs = target, target.tecs

    def shares(self, thread: IterVar | None) -> bool:
        return thread is not None and thread.thread_tag.startswith("threadIdx")

    def scope(self, stage: Stage, use: Use) -> str:
        if stage.scope == "global":
            raise LowerError(
                f"'{stage.label}' is in global memory but no parameter of the kernel",
                "add it to the arguments, or give it another scope",
            )
        return self.memory_of(stage.label, self._scopes[stage.scope], use)

    def memory_of(self, name: str, chosen: str, use: Use) -> str:
        if chosen == "constant":
            raise LowerError(f"'{name}' is written, so it cannot be in constant memory")
        nearest = "lsram" if use.alone or not use.bound else "shared"
        made = nearest if not chosen or chosen.startswith("global") else chosen
        if use.alone and made == "shared":
            raise LowerError(
                f"'{name}' is computed by each TEC for itself, in memory that all of them share", "set_scope('lsram')"
            )
        if use.bound and not use.alone and made in OWN_MEMORY:
            raise LowerError(f"'{name}' is used by several TECs but lies in the {made} of one", "set_scope('shared')")
        return made


class Grid(Machine):
    """A grid of blocks of threads: loops keep the tag that they are bound to; a launch for each stage of the outermost
    level, with barriers between."""

    loops: ClassVar[Mapping[str, str]] = {"vectorize": "vectorized", "unroll": "unrolled", "parallel": "serial"}
    memory = "memory of the device"
    open_memory = frozenset(("global",))
    together = True
    everywhere = True
    stage = "grid"
    single_threads = True
    externals = "values"
    imports = ("import_c",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.kinds = (name,)

    def shares(self, thread: IterVar | None) -> bool:
        return thread is not None and thread.thread_tag.replace(".", "_") in S.THREAD_LOOPS

    def scope(self, stage: Stage, use: Use) -> str:
        if stage.attached is not None and use.apart and stage.scope != "shared":
            raise LowerError(
                f"'{stage.label}' is computed by the threads of a block together, in memory of one of them",
                "set_scope('shared')",
            )
        if use.alone and stage.scope in ("shared", "global"):
            raise LowerError(
                f"'{stage.label}' is computed by each thread for itself, in memory that several of them share",
                "set_scope('local'), or bind a loop of it to threads",
            )
        if stage.attached is not None and not use.apart:
            return "private"
        return self.memory_of(stage.label, stage.scope or "global", use)

    def memory_of(self, name: str, chosen: str, use: Use) -> str:
        """Registers or the stack of a thread, what the threads of a block share, or memory of the device."""
        blocks = any(kind.startswith("blockIdx") for kind in use.apart)
        several = "launches" if use.launches else "blocks of threads" if blocks else "threads" if use.apart else ""
        if chosen in (*OWN_MEMORY, "local"):
            if several:
                raise LowerError(
                    f"'{name}' is used by several {several} but lies in the {chosen} memory of a thread",
                    "set_scope('shared'), or compute what writes it at a loop that is bound to threads",
                )
            return "private"
        if chosen == "shared":
            if several not in ("", "threads"):
                raise LowerError(
                    f"'{name}' is used by several {several} but lies in the shared memory of a block",
                    "set_scope('global'), or compute what writes it at a loop that is bound to blockIdx",
                )
            return "shared"
        if not chosen.startswith("global"):
            raise LowerError(
                f"'{name}' lies in {chosen} memory, which these devices do not have", "use shared or local"
            )
        return "global" if several else "private"

    def sequence(self, roots: Sequence[Body]) -> Body:
        return launched(roots)


_current: ContextVar[Machine | None] = ContextVar("machine", default=None)


def machine_of(module: IRModule) -> Machine:
    """The machine that a module is lowered for: the one whose passes run, else the NPU of the module."""
    current = _current.get()
    return current if current is not None and current.name == module.target else Npu(targets.load(module.target))


# ---------------------------------------------------------------------------------------------------- barriers, launches


def barrier() -> Stmt:
    """The TECs, or the threads of a block, wait for each other."""
    return S.Evaluate(E.Call("barrier", (), VOID))


def is_barrier(s: Stmt) -> bool:
    """Whether a statement has threads wait for each other."""
    return isinstance(s, S.Evaluate) and isinstance(s.value, E.Call) and s.value.op == "barrier"


def launched(bodies: Iterable[Body]) -> Body:
    """The statements of launches on the outermost level, and what stands between them: nothing is moved past it, and no
    launch has it inside."""
    between = (barrier(), S.Evaluate(E.Call("wait_events", (_ZERO,), VOID)))
    return tuple([s for i, body in enumerate(bodies) for s in ((*between, *body) if i else body)])


def launches(body: Body) -> list[Body]:
    """The statements of each launch, which `launched` put together."""
    found: list[list[Stmt]] = [[]]
    for s in body:
        if isinstance(s, S.Evaluate) and isinstance(s.value, E.Call) and s.value.op == "wait_events":
            found[-1].pop()
            found.append([])
        else:
            found[-1].append(s)
    return [tuple(part) for part in found]


def machine_for(target: object = None) -> Machine:
    """The machine that schedules are lowered for: itself, or that of a target (default: the current one)."""
    made: Machine = target if isinstance(target, Machine) else services.machine(target)
    return made


def plain_statements(function: PrimFunc) -> Body:
    """The statements of a function of blocks as plain loops, wherever they are run."""
    names = ("FlattenNestedBlocks", "LowerInitBlock", "LowerOpaqueBlock")
    return Machine("").passed(function.module(), names).entry_func.body
