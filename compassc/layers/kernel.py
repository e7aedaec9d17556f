"""Kernels of layers that are made, as whoever calls them has them: with their arguments."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.graph import Tensor
from compassc.layers.arranged import Arranged

if TYPE_CHECKING:
    from compassc.ir.stmts import PrimFunc

Argument = Tensor | Array | Arranged | int | float
"""Of a kernel: a tensor of the graph, constant data, or a number."""


@dataclass(frozen=True)
class Kernel:
    """A finished kernel: its text, and the arguments in the order of its parameters.

    `make`: gives the IR of one that was made as such; its text means the same. The parser makes that of all others.
    `modules`: those whose functions and macros the text calls. `read`: gives the text with the line of Python that made
    each line.
    """

    text: str
    arguments: tuple[Argument, ...]
    make: Callable[[], PrimFunc] | None = field(default=None, compare=False)
    modules: tuple[str, ...] = field(default=(), compare=False)
    read: Callable[[], str] | None = field(default=None, compare=False)
    is_program: bool = True
    """Whether the text is a program in the DSL, and not that of the IR."""

    @cached_property
    def function(self) -> PrimFunc | None:
        """The IR of a kernel that was made as such."""
        return self.make() if self.make else None

    @property
    def listing(self) -> str:
        """The text for whoever wants to read it."""
        return self.read() if self.read else self.text

    def call(self, tensors: Mapping[str, Array]) -> list[Array | int | float]:
        """The arguments of a call, with arrays for its tensors by name."""
        return [
            tensors[a.name] if isinstance(a, Tensor) else a.array if isinstance(a, Arranged) else a
            for a in self.arguments
        ]

    @cached_property
    def name(self) -> str:
        """A name that identifies the kernel."""
        return "layer_" + hashlib.sha256(self.text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class CachedKernel:
    """What calls need of a kernel that another build made.

    `object_key`: of its object in the cache. `make`: makes the kernel itself, for whoever wants more of it.
    """

    name: str
    object_key: str
    arguments: tuple[Argument, ...]
    make: Callable[[], Kernel] = field(compare=False)

    @cached_property
    def whole(self) -> Kernel:
        """The kernel itself."""
        return self.make()

    @property
    def listing(self) -> str:
        """The text for whoever wants to read it."""
        return self.whole.listing
