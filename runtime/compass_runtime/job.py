"""A job: device memory laid out, filled and patched for one program with certain sizes, to be run many times."""

from __future__ import annotations

import math
import threading
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from compass_core.aipubin import AipuBin, tensor_memory
from compass_core.aipubin.device import is_x3
from compass_core.aipubin.dtypes import scalar_bits
from compass_core.aipubin.fields import replace
from compass_core.aipubin.layout import Area, Kind, Subgraph, SubSection
from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_runtime.chain import Places, tcb_count, x2_chain, x3_chain
from compass_runtime.faults import locate_fault
from compass_runtime.forks import renew_locks
from compass_runtime.npu import ENDED
from compass_runtime.patch import patch_references, remap_words
from compass_runtime.plan import OVERREAD, apart, job_plan, with_places

if TYPE_CHECKING:
    import numpy as np

    from compass_core.aipubin.graphnote import NotedTensor
    from compass_runtime.memory import PageAllocator
    from compass_runtime.npu import Device
    from compass_runtime.program import Program, TensorInfo
    from compass_sim import RunResult


After = Callable[[int], object]
"""Called with the number of sub-graphs that are done."""
MAX_RETRIES = 8
"""How often a job begins again because another job's fault ended the device."""


@dataclass(frozen=True)
class Buffer:
    """Device memory that a kernel may use. `slot` where it is an input or output of the program."""

    name: str
    address: int
    nbytes: int
    slot: Slot | None = None


class Residency:
    """The presence of a job on a device: its tensors there, and those whose content is lost when the worker ends.

    `held`: tensors have content that is nowhere else, so the device is not ended to make room, and when it ends their
    memory is kept until they are released. `lost`: tensors whose content an earlier device took with it.
    """

    __slots__ = ("__weakref__", "device", "held", "lost", "slots")

    def __init__(self, device: Device, lost: set[str]) -> None:
        self.device = device
        self.held = False
        self.lost = lost
        self.slots: list[Slot] = []
        device.residencies.add(self)

    def hold(self) -> None:
        """Hold the content of all tensors."""
        self.held = True
        for slot in self.slots:
            slot.map()

    def release(self, forget: bool = False) -> None:
        """Release the content of the tensors. `forget`: as if none had been filled."""
        self.held = False
        if forget:
            for slot in self.slots:
                slot.filled = False
        if self.device.ended:
            self.unmap()

    def invalidate(self) -> None:
        """Mark the content of the tensors as lost."""
        if self.held:
            self.lost.update(slot.info.name for slot in self.slots if slot.filled)
        self.release(forget=True)

    def unmap(self) -> None:
        """Drop the tensors' views of device memory."""
        for slot in self.slots:
            slot.view = None

    def leave(self) -> None:
        """Remove the job from the device."""
        self.held = False
        self.unmap()
        self.slots.clear()
        self.device.residencies.discard(self)


@dataclass(eq=False)
class Slot:
    """A tensor of a job: what it is, its shape and where it lies in device memory.

    `filled`: it was given content.
    """

    __slots__ = ("address", "filled", "info", "nbytes", "residency", "shape", "view")
    info: TensorInfo
    shape: tuple[int, ...]
    residency: Residency
    address: int
    nbytes: int

    def __post_init__(self) -> None:
        self.filled = False
        self.view: np.ndarray[tuple[int, ...], np.dtype[np.uint8]] | None = None
        self.residency.slots.append(self)

    @property
    def memory(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        """The tensor's bytes. CompassError when the device has ended and they are not held."""
        return self.map() if self.view is None else self.view

    def map(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        """The tensor's bytes as a view that is valid while the device exists or they are held."""
        if self.view is None:
            self.view = self.residency.device.memory[self.address : self.address + self.nbytes]
        return self.view

    def fill(self) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
        """The tensor's bytes, to be written."""
        memory = self.memory
        self.filled = self.residency.held = True
        self.residency.lost.discard(self.info.name)
        return memory

    def load(self, array: Array) -> None:
        """Copies an array of the right dtype and size into device memory."""
        memory = self.view if self.filled and self.view is not None else self.fill()
        whole = array if array.flags.c_contiguous else array.copy()
        memory[:] = whole.reshape(-1).view(memory.dtype)

    def store(self, array: Array) -> None:
        """Copies the tensor's content into an array of the right dtype and size."""
        array[...] = self.memory.view(array.dtype).reshape(array.shape)

    def fetch(self) -> Array:
        """A new array with the tensor's content."""
        return self.memory.copy().view(self.info.numpy_dtype).reshape(self.shape)


class Job:
    """One program with all sizes and scalars known, ready to run. Close it, or let it go, to free its memory.

    After a fault the device is gone; the job then places itself on a new one when it is used again.
    """

    def __init__(
        self,
        program: Program,
        shapes: Mapping[str, tuple[int, ...]],
        values: Mapping[str, float],
        nulls: Collection[str] = (),
        room: Mapping[str, int] | None = None,
    ) -> None:
        """`nulls`: tensors whose pointers are null; `room`: elements there is memory for, of tensors that have less."""
        self.program = program
        self._nulls = nulls
        self.lock = threading.Lock()
        self.refill: Callable[[], None] | None = None
        self._shapes = dict(shapes)
        self._room = dict(room or {})
        self._values = dict(values)
        self._own_constants: dict[str, bytes] = {}
        self._rewritten: dict[int, int] = {}
        self._lost: set[str] = set()
        renew_locks(self, "lock")
        self._place()

    def _place(self) -> None:
        """Places the job on a device that is there; another job's fault may end it at any time."""
        for left in reversed(range(MAX_RETRIES)):
            try:
                self._place_once()
                return
            except CompassError as error:
                if error.code != ENDED or not left:
                    raise

    def _place_once(self) -> None:
        """Allocates the job's memory on the program's device, and fills it."""
        program, content = self.program, self.program.content
        tensor_memory.check(content, program.where, program.trusted)
        self._graph = program.graph()
        self.device: Device = self._graph.device
        infos = [*program.inputs, *program.outputs]
        nbytes = {info.name: math.prod(self._shapes[info.name]) * info.dtype.size for info in infos}
        rooms = {info.name: max(nbytes[info.name], self._room.get(info.name, 0) * info.dtype.size) for info in infos}
        sizes = section_sizes(content, infos, rooms)
        planned = job_plan(content, sizes, self.device.target.tecs, program.gap)
        self._base = self.device.allocator.allocate(planned.size)
        self._owned = [self._base]
        self.residency = Residency(self.device, self._lost)
        self._release = weakref.finalize(self, _release_all, self.device.allocator, self._owned, self.residency)
        self._plan = with_places(planned, self._base, self._places(sizes))
        self._chain_at, self._chain = self._fill(content)
        self._fresh = True
        self.slots = {info.name: self._slot(info, nbytes[info.name]) for info in infos}
        self.inputs = [self.slots[info.name] for info in program.inputs]
        self.outputs = [self.slots[info.name] for info in program.outputs]
        for name, value in self._values.items():
            position, dtype = program.scalars[name]
            self._write_word(position, scalar_bits(dtype, value))
        for position, param in enumerate(program.params):
            if param.name in self._nulls:
                self._write_word(position, 0)
        self._constants: dict[str, tuple[int, int]] = {}
        for offset, value in self._rewritten.items():
            self._rewrite(offset, value)
        for name, own in self._own_constants.items():
            self._place_constant(name, own)

    def _places(self, sizes: Sequence[int]) -> dict[int, int]:
        """Device memory for sections that are allocated separately."""
        found = {}
        for i in apart(sizes, self.program.gap):
            found[i] = self.device.allocator.allocate(sizes[i] + OVERREAD)
            self._owned.append(found[i])
        for i, address in found.items():  # once there is room for all of them, since it takes a while
            self.device.clear(address, sizes[i])
        return found

    @property
    def held(self) -> bool:
        """Whether the content of its tensors is there, also when the device has ended since."""
        return self.residency.held

    def hold(self) -> None:
        """Keeps the tensors' content until the job is closed."""
        self.revive()
        self.residency.hold()

    def close(self) -> None:
        """Frees the job's device memory; the job must not run again."""
        self._release()

    def revive(self) -> bool:
        """Makes the job runnable again when its device has ended; whether that was so. What was loaded is lost then."""
        if self.device.alive:
            return False
        self.residency.invalidate()
        self._release()
        self._place()
        return True

    @property
    def values(self) -> Mapping[str, float]:
        """The scalars as they are set now."""
        return self._values

    def set_values(self, values: Mapping[str, float]) -> None:
        """Sets run-time scalars, by name."""
        for name, value in values.items():
            if self._values.get(name) != value:
                position, dtype = self.program.scalars[name]
                self._write_word(position, scalar_bits(dtype, value))
                self._values[name] = value

    def set_constant(self, name: str, array: Array) -> None:
        """Gives a constant another content, for this job alone. CompassError when the size differs."""
        self._place_constant(name, array.tobytes())

    def _place_constant(self, name: str, content: bytes) -> None:
        if name not in self._constants:
            position = next(i for i, param in enumerate(self.program.params) if param.name == name)
            _, size = self._graph.constant(self.program.content.subgraphs[0].params_offset + 4 * position)
            at = self.device.allocator.allocate(size + OVERREAD)
            self._owned.append(at)
            self._constants[name] = at, size
            self._write_word(position, at)
        at, size = self._constants[name]
        if len(content) != size:
            raise CompassError(
                f"constant '{name}' was built with {size} bytes, but the array has {len(content)}",
                code="tensor-size",
                help="build the kernel again with this constant",
            )
        self.device.write(at, content)
        self._own_constants[name] = content

    def buffers(self) -> list[Buffer]:
        """All device memory that the kernels of this job may use, by address."""
        content, base, plan = self.program.content, self._base, self._plan
        found = [
            Buffer("parameters", base + plan.offsets["params"], len(content.params)),
            Buffer("descriptors", base + plan.offsets["desc"], len(content.desc)),
        ]
        sections = set()
        for slot in self.slots.values():
            section, sub = slot.info.place
            sections.add(section)
            if slot.info.name not in self._nulls:
                found.append(Buffer(slot.info.name, base + plan.reuses[section] + sub.offset, slot.nbytes, slot))
        first = content.subgraphs[0].params_offset if content.subgraphs else 0
        names = {first + 4 * i: param.name for i, param in enumerate(self.program.params)}
        for static, at in self._graph.statics:
            name = next((names[r] for sub in static.subs for r in sub.references if r in names), "constant")
            found.append(Buffer(name, *self._constants.get(name, (at, static.size))))
        reuses = [section for bss in content.features.bss for section in bss.reuses]
        found += [
            Buffer("intermediate tensor", base + plan.reuses[i], section.size)
            for i, section in enumerate(reuses)
            if i not in sections
        ]
        for subgraph, offsets in zip(content.subgraphs, plan.private_buffers, strict=True):
            found += [
                Buffer("workspace", base + at, section.size)
                for section, at in zip(subgraph.private_buffers, offsets, strict=True)
            ]
        return sorted(found, key=lambda buffer: buffer.address)

    def rewrite_parameter(self, offset: int, value: int) -> None:
        """Replaces the word at byte `offset` of the parameter blocks. CompassError when there is no such word."""
        if offset % 4 or not 0 <= offset < len(self.program.content.params):
            raise CompassError(f"the parameter blocks have no word at {offset:#x}", code="invalid-size")
        self._rewrite(offset, value)
        self._rewritten[offset] = value

    def _rewrite(self, offset: int, value: int) -> None:
        word = (value & 0xFFFFFFFF).to_bytes(4, "little")
        self.device.write(self._base + self._plan.offsets["params"] + offset, word)

    def _write_word(self, position: int, word: int) -> None:
        """Writes the parameter block's word of the parameter at `position`."""
        block = self._base + self._plan.offsets["params"] + self.program.content.subgraphs[0].params_offset
        self.device.write(block + 4 * position, (word & 0xFFFFFFFF).to_bytes(4, "little"))

    def run(
        self,
        inputs: Mapping[str, Array] | Sequence[Array] = (),
        timeout: float | None = None,
        initial: Mapping[str, Array] | None = None,
        seed: int = 0,
        record: bool = False,
        after: After | None = None,
        singly: bool = False,
    ) -> dict[str, Array]:
        """Runs once and gives the outputs by name.

        `inputs` by name or in parameter order; `initial` is the content that outputs have before the run, zeros where
        nothing is given. For `after` and `singly` see `execute`. CompassError for wrong arrays and for everything that
        goes wrong in the kernel.
        """
        named = inputs if isinstance(inputs, Mapping) else self._by_position(inputs)
        with self.lock:
            self.revive()
            self.load(named, initial or {})
            try:
                self.result = self.execute(timeout, seed, record, after, singly)
                return {slot.info.name: slot.fetch() for slot in self.outputs}
            finally:
                self.residency.release(forget=True)

    def load(self, named: Mapping[str, Array], initial: Mapping[str, Array]) -> None:
        """Copies inputs, and what outputs hold before the run, to the device; see `run`."""
        for slot in self.inputs:
            if slot.info.name not in named:
                raise CompassError(f"the input '{slot.info.name}' is missing", code="no-input")
            slot.load(slot.info.checked(named[slot.info.name], slot.nbytes))
        for slot in self.outputs:
            array = initial.get(slot.info.name)
            if array is None:
                slot.fill()[:] = 0
            else:
                slot.load(slot.info.checked(array, slot.nbytes))

    def execute(
        self,
        timeout: float | None = None,
        seed: int = 0,
        record: bool = False,
        after: After | None = None,
        singly: bool = False,
    ) -> RunResult:
        """Runs on what device memory holds now; no copies. A program without sub-graphs does nothing.

        `seed`: one TEC at a time, in the order it draws; 0: side by side. `record`: keep what the TECs do. `after` is
        called with the number of sub-graphs that are done, from time to time; with `singly` after each one, and none
        begins before it returns. A recorded run calls it at the end.
        """
        graphs = self.program.content.subgraphs
        if not graphs:
            from compass_sim import RunResult

            return RunResult(0.0, "")
        if self._lost:
            raise CompassError(
                f"what was loaded into {spell_names(self._lost)} went when a fault ended the device, or "
                "the process forked",
                code="content-lost",
                help="load it again",
            )
        limit = self.program.time_limit if timeout is None else timeout
        try:
            if after is not None and len(graphs) > 1 and not record:
                return self._execute_parts(limit, seed, after, singly)
            if not self._fresh:
                self.device.write(self._chain_at, self._chain)
            self._fresh = False
            accelerated = self.program.is_accelerated
            result = self.device.dispatch(self._chain_at, self._plan.tcbs, limit, seed, record, accelerated)
            if after is not None:
                after(len(graphs))
            return result
        except CompassError as error:
            if not self.device.alive:
                self.residency.invalidate()
            locate_fault(error, self.program.code.elf)
            raise

    def _execute_parts(self, limit: float, seed: int, after: After, singly: bool) -> RunResult:
        """Runs the sub-graphs as several chains, one after another, all within `limit` seconds."""
        from compass_sim import RunResult

        content, tecs = self.program.content, self.device.target.tecs
        until = time.monotonic() + limit
        seconds, printed = 0.0, ""
        for first, end in _parts(content, singly):
            part = content.subgraphs[first:end]
            chain = self._make_chain(content, self._starts, first, end)
            self._fresh = False  # another run writes the whole chain again
            self.device.write(self._chain_at, chain)
            blocks = tcb_count(part, tecs, content.cores, is_x3(content.target))
            left, accelerated = max(until - time.monotonic(), 0.0), self.program.is_accelerated
            result = self.device.dispatch(self._chain_at, blocks, left, seed, accelerated=accelerated)
            seconds, printed = seconds + result.seconds, printed + result.printf
            after(end)
        return RunResult(seconds, printed)

    def content_of(self, tensor: NotedTensor) -> Array:
        """A copy of the content of a tensor of the graph (`program.note`). CompassError when it has none in memory."""
        sizes = [section.size for bss in self.program.content.features.bss for section in bss.reuses]
        at, size = tensor.section, tensor.nbytes
        if at is None or at >= len(sizes) or min(tensor.shape, default=0) < 0 or tensor.offset + size > sizes[at]:
            raise CompassError(f"the tensor '{tensor.name}' does not lie in the program's memory", code="invalid-gbin")
        start = self._base + self._plan.reuses[at] + tensor.offset
        from compass_runtime.program import numpy_dtype

        return self.device.memory[start : start + size].copy().view(numpy_dtype(tensor.dtype)).reshape(tensor.shape)

    def _by_position(self, arrays: Sequence[Array]) -> dict[str, Array]:
        if len(arrays) != len(self.inputs):
            names = ", ".join(slot.info.name for slot in self.inputs)
            raise CompassError(
                f"{len(arrays)} inputs for a kernel with {len(self.inputs)} ({names})", code="input-count"
            )
        return {slot.info.name: array for slot, array in zip(self.inputs, arrays, strict=True)}

    def _slot(self, info: TensorInfo, nbytes: int) -> Slot:
        section, sub = info.place
        address = self._base + self._plan.reuses[section] + sub.offset
        return Slot(info, self._shapes[info.name], self.residency, address, nbytes)

    def _fill(self, content: AipuBin) -> tuple[int, bytes]:
        """Fills the job's memory; gives address and bytes of the control block chain."""
        base, plan, graph, device = self._base, self._plan, self._graph, self.device
        device.clear(base, plan.offsets["stack"])  # stacks and private data, at the end, start with anything
        starts = {name: base + offset for name, offset in plan.offsets.items()}
        params, desc = bytearray(content.params), bytearray(content.desc)
        reuses = [section for bss in content.features.bss for section in bss.reuses]
        patch_references(params, desc, zip(reuses, (base + at for at in plan.reuses), strict=True))
        patch_references(params, desc, graph.statics)
        private = [buffer for subgraph in content.subgraphs for buffer in subgraph.private_buffers]
        places = [base + at for offsets in plan.private_buffers for at in offsets]
        patch_references(params, desc, zip(private, places, strict=True))
        device.write(starts["params"], params)
        device.write(starts["desc"], desc)
        if content.global_params:
            device.write(starts["model_param"], _first_words(content))
        areas = {Area.PARAMS: starts["params"], Area.DESC: starts["desc"], Area.TEXT: graph.text}
        for address, word in remap_words(content.remap, areas):
            device.write(address, word)
        self._starts = starts
        chain = self._make_chain(content, starts, 0, len(content.subgraphs))
        device.write(starts["tcbs"], chain)
        return starts["tcbs"], chain

    def _make_chain(self, content: AipuBin, starts: Mapping[str, int], first: int, end: int) -> bytes:
        """The control blocks of the sub-graphs from `first` to before `end`; those before are done."""
        base, plan, graph = self._base, self._plan, self._graph
        subgraphs = _without_those_before(content.subgraphs[first:end], first) if first else content.subgraphs[:end]
        places = Places(
            tcbs=starts["tcbs"],
            text=graph.text,
            params=starts["params"],
            const_data=graph.const_data,
            global_param=starts["model_param"] if content.global_params else 0,
            profiler=next(
                (base + plan.reuses[i] + sub.offset for i, sub in placed_subs(content) if sub.type == Kind.PROFILER), 0
            ),
            weights=graph.weights,
            printf=tuple(base + at for at in plan.printf[first:end]),
            stacks=tuple(base + at for at in plan.stacks[first:end]),
            private_data=tuple(base + at for at in plan.private_data[first:end]),
            stack_bytes=plan.stack_bytes,
            private_bytes=plan.private_bytes[first:end],
        )
        if is_x3(content.target):
            return x3_chain(subgraphs, places, self.device.target.tecs, self.program.next_grid_id())
        return x2_chain(subgraphs, places, self.device.target.tecs, content.cores)


def _parts(content: AipuBin, singly: bool) -> list[tuple[int, int]]:
    """Ranges of sub-graphs that lose nothing when they run one after another: a device of one core does that anyway, on
    others those begin a part that wait for all before them. `singly`: each one."""
    graphs = content.subgraphs
    alone = singly or (content.cores == 1 and not is_x3(content.target))
    starts = [i for i, graph in enumerate(graphs) if not i or alone or graph.precursors is None]
    return list(zip(starts, [*starts[1:], len(graphs)], strict=True))


def _without_those_before(graphs: Sequence[Subgraph], first: int) -> tuple[Subgraph, ...]:
    """Sub-graphs as the only ones of a chain: what they wait for is counted from `first`, and what is done left out."""
    return tuple(
        graph
        if graph.precursors is None
        else replace(graph, precursors=tuple(p - first for p in graph.precursors if p >= first))
        for graph in graphs
    )


def spell_names(names: set[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _release_all(allocator: PageAllocator, addresses: list[int], residency: Residency) -> None:
    residency.leave()
    for address in addresses:
        allocator.release(address)


def placed_subs(content: AipuBin) -> list[tuple[int, SubSection]]:
    """Every sub-section of the reuse sections, with the section's number counted through all BSS."""
    reuses = [section for bss in content.features.bss for section in bss.reuses]
    return [(i, sub) for i, section in enumerate(reuses) for sub in section.subs]


def section_sizes(content: AipuBin, infos: Sequence[TensorInfo], nbytes: Mapping[str, int]) -> list[int]:
    """The sizes of the reuse sections when the tensors have `nbytes`: dynamic tensors need more than the file says."""
    sizes = [section.size for bss in content.features.bss for section in bss.reuses]
    for info in infos:
        section, sub = info.place
        sizes[section] = max(sizes[section], sub.offset + nbytes[info.name])
    return sizes


def _first_words(content: AipuBin) -> bytes:
    """The part of note `globalparam` that the device sees from the start."""
    shared = content.global_params
    return (
        b""
        if shared is None
        else shared.input_shape_offset.to_bytes(4, "little") + shared.num_params.to_bytes(4, "little")
    )
