"""From a schedule to a kernel: inlined stages, bounds, loop nest, and a function that every further stage takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from compassc.analysis.structure import variables
from compassc.ir import stmts as S
from compassc.ir.dtypes import BOOL, INT32, VOID, PointerType, pointer_type
from compassc.ir.equal import structural_equal
from compassc.ir.errors import ExpressionTypeError
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.iter_vars import IterKind, IterVar, Range
from compassc.ir.names import NamePool, identifier
from compassc.ir.stmts import Body, IRModule, Notes, PrimFunc, Stmt
from compassc.ir.tensor_exprs import ProducerLoad, reads
from compassc.ir.verify import verify
from compassc.ir.visit import all_exprs, rename_vars, rewrite, substitute, walk_stmts
from compassc.pass_manager import pipeline_names, pipelines_are_plain
from compassc.te.bounds import Bounds, infer_bounds
from compassc.te.buffers import View, check_bound
from compassc.te.errors import LowerError, ScheduleError
from compassc.te.external import imported, with_declarations
from compassc.te.loopnest import LoopNest, loop_nest
from compassc.te.machine import Machine, machine_for
from compassc.te.opaque import ScanOp
from compassc.te.schedule.annotation import Annotation
from compassc.te.schedule.loops import is_tec
from compassc.te.schedule.record import copied
from compassc.te.schedule.relations import Singleton, roots_of
from compassc.te.schedule.schedule import Group, Schedule
from compassc.te.schedule.stage import Stage
from compassc.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor, tensor_of

if TYPE_CHECKING:
    from compassc.language.functions import PyPrimFunc

_ZERO = IntImm(INT32, 0)
Parameters = tuple[dict[Tensor, Buffer], list[Stmt], tuple[Var, ...], Notes]
"""The buffers of tensors, their declarations, the parameters of a function, and its attributes."""
IMPLIED_SIZES = "implied_sizes"
"""The attribute of a function that says how many of its last parameters are sizes of the tensors before them: who calls a
built module does not give them."""


def lower(
    schedule: object,
    args: Sequence[object] | None = None,
    name: str = "main",
    target: object = None,
    simple_mode: bool = False,
    binds: Mapping[Tensor, View] | None = None,
) -> IRModule:
    """The kernel of a schedule: a module that `BuildManager` builds, with the tensors and variables `args` as parameters.
    `binds`: buffers (`te.decl_buffer`) of some of the tensors, which name them and can stand for them in `args`.

    `target`: for which the threads are laid out: an NPU target's name, by default that of the switch COMPASS_TARGET, or
    a kind of `compassc.targets` (`llvm`, `cuda`). `simple_mode`: stop with plain loops over scalars, before transfers,
    vectors and accumulators are made of them. LowerError where the schedule has no program: memory without a constant
    size or of more bytes than there are, tensors that are no parameters, threads that the target does not have.
    """
    if not isinstance(schedule, Schedule):
        raise ExpressionTypeError(f"te.lower takes a schedule, got {type(schedule).__name__}")
    if args is None:
        raise ExpressionTypeError("te.lower needs the parameters of the kernel: its tensors and variables, in order")
    machine, args = machine_for(target), _with_tensors(args, binds or {})
    state = None if simple_mode or binds or not pipelines_are_plain() else _state(schedule, args, machine)
    if state is not None and (known := _known(schedule, state, name)) is not None:
        return known
    plain = normalised(schedule, machine)
    module = _plain_loops(plain, infer_bounds(plain), args, name, machine, binds)
    if not simple_mode:
        module = machine.form(module)
    verify(module)
    schedule.lowered = None if state is None else (state, module)
    return module


def _known(schedule: Schedule, state: Sequence[object], name: str) -> IRModule | None:
    """The kernel that was made of the same schedule last, by this name: who looks for a schedule that has a program lowers
    those that he tries, and the one that he takes is lowered again."""
    if schedule.lowered is None:
        return None
    before, module = schedule.lowered
    if len(before) != len(state) or not all(map(_same, before, state)):
        return None
    if module.entry == name:
        return module
    if len(module.functions) > 1:  # whose names must differ
        return None
    return module.replace(functions=(module.entry_func.replace(name=name),), entry=name)


def _same(a: object, b: object) -> bool:
    """Whether two parts of states are the same: objects are, where they are one."""
    return a is b or (type(a) is type(b) and isinstance(a, (bool, int, str)) and a == b)


_PARTED = (list, tuple, dict, set, frozenset, Stage, Operation, Group, Annotation, Tensor, IterVar, Range)
_WHOLE: set[type] = set()
"""Classes of parts of schedules, met so far, that have no parts themselves, as most have none."""


def _state(schedule: Schedule, args: Sequence[object], machine: Machine) -> list[object]:
    """All that a kernel follows from, one after another."""
    found: list[object] = [type(machine)]
    seen: set[Stage | Operation] = set()
    todo: list[object] = [vars(machine), list(args), schedule.groups, schedule.stages]
    while todo:
        part = todo.pop()
        if type(part) in _WHOLE:
            found.append(part)
            continue
        if not isinstance(part, _PARTED):
            _WHOLE.add(type(part))
        found.append(part if not isinstance(part, (list, tuple, dict, set, frozenset)) else len(part))
        if isinstance(part, (list, tuple, set, frozenset)):
            todo += part
        elif isinstance(part, dict):
            todo += (*part.keys(), *part.values())
        elif isinstance(part, (Stage, Operation)):
            if part not in seen:
                seen.add(part)
                todo += (value for name, value in vars(part).items() if name not in Stage.derived)
        elif isinstance(part, Group):
            todo.append(part.members)
        elif isinstance(part, Annotation):
            found[-1] = Annotation
            todo.append(vars(part))
        elif isinstance(part, Tensor):
            found[-1] = Tensor
            todo += (part.op, part.value_index)
        elif isinstance(part, IterVar):
            todo += (part.dom, part.var, part.iter_type, part.name, part.thread_tag)
        elif isinstance(part, Range):
            todo += (part.min, part.extent)
    return found


def schedule_ops(
    schedule: Schedule, bounds: Bounds, args: Sequence[object] | None = None, name: str = "main", target: object = None
) -> IRModule:
    """The loop nest of a normalised schedule (`Schedule.normalize`) with its bounds (`infer_bounds`), as a kernel of plain
    loops. `args`: as for `lower`, by default what is given to the expressions and what they give."""
    if args is None:
        scans = [s.origin_op for s in schedule.stages if isinstance(s.origin_op, ScanOp)]
        states = {t.op for scan in scans for t in scan.state_placeholder}
        ops = [s.origin_op for s in schedule.stages if isinstance(s.origin_op, PlaceholderOp)]
        given = [op.output(0) for op in ops if op not in states]
        tensors = [*given, *(t for op in schedule.outputs for t in op.outputs)]
        args = [*tensors, *_open_sizes(schedule, tensors)]
    return _plain_loops(schedule, bounds, args, name, machine_for(target))


def _open_sizes(schedule: Schedule, tensors: Sequence[Tensor]) -> list[Var]:
    """The sizes of stages that no tensor among the parameters has as a dimension."""
    dims = {d for t in tensors for d in t.shape}
    sizes = (e for s in schedule.stages for t in s.origin_op.outputs for d in t.shape for e in variables(d))
    return [v for v in dict.fromkeys(sizes) if v not in dims]


def _with_tensors(args: Sequence[object], binds: Mapping[Tensor, View]) -> list[Any]:
    """The arguments with tensors in the places of the buffers that they are bound to. ExpressionError for buffers that
    are not those of their tensors."""
    for tensor, view in binds.items():
        if not isinstance(tensor, Tensor):
            raise ExpressionTypeError(f"binds has buffers of tensors, got one of a {type(tensor).__name__}")
        check_bound("binds", view, tensor)
    made = []
    for arg in args:
        found = next((t for t, view in binds.items() if view is arg), arg)
        if isinstance(found, View):
            raise ExpressionTypeError(f"no tensor is bound to the buffer '{found.name}'", "say binds={tensor: buffer}")
        made.append(found)
    return made


def _plain_loops(
    plain: Schedule,
    bounds: Bounds,
    args: Sequence[object],
    name: str,
    machine: Machine,
    binds: Mapping[Tensor, View] | None = None,
) -> IRModule:
    given = parameters_of(args, machine, binds or {})
    parameters = given[0]
    results = [stage.origin_op.outputs for stage in plain.stages if stage.is_output]
    missing = [given for given in results if not any(t in parameters for t in given)]  # what else one computes is left
    if missing and (machine.kernels or len(missing) == len(results)):  # the host has memory for what nobody gets
        raise LowerError(f"the output '{missing[0][0].name}' is not among the arguments", "add it to them")
    nest = loop_nest(plain, bounds, parameters, machine)
    body = (*nest.allocations, *machine.sequence(nest.roots))
    return as_function(body, given, name, machine, nest, imported(plain, machine))


def as_function(
    body: Body, parameters: Parameters, name: str, machine: Machine, nest: LoopNest, attrs: Notes = ()
) -> IRModule:
    """Plain loops with these parameters as a module; `nest` says what they call, and which memory has two halves."""
    buffers, declared, variables, implied = parameters
    renamed = _renamed(variables)
    given = tuple(renamed.get(v, v) for v in variables)
    loops = PrimFunc(name, given, rename_vars((*declared, *body), renamed), VOID, ((S.EXPRESSIONS, S.STAGES),))
    made = machine.passed(IRModule((loops,), name, machine.name), pipeline_names("threads")).entry_func.body
    sized = all(isinstance(e, IntImm) for s in walk_stmts(made) if isinstance(s, S.Alloc) for e in s.buffer.shape)
    made, externals = with_declarations(made, {k.__name__ for k in nest.kernels}, machine)
    attrs = (*implied, *attrs) if sized else (*implied, *attrs, (S.OPEN_MEMORY, 1))
    if machine.kernels:
        attrs = (*attrs, ("shapes", _shapes_of(buffers, renamed)))
    if machine.stage:
        attrs = (*attrs, (S.SCALAR_LOOPS, [v.name for v in nest.double_buffered]))
    function = PrimFunc(name, given, made, VOID, attrs)
    _check_known(function)
    called = (*_called(nest.kernels, name, machine), *externals)
    if any(f.name == name for f in externals):
        raise _named_alike("a function of C", name)
    return IRModule((function, *called), name, machine.name)


def normalised(schedule: Schedule, machine: Machine | None = None) -> Schedule:
    """The schedule without its inlined stages: their expressions stand where they were read."""
    machine = machine or Machine("")
    across = [s for s in schedule.stages if any(a.is_reduction for a in machine.threads(s))]
    scans = any(isinstance(s.origin_op, ScanOp) for s in schedule.stages)
    if not across and not scans and not any(s.inlined for s in schedule.stages):
        return schedule
    made = copied(schedule)
    for stage in across:
        _reduced_across(made, made.stage(stage.label), machine)
    bodies: dict[object, tuple[Stage, Expr]] = {}
    for stage in made.stages:
        if isinstance(stage.origin_op, ComputeOp):
            stage.body = tuple(rewrite(e, lambda x: inlined(x, bodies)) for e in stage.body)
            if stage.inlined:
                bodies[stage.origin_op] = stage, stage.body[0]
    made.stages = [s for s in made.stages if not s.inlined]
    for stage in made.stages:
        if isinstance(stage.origin_op, ScanOp):
            _in_the_loop(made, stage, stage.origin_op)
    return made


def _in_the_loop(schedule: Schedule, scan: Stage, op: ScanOp) -> None:
    """Has what depends on the rows before computed in the loop of a scan, as far as it is not inside of it already."""
    if scan.attached is not None:
        raise LowerError(f"the scan '{scan.label}' is computed on the outermost level")
    depends = {t.op for t in op.state_placeholder}
    for stage in schedule.stages:
        read = {tensor_of(r).op for e in stage.body for r in reads(e)} | {t.op for t in stage.inputs}
        if stage is scan or not (read & depends or stage.origin_op in {t.op for t in op.update}):
            continue
        depends.add(stage.origin_op)
        if stage.attached is None:
            stage.attached = (scan, op.scan_axis)


def _reduced_across(schedule: Schedule, stage: Stage, machine: Machine) -> None:
    """Has threads reduce a part each, in a stage of its own, in which what was computed at the loop is from then on; the old
    one joins the parts. The threads of a grid do that in the loops of the old stage, for the elements of a block together."""
    axis, *more = (a for a in machine.threads(stage) if a.is_reduction)
    if more:
        raise LowerError(
            f"'{stage.label}' has two loops of its reduction bound to threads: '{axis.name}', '{more[0].name}'"
        )
    notes = [stage.annotations.get(a) for a in stage.leaf_iter_vars if a.is_reduction and a is not axis]
    thread = stage.annotations[axis].thread
    del stage.annotations[axis]
    inside = [s for s in schedule.stages if s.attached is not None and s.attached[1] is axis]
    for s in inside:
        s.attached = None
    try:
        made = schedule.rfactor(stage.origin_op.output(0), axis)
    except ScheduleError as error:
        raise LowerError(f"threads reduce '{stage.label}', a part each: {error.message}") from None
    part = schedule[made[0] if isinstance(made, list) else made]
    part.scope = machine.shared_scope
    part.attached = stage.attached
    for s in inside:
        s.attached = part, part.axis[-1]
    part.annotations[part.axis[0]] = Annotation(thread=thread)
    part.annotations |= {a: note for a, note in zip(part.reduce_axis, notes) if note is not None}
    if machine.together and machine.everywhere:
        _reduce_in_block(stage, part)


def _reduce_in_block(stage: Stage, part: Stage) -> None:
    """Has the threads of a block compute the parts of its elements, in memory that they share: at the innermost loop around
    those that are bound to threads, and with these threads for the same axes."""
    around = list(takewhile(lambda a: not a.is_reduction, stage.leaf_iter_vars))
    notes = ((a, stage.annotations.get(a)) for a in around)
    threads = {a: n.thread for a, n in notes if n is not None and is_tec(n.thread)}
    blocks = list(takewhile(lambda a: a not in threads, around))
    if not blocks:
        return
    part.scope, part.attached = "shared", (stage, blocks[-1])
    one = IterVar(
        Range(1), f"{part.axis[0].name}.one", IterKind.DATA_PARALLEL
    )  # of these threads, which adds the parts up
    stage.relations.append(Singleton(one))
    stage.leaf_iter_vars.insert(len(blocks), one)
    stage.all_iter_vars.append(one)
    stage.annotations[one] = Annotation(thread=part.annotations[part.axis[0]].thread)
    for own, other in zip(part.axis[1:], stage.axis):
        found = [t for a, t in threads.items() if other in roots_of(stage, a)]
        taken = [n.thread for n in part.annotations.values()]
        if found and found[-1] not in taken:
            part.annotations[own] = Annotation(thread=found[-1])


def inlined(e: Expr, bodies: Mapping[object, tuple[Stage, Expr]]) -> Expr | None:
    """The expression of an element of an inlined stage."""
    if not isinstance(e, ProducerLoad) or tensor_of(e).op not in bodies:
        return None
    stage, body = bodies[tensor_of(e).op]
    indices = [rewrite(i, lambda x: inlined(x, bodies)) for i in e.indices]
    return substitute(body, {axis.as_expr(): index for axis, index in zip(stage.axis, indices)})


def _named_alike(what: str, name: str) -> LowerError:
    return LowerError(f"the kernel and {what} that it calls are both named '{name}'", "give the kernel another name=")


def _called(kernels: Sequence[PyPrimFunc], name: str, machine: Machine) -> list[PrimFunc]:
    """The functions of the kernel language that statements call, and what these call. LowerError where two that are not
    the same have one name."""
    if not kernels:
        return []
    from compassc.language.parser import parse

    if not machine.kernels:
        raise LowerError(f"'{kernels[0].__name__}' is a kernel of the NPU, {machine.name} does not run it")
    found: dict[str, PrimFunc] = {}
    for kernel in dict.fromkeys(kernels):
        for function in parse(kernel, machine.name).functions:
            if function.name == name:
                raise _named_alike("a function", name)
            if not structural_equal(found.setdefault(function.name, function), function, exact=True):
                raise LowerError(
                    f"two functions that are called '{function.name}' are not the same", "give one of them another name"
                )
    return list(found.values())


def parameters_of(
    args: Sequence[object], machine: Machine, binds: Mapping[Tensor, View] = MappingProxyType({})
) -> Parameters:
    """The buffers of the tensors among the arguments, their declarations, the parameters of the function and its
    attributes. Tensors in `binds` have the names of their buffers. Sizes of tensors that are no arguments themselves are
    parameters after these (`IMPLIED_SIZES`)."""
    buffers: dict[Tensor, Buffer] = {}
    variables: list[Var] = []
    names = NamePool()
    for arg in args:
        if isinstance(arg, Tensor):
            if arg in buffers:
                raise LowerError(f"'{arg.name}' is given twice as an argument")
            dtype = machine.storage_type(arg.name, arg.dtype)
            name = binds[arg].name if arg in binds else arg.name
            data = Var(names.take(identifier(name)), pointer_type(dtype, "global"))
            shape = tuple(arg.shape) or (IntImm(INT32, 1),)
            buffers[arg] = Buffer(data, dtype, shape)
            variables.append(data)
        elif isinstance(arg, Var):
            variables.append(arg)
        else:
            raise ExpressionTypeError(f"an argument is a tensor or a variable, got {type(arg).__name__}")
    sizes = dict.fromkeys(e for b in buffers.values() for e in b.shape if isinstance(e, Var) and e not in variables)
    for v in (*variables, *sizes):
        if not isinstance(v.dtype, PointerType) and v.dtype not in (*machine.storage, BOOL):
            raise LowerError(
                f"the parameter '{v.name}' is of type {v.dtype}, which kernels for {machine.name} do not take",
                'sizes are of type int32: te.size_var("n")',
            )
    attrs = ((IMPLIED_SIZES, len(sizes)),) if sizes else ()
    return buffers, [S.DeclBuffer(b) for b in buffers.values()], (*variables, *sizes), attrs


def _shapes_of(parameters: Mapping[Tensor, Buffer], renamed: Mapping[Var, Var]) -> dict[str, list[int | str | None]]:
    """The shapes of tensors by the names of their parameters: numbers, names of parameters, None for other sizes."""

    def size(e: Expr) -> int | str | None:
        if isinstance(e, IntImm):
            return e.value
        return renamed.get(e, e).name if isinstance(e, Var) else None

    return {renamed.get(b.data, b.data).name: [size(e) for e in b.shape] for b in parameters.values()}


def _renamed(variables: Sequence[Var]) -> dict[Var, Var]:
    """Other variables for the numbers among the parameters whose names another parameter has."""
    pool = NamePool(v.name for v in variables if isinstance(v.dtype, PointerType))
    names = {v: pool.take(identifier(v.name)) for v in variables if not isinstance(v.dtype, PointerType)}
    return {v: Var(name, v.dtype, v.nonneg) for v, name in names.items() if name != v.name}


def _check_known(function: PrimFunc) -> None:
    """LowerError for variables that are neither parameters nor defined in the function."""
    known = set(function.params)
    for s in walk_stmts(function.body):
        known.update((s.buffer.data,) if isinstance(s, S.DeclBuffer) else S.defined(s))
    for e in all_exprs(function.body):
        if isinstance(e, Var) and e not in known:
            raise LowerError(
                f"'{e.name}' is used, but is neither an argument nor a size of one",
                "add it to the arguments; a size is known where a tensor among them has it as a dimension",
            )
