"""The framework's schedules of operators by kind of target, `topi.cuda.schedule_reduce(outs)`: the default schedule here."""

from __future__ import annotations

import functools
from collections.abc import Callable

from compass_core.errors import UsageError

from .. import topi
from ..operators.implementations import implementations_for
from ..targets import Target
from ..te.schedule import Schedule
from ..te.tensor import Tensor
from . import modules

_PREFIX = "schedule_"


class _Family:
    """Schedules (`schedule_NAME(outs)`) for the current target, or where there is none for `kind`; and the operators, on hosts in
    packed forms where these are faster."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name == "schedule_injective_from_existing":
            return _from_existing
        if name == "default_schedule" or name.startswith(_PREFIX):
            return lambda outs, *_, **options: topi.schedule(outs, Target.current() or self.kind)
        for home in ("tvm.topi.nn", "tvm.topi", "tvm.topi.vision", "tvm.topi.image"):
            found = modules.offered(home, _OF_TARGETS.get(name, name))
            if callable(found) and not name.startswith("_"):
                return self._for_kind(found)
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(_unknown, name)

    def _for_kind(self, define: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(define)
        def called(*args: object, **options: object) -> object:
            with implementations_for(self.kind):
                return define(*args, **options)

        return called


def _unknown(name: str, *_args: object, **_options: object) -> object:
    """What programs name in tables of all kinds of targets, and call on machines that are not built for here."""
    raise UsageError(
        f"there is no operator or way to compute one '{name}' here",
        code="compat-name",
        help="use the operator of tvm.topi.nn",
    )


def _from_existing(sch: Schedule, out: Tensor) -> Schedule:
    """A schedule with the loops of an element-wise stage in vectors and on threads."""
    stage = sch[out]
    *around, last = stage.axis
    _, inner = stage.split(last, factor=16)
    stage.vectorize(inner)
    if around:
        outer = around[0]
        for axis in around[1:3]:
            outer = stage.fuse(outer, axis)
        stage.parallel(outer)
    return sch


_OF_TARGETS = {
    "dense_nopack": "dense",
    "dense_pack": "dense",
    "dense_cblas": "dense",
    "batch_matmul_cblas": "batch_matmul",
}
"""Ways to compute an operator that have names of their own."""
arm_cpu, bifrost, generic, hexagon, hls, intel_graphics, mali, rocm, x86 = (_Family("llvm") for _ in range(9))
adreno, cuda, gpu = (_Family("cuda") for _ in range(3))
