"""What searches find in Relay programs: the kernels that builds make for a host, with their tensors, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compassc.relay.backend.build import given_module, host_of, lowered, one_target
from compassc.relay.backend.kernels import Chosen, Kernels, expressed
from compassc.relay.expr import Call, Function
from compassc.relay.module import IRModule
from compassc.relay.tuned import KINDS, is_plain
from compassc.relay.types import is_dynamic
from compassc.relay.visit import post_order
from compassc.targets import Target
from compassc.te.tensor import ComputeOp, Tensor
from compassc.te.tensor import post_order as operations


@dataclass(frozen=True)
class HostKernel:
    """A kernel of programs: its name, its function, the tensors of its parameters and results, its most complex call, if it has
    calls, and how many calls there are of it."""

    name: str
    function: Function
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    anchor: Chosen | None
    weight: int

    @property
    def tensors(self) -> list[Tensor]:
        """The parameters as builds order them."""
        return [*self.inputs, *self.outputs]

    @property
    def is_plain(self) -> bool:
        """Whether its loops can be searched."""
        return is_plain(self.outputs)

    @property
    def has_sums(self) -> bool:
        """Whether a part of it reduces axes."""
        return any(isinstance(op, ComputeOp) and op.reduce_axis for op in operations([t.op for t in self.outputs]))


def searched_host(target: object) -> tuple[Target, Target]:
    """The target of a build, and that of its kernels. UsageError for targets whose kernels leave nothing to be chosen."""
    chosen = one_target(target)
    host = host_of(chosen)
    if host.kind.name not in KINDS:
        raise UsageError(
            f"kernels of Relay for {host.kind.name} have no tasks: their schedules leave nothing to be chosen",
            code="relay-target",
            help=f"give one of {', '.join(KINDS)}, or an NPU by its name",
        )
    return chosen, host


def host_kernels(
    mods: Sequence[object], params: Sequence[Mapping[str, object] | None], target: object
) -> list[HostKernel]:
    """The kernels of modules or functions, in their order, as builds in the current `PassContext` make them. What other compilers
    or NPUs run, and functions of open sizes, are none. UsageError as `searched_host`."""
    chosen, host = searched_host(target)
    kernels = Kernels(lambda f, name: (f, *expressed(f, host)), "")
    calls: Counter[str] = Counter()
    for mod, own in zip(mods, params, strict=True):
        module = given_module(IRModule.from_expr(mod) if isinstance(mod, Function) else mod, own)
        calls.update(kernels.name_of(f) for f in _called(lowered(module, chosen).module))
    return [HostKernel(name, *made, calls[name]) for name, made in kernels.modules.items()]


def _called(module: IRModule) -> Iterator[Function]:
    """The functions of kernels that a module calls, one for each call."""
    functions: Iterable[Function] = [f for f in module.functions.values() if isinstance(f, Function)]
    for f in functions:
        for e in post_order(f):
            if not isinstance(e, Call) or not isinstance(e.op, Function) or e.op.attrs.get("Compiler"):
                continue
            if not any(is_dynamic(t) for t in (e.checked_type, *(p.checked_type for p in e.op.params))):
                yield e.op
