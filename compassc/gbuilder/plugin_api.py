"""The API of graph builder plugins: the classes behind `AIPUBuilder.core`, `.plugin_loader` and `.logger`.

The modules exist only while `plugin_modules()` is active, so that an installed AIPUBuilder is never shadowed otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, IntEnum
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from compass_core.namedtuple import NamedTuple

if TYPE_CHECKING:
    from compass_core.files.pieces import Piece, Pieces
    from compassc.gbuilder.nodes import Node

T = TypeVar("T", bound=type)


class PluginTypeError(TypeError):
    """A plugin registers for a kind of tool that does not exist."""


class PluginType(IntEnum):
    """The tool a plugin is for."""

    Dataset = 0x110
    Metric = 0x120
    QConfig = 0x130
    Train = 0x140
    Parser = 0x200
    Builder = 0x314
    Checker = 0x315


DataLayout = Enum(
    "DataLayout",
    "NHWC NDHWC Flat NCHW NCHWC4 NCHWC8 NCHWC16 NCHWC32 NDCHWC16 NDCHWC32 NCDHWC16 NCDHWC32",
)


class OpType(NamedTuple):
    """The type of an operator; one object per name."""

    name: str

    def __str__(self) -> str:
        return self.name


_OP_TYPES: dict[str, OpType] = {}


def register_optype(name: str) -> OpType:
    """The operator type of that name, made if it is new."""
    return _OP_TYPES.setdefault(name, OpType(name))


class MemoryOffset:
    """Where a tensor lies: `relative_offset` bytes behind `base_offset`, which belongs to another tensor or is None."""

    def __init__(self, owner: Tensor) -> None:
        self.owner = owner
        self.base_offset: MemoryOffset | None = None
        self.relative_offset = 0

    def set_base_offset(self, base: MemoryOffset) -> None:
        self.base_offset = base

    def resolve(self) -> tuple[Tensor, int]:
        """The tensor that owns the memory, and the distance in bytes from its start."""
        offset, at, seen = self.relative_offset, self, {id(self)}
        while at.base_offset is not None:
            at = at.base_offset
            if id(at) in seen:
                raise ValueError("memory offsets refer to each other in a circle")
            seen.add(id(at))
            offset += at.relative_offset
        return at.owner, offset


class Tensor:
    """A tensor of the graph, or a view into one. A dim of -1 stands for a size that is not known at build time.

    `content` are the bytes of a constant, None for all others; `data` the same as an object of its own. `scale` and `zero_point` as the IR gives them: a quantised
    value q stands for (q + zero_point) / scale.
    """

    def __init__(self, base: Tensor | None = None) -> None:
        self.name: str = base.name if base else ""
        self.shape: list[int] = list(base.shape) if base else []
        self.dtype: Any = base.dtype if base else ""
        self.scale: Any = base.scale if base else 1.0
        self.zero_point: Any = base.zero_point if base else 0
        self.limits: tuple[float, float] | None = base.limits if base else None
        self.axis: int | None = base.axis if base else None
        self.content: Piece | Pieces | None = None
        self._offset = MemoryOffset(self)

    @property
    def data(self) -> bytes | None:
        if self.content is not None and not isinstance(self.content, bytes):
            self.content = bytes(self.content)
        return self.content

    @data.setter
    def data(self, data: bytes | None) -> None:
        self.content = data

    @property
    def is_constant(self) -> bool:
        return self.content is not None

    def memory_offset(self) -> MemoryOffset:
        return self._offset

    def __repr__(self) -> str:
        return f"Tensor({self.name}, {self.shape}, {self.dtype})"


class BuilderParams:
    """32-bit words: integers, or tensors standing for their addresses."""

    def __init__(self) -> None:
        self.words: list[int | Tensor] = []

    def append(self, value: int | Tensor) -> None:
        if isinstance(value, Tensor):
            self.words.append(value)
            return
        word = int(value)
        if not -(1 << 31) <= word < 1 << 32:
            raise ValueError(f"{word} does not fit 32 bits")
        self.words.append(word & 0xFFFFFFFF)

    def __len__(self) -> int:
        return len(self.words)


class SubgraphAttrs(dict[str, Any]):
    """What a plugin may set or use of the merged node: `attrs["keeping_layout"]` is `attrs.keeping_layout`."""

    keeping_layout: bool
    valid_input_layouts: list[list[object]]
    valid_output_layouts: list[list[object]]
    descriptorbase: Tensor
    private_buffers: list[Tensor]

    def __init__(self, descriptorbase: Tensor) -> None:
        super().__init__(
            keeping_layout=True,
            valid_input_layouts=[],
            valid_output_layouts=[],
            descriptorbase=descriptorbase,
            private_buffers=[],
        )
        self.__dict__ = self

    def add_private_buffer(self, nbytes: int) -> Tensor:
        """Device memory for this launch alone, as a tensor of bytes to hand to the kernel. Not part of the vendor's API."""
        buffer = Tensor()
        buffer.name = f"private buffer {len(self.private_buffers)}"
        buffer.shape, buffer.dtype = [nbytes], "uint8"
        self.private_buffers.append(buffer)
        return buffer


class SubgraphNode:
    """The merged node of a match: what becomes one kernel launch."""

    def __init__(
        self, inputs: list[Tensor], outputs: list[Tensor], constants: dict[str, Tensor], params: Mapping[str, object]
    ):
        self.inputs = inputs
        self.outputs = outputs
        self.constants = constants
        self.params = params
        descriptors = Tensor()
        descriptors.name = "descriptors"
        self.attrs = SubgraphAttrs(descriptors)


class BuilderOpPlugin:
    """The base of graph builder plugins; every method has the default a simple plugin wants."""

    target = ""

    def get_graph_pattern(self) -> tuple[list[tuple[str, OpType]], list[tuple[str, str]]]:
        """(nodes, edges): aliases with their operator types, and pairs of aliases that are connected."""
        return [], []

    def get_score(self) -> float:
        """The preference among plugins that match the same layers; the highest wins."""
        return 0

    def set_target(self, target: str) -> bool:
        self.target = target
        return True

    def check_params(self, nodes: list[Node]) -> bool:
        """Whether this plugin can take the matched layers."""
        return True

    def setup(self, sgnode: SubgraphNode, nodes: list[object]) -> bool:
        return True

    def generate_code_name(self, sgnode: SubgraphNode, nodes: list[object]) -> str:
        """The object file with the kernel, relative to the work folder or a library folder."""
        raise TypeError(f"{type(self).__name__} does not define generate_code_name")

    def generate_kernel(self, sgnode: SubgraphNode, nodes: list[Node]) -> str:
        """The kernel's name; empty: the name of the object file."""
        return ""

    def generate_descriptor(self, sgnode: SubgraphNode, nodes: Sequence[Node]) -> BuilderParams:
        return BuilderParams()

    def generate_params(self, sgnode: SubgraphNode, nodes: list[object]) -> BuilderParams:
        """The kernel's arguments, in order."""
        return BuilderParams()


class Registration(NamedTuple):
    """A class that a plugin file registered."""

    cls: type
    kind: PluginType
    version: str


def _log(level: str, message: object, *args: object) -> None:
    """A message of a plugin, to the standard logging of the name AIPUBuilder."""
    import logging

    getattr(logging.getLogger("AIPUBuilder"), level)(message, *args)


def _modules(registered: list[Registration]) -> dict[str, ModuleType]:
    """The three documented modules; registrations are appended to `registered`."""

    def register_plugin(kind: Any, version: float | str = 0) -> Callable[[T], T]:
        try:
            known = PluginType(kind)
        except ValueError:
            raise PluginTypeError(f"{kind!r} is no PluginType") from None

        def attach(cls: T) -> T:
            registered.append(Registration(cls, known, str(version)))
            return cls

        return attach

    content: dict[str, dict[str, object]] = {
        "AIPUBuilder": {"__path__": []},
        "AIPUBuilder.core": {
            "BuilderOpPlugin": BuilderOpPlugin,
            "BuilderParams": BuilderParams,
            "DataLayout": DataLayout,
            "Tensor": Tensor,
            "register_optype": register_optype,
        },
        "AIPUBuilder.plugin_loader": {
            "PluginType": PluginType,
            "PluginTypeError": PluginTypeError,
            "register_plugin": register_plugin,
        },
        "AIPUBuilder.logger": {
            level: partial(_log, name)
            for level, name in (
                ("DEBUG", "debug"),
                ("INFO", "info"),
                ("WARN", "warning"),
                ("WARNING", "warning"),
                ("ERROR", "error"),
                ("FATAL", "critical"),
            )
        },
    }
    modules = {}
    for name, attributes in content.items():
        modules[name] = ModuleType(name, "Graph builder plugin interface.")
        vars(modules[name]).update(attributes)
        parent, _, leaf = name.rpartition(".")
        if parent:
            setattr(modules[parent], leaf, modules[name])
    return modules


@contextmanager
def plugin_modules() -> Iterator[list[Registration]]:
    """While active, `AIPUBuilder` and its documented modules are ours. Yields what plugins register, in order."""
    registered: list[Registration] = []
    hidden = {name: sys.modules[name] for name in list(sys.modules) if name.split(".")[0] == "AIPUBuilder"}
    for name in hidden:
        del sys.modules[name]
    sys.modules.update(_modules(registered))
    try:
        yield registered
    finally:
        for name in [n for n in sys.modules if n.split(".")[0] == "AIPUBuilder"]:
            del sys.modules[name]
        sys.modules.update(hidden)
