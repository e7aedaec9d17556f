"""Tasks of Relay programs: what their kernels for the host leave to be chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compassc import te, topi
from compassc.ir.exprs import IntImm
from compassc.pass_manager.context import PassContext
from compassc.relay.backend.extraction import host_kernels, searched_host
from compassc.relay.backend.kernels import expressed, expressions
from compassc.relay.operators import Op
from compassc.relay.tuned import ANCHORS, KNOBS, Workload, consulted, function_of, knobs_of
from compassc.targets import Target
from compassc.te.schedule import Schedule
from compassc.te.tensor import Tensor

from .contexts import get_workload
from .flops import compute_flop
from .task import Task, create, get_config, template

_SAME = {"nn.dense": "nn.contrib_dense_pack"}
"""Operators that builds put in the place of others, whose weights they know."""


class _Noted:
    """Records without content, which note what they are asked for."""

    def __init__(self, ops: Iterable[Op | str] | None) -> None:
        names = None if ops is None else {getattr(op, "name", op) for op in ops}
        self._ops = None if names is None else {*names, *(new for old, new in _SAME.items() if old in names)}
        self.found: dict[tuple[Workload, str], Target] = {}

    def cost(self, op: str, outputs: Sequence[Tensor], target: Target) -> None:
        """Notes the template that an implementation is made of."""
        workload = get_workload(outputs)
        if workload is not None:
            self._note(op, workload, target)

    def knobs(self, workload: Workload, target: Target) -> None:
        """Notes a call."""
        self._note(str(workload[0]), workload, target)

    def _note(self, op: str, workload: Workload, target: Target) -> None:
        if self._ops is None or op in self._ops:
            self.found.setdefault((workload, str(target)), target)


def extract_from_program(
    mod: object, params: Mapping[str, object] | None, target: object, target_host: object = None, ops: Iterable[Op | str] | None = None
) -> list[Task]:  # fmt: skip
    """The tasks of the kernels of a module or function, each once, in their order: those of sums of products, and of templates that
    strategies use. `ops`: the operators that count. For an NPU they are of what its host computes; its layers are tuned by
    `compassc tune`. UsageError for other targets."""
    return extract_from_multiple_program([mod], [params], target, target_host, ops)


def extract_from_multiple_program(
    mods: Sequence[object], params: Sequence[Mapping[str, object] | None], target: object, target_host: object = None,
    ops: Iterable[Op | str] | None = None,
) -> list[Task]:  # fmt: skip
    """The tasks of several programs, each once."""
    noted = _Noted(ops)
    with PassContext(opt_level=3, disabled_pass=["AlterOpLayout"]), consulted(noted):
        for kernel in host_kernels(mods, params, target):
            if kernel.anchor is not None and kernel.anchor.implementation is None:
                knobs_of(kernel.anchor.call, searched_host(target)[1])
    return [create(str(w[0]), w[1:], t, target_host) for (w, _), t in noted.found.items()]


def _described(tensor: Tensor) -> tuple[tuple[int, ...], str]:
    return tuple(d.value for d in tensor.shape if isinstance(d, IntImm)), str(tensor.dtype)


def _register(op: str) -> None:
    def kernel(*args: Any) -> tuple[Schedule, list[Tensor]]:
        *tensors, attributes = args
        cfg, target, f = get_config(), Target.of(), function_of(op, [_described(t) for t in tensors], attributes)
        for name, values in KNOBS.items():
            cfg.define_knob(name, values)
        cfg.add_flop(compute_flop(te.create_schedule(expressions(f, target, [])[1])))
        inputs, outputs, _ = expressed(f, target)
        chosen: dict[str, Any] = {n: cfg[n].value for n in KNOBS}
        return topi.schedule(outputs, target, **chosen), [*inputs, *outputs]

    template(op, kernel)


for _op in sorted(ANCHORS):
    _register(_op)
