"""What steps have said about one loop."""

from __future__ import annotations

from dataclasses import field

from compass_core.dataclass import dataclass
from compassc.ir.iter_vars import IterVar
from compassc.te.opaque import TensorIntrin

LOOPS = ("vectorize", "unroll", "parallel")
"""The annotations that a loop can have."""


@dataclass
class Annotation:
    """The annotation of one loop: `loop` one of LOOPS, the thread it is bound to, its pragmas with their values.

    `iter_type`, `bind_thread`, `tensor_intrin`, `pragma_keys`, `pragma_values`: the same under the names of the field.
    """

    loop: str = ""
    thread: IterVar | None = None
    intrin: TensorIntrin | None = None
    pragmas: dict[str, object] = field(default_factory=dict)

    def copied(self) -> Annotation:
        """One that says the same, of which each can be changed."""
        return Annotation(self.loop, self.thread, self.intrin, self.pragmas)

    bind_thread = property(lambda self: self.thread)
    tensor_intrin = property(lambda self: self.intrin)
    pragma_keys = property(lambda self: list(self.pragmas))
    pragma_values = property(lambda self: list(self.pragmas.values()))

    @property
    def iter_type(self) -> int:
        """What kind of axis the loop has become; that of axes as they are, where nothing was done to it."""
        if self.intrin is not None:
            return IterVar.Tensorized
        kinds = {"unroll": IterVar.Unrolled, "vectorize": IterVar.Vectorized, "parallel": IterVar.Parallelized}
        return kinds.get(self.loop, IterVar.DataPar if self.thread is None else IterVar.ThreadIndex)
