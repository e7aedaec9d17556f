"""A loaded aipu.bin: its tensors and scalars, and how to run it."""

from __future__ import annotations

import itertools
import math
import threading
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import files
from compass_core.aipubin import AipuBin, KernelInfo, Param, read
from compass_core.aipubin.dtypes import BY_CODE, DType
from compass_core.aipubin.graphnote import GraphNote, NotedTensor, read_ends, read_note
from compass_core.aipubin.layout import Kind, StaticSection, SubSection
from compass_core.arrays import Array, NumpyDType
from compass_core.dataclass import dataclass
from compass_core.elf import elf64
from compass_core.elf.hostcode import TextBlob, parse_text_blob
from compass_core.errors import CompassError
from compass_core.files.pieces import Pieces
from compass_core.samples import has_samples
from compass_core.switches import TIMEOUT
from compass_runtime.calls import Caller
from compass_runtime.forks import renew_locks
from compass_runtime.job import Job, placed_subs
from compass_runtime.npu import Device, device_for, kept_origin, leave_device, target_of
from compass_runtime.plan import OVERREAD, TEXT_OVERREAD
from compass_runtime.quantisation import NOT_QUANTISED, Quantisation
from compass_runtime.sizes import resolve_shapes, resolve_values, spell

if TYPE_CHECKING:
    from compass_sim import RunResult


@dataclass(frozen=True)
class TensorInfo:
    """An input or output. `shape` is None while its size is not known; `in_out`: an output that the kernel also reads.

    `place` is the number of its section and the sub-section in it. `raw`: bytes (void), so arrays of any dtype fit.
    `quantisation`: which real numbers its integers stand for. `has_axes`: it is a graph's, whose layers tell its axes apart;
    the memory of a kernel's tensor may be seen in any shape.
    """

    name: str
    role: str
    index: int
    dtype: DType
    shape: tuple[int, ...] | None
    in_out: bool
    place: tuple[int, SubSection]
    raw: bool = False
    quantisation: Quantisation = NOT_QUANTISED
    has_axes: bool = False

    def elements_of(self, array: Array) -> tuple[int, ...]:
        """The shape of an array in elements of this tensor."""
        whole = self.raw or array.dtype != self.numpy_dtype
        return (array.nbytes // self.dtype.size,) if whole else array.shape

    @cached_property
    def numpy_dtype(self) -> NumpyDType:
        return numpy_dtype(self.dtype.name)

    def checked(self, array: Array, nbytes: int, any_dtype: bool = False) -> Array:
        """`array` when it has this tensor's dtype (unless any will do) and `nbytes` bytes; CompassError otherwise."""
        if not any_dtype and array.dtype != self.numpy_dtype and not self.raw:
            raise CompassError(
                f"{self.role} '{self.name}' is {self.dtype.name}, but the array is {array.dtype.name}",
                code="tensor-dtype",
                help=f"convert it: array.astype('{self.dtype.name}')",
            )
        if array.nbytes != nbytes:
            raise CompassError(
                f"{self.role} '{self.name}' takes {nbytes} bytes ({nbytes // self.dtype.size} elements), "
                f"but the array has {array.nbytes} ({spell(array.shape)})",
                code="tensor-size",
                help=ONE_BY_ONE if has_samples(array.shape, self.shape) else "",
            )
        if self.has_axes and array.ndim > 1 and _longer(array.shape) != _longer(self.shape or ()):
            raise CompassError(
                f"{self.role} '{self.name}' has the shape {spell(self.shape or ())}, but the array {spell(array.shape)}",
                code="tensor-shape",
                help=ONE_BY_ONE
                if has_samples(array.shape, self.shape)
                else "transpose it; array.reshape(-1), or a file of raw bytes, is taken as it lies in memory",
            )
        return array


@dataclass(frozen=True)
class JobSlot:
    """A tensor of a job that does not run on this process's device, and its shape there."""

    info: TensorInfo
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The bytes of its elements."""
        return math.prod(self.shape) * self.info.dtype.size


ONE_BY_ONE = (
    "a run takes one sample; compass-run, and in Python compassc.Model.load(FOLDER)(samples), run all, one by one"
)


def numpy_dtype(name: str) -> NumpyDType:
    """The NumPy dtype of a data type; bfloat16 comes from ml_dtypes."""
    import numpy as np

    if name == "bfloat16":
        from ml_dtypes import bfloat16

        made: NumpyDType = np.dtype(bfloat16)
        return made
    names = {"aligned_uint4": "uint8", "aligned_int4": "int8", "aligned_uint12": "uint16", "aligned_int12": "int16"}
    return np.dtype(names.get(name, name))


@dataclass(frozen=True)
class LoadedGraph:
    """The part of a program that its jobs share in device memory: code and constants.

    `statics` are the constants' sections with their addresses, `weights` the base of each BSS's constants.
    """

    device: Device
    text: int
    const_data: int
    weights: tuple[int, ...]
    statics: tuple[tuple[StaticSection, int], ...]
    owned: tuple[int, ...]

    def constant(self, reference: int) -> tuple[int, int]:
        """Address and size of the constant whose address goes to the parameter word at `reference`."""
        return next(
            (at, section.size)
            for section, at in self.statics
            if any(reference in sub.references for sub in section.subs)
        )

    def release(self) -> None:
        """Frees the memory."""
        for address in self.owned:
            self.device.allocator.release(address)


class Program:
    """An aipu.bin ready to run. `inputs`, `outputs` and `params` are its metadata, in order; `states` are outputs that are
    inputs of the next run (`compass_runtime.states` keeps them).

    `gap`: how far apart its buffers are in device memory, where that is checked; else 0. `debugged`: its device is made
    for a debugger to attach to. `trusted`: whoever loaded it trusts who made it, so that its C text may be compiled even
    on hosts that cannot confine the compiler, and debugged.
    """

    gap = 0
    debugged = False

    def __init__(self, content: AipuBin, where: str, trusted: bool = False, *, origin: object = None) -> None:
        """`origin`: what programs that may share a device have in common, see `npu.device_for`; None: nothing."""
        self.origin = object() if origin is None else origin
        self.content = content
        self.where = where
        self.trusted = trusted
        self.code: Any = self.read_code()
        self.kernel: KernelInfo | None = content.kernel
        ends = None if self.kernel else read_ends(content.graph_json)
        self.inputs = _tensors(content, Kind.INPUT, ends.inputs if ends else ())
        self.outputs = _tensors(content, Kind.OUTPUT, ends.outputs if ends else ())
        self.states = ends.states if ends and self._are_noted(ends) else ()
        self.params: tuple[Param, ...] = self.kernel.params if self.kernel else ()
        self.scalars = {p.name: (i, p.element) for i, p in enumerate(self.params) if p.role == "attr"}
        self._loaded: LoadedGraph | None = None
        self._unload: Callable[[], object] = _nothing
        self._lock = threading.Lock()
        renew_locks(self, "_lock")
        self._grid_ids = itertools.count(1)
        self._check_words()

    @property
    def target(self) -> str:
        return self.content.target

    @classmethod
    def load(cls, source: str | Path | bytes | Pieces, *, trusted: bool = False, where: str = "aipu.bin") -> Program:
        """Reads an aipu.bin from a path, or from the bytes of the file `where`; `trusted`: see the class. CompassError
        when it is not a program for this simulator."""
        by_name = isinstance(source, (str, Path))
        data = files.stored(Path(source), code="open-file-fail") if isinstance(source, (str, Path)) else source
        where = str(source) if by_name else where
        try:
            return cls(read(data), where, trusted, origin=kept_origin(data))
        except CompassError as error:
            raise CompassError(
                f"{where}: {error.message}", error.span, code=error.code, notes=error.notes, help=error.help
            ) from error

    def create_job(
        self,
        shapes: Mapping[str, Sequence[int]] | None = None,
        values: Mapping[str, float] | None = None,
        arrays: Mapping[str, tuple[int, ...]] | None = None,
    ) -> Job:
        """A job for certain sizes and scalars.

        `shapes` are the caller's wishes, `arrays` the shapes of the arrays it will pass; what neither says comes from
        the build or from the kernel's extents. CompassError naming the tensor or scalar that stays unknown.
        """
        resolved, scalars, room = self.resolve(shapes or {}, values or {}, arrays or {})
        return self.make_job(resolved, scalars, room=room)

    def make_job(
        self,
        shapes: Mapping[str, tuple[int, ...]],
        values: Mapping[str, float],
        nulls: Collection[str] = (),
        room: Mapping[str, int] | None = None,
    ) -> Job:
        """A job for sizes and scalars that are resolved, see `Job`."""
        return Job(self, shapes, values, nulls, room=room)

    def read_code(self) -> TextBlob | None:
        """The code of the host in `.text`; None for code that is not looked at."""
        return parse_text_blob(self.content.text)

    def resolve(
        self,
        shapes: Mapping[str, Sequence[int]],
        values: Mapping[str, float],
        arrays: Mapping[str, tuple[int, ...]],
        nulls: Collection[str] = (),
        may_be_large: bool = False,
    ) -> tuple[dict[str, tuple[int, ...]], dict[str, float], dict[str, int]]:
        """The shape of every tensor, the value of every scalar, and the elements there is to be memory for besides.

        See `create_job`. `may_be_large`: arrays may be larger than the build was told.
        """
        if self.kernel is None:
            return {info.name: info.shape or () for info in (*self.inputs, *self.outputs)}, {}, {}
        scalars = resolve_values(self.kernel, values)
        tecs = target_of(self.target).tecs
        checked = self.gap != 0
        found, room = resolve_shapes(self.kernel, arrays, shapes, scalars, tecs, nulls, checked, may_be_large)
        return found, scalars, room

    def call(self, args: Sequence[object], timeout: float | None = None) -> RunResult:
        """Runs with one argument per kernel parameter: an array (None for a null pointer) or a number.

        Outputs start from their arrays' content and are changed in place. Constants and scalars that were fixed at
        build may be given again; a constant's new content is used by this call alone. Of an array that is not
        C-contiguous the kernel sees the elements in one piece, and outputs go back element by element. Elements of
        another dtype of the same size are a warning, their bytes are taken as they are. Jobs are kept, so that calls
        with sizes seen before only copy and run; several threads may call. CompassError when an argument does not fit,
        and for everything that goes wrong in the kernel.
        """
        return self.caller.call(args, timeout)

    @cached_property
    def note(self) -> GraphNote | None:
        """The file's note on its graph: names, layers of each launch, places of tensors."""
        return None if self.kernel else read_note(self.content.graph_json)

    @cached_property
    def caller(self) -> Caller:
        """The object that handles calls."""
        return Caller(self)

    @cached_property
    def time_limit(self) -> float:
        """The time limit of a run, in seconds, when the caller gives none: what the switches said at the first run."""
        return TIMEOUT.get()

    @cached_property
    def is_accelerated(self) -> bool:
        """Whether a kernel may start the AIFF: the code has the name of the function by which they do."""
        names = None if self.code is None else elf64.section(self.code.elf, ".strtab")
        return names is None or b"__compass_aiff" in names

    def next_grid_id(self) -> int:
        """A number for a job's grid, in 16 bits, not 0."""
        return (next(self._grid_ids) - 1) % 0xFFFF + 1

    def graph(self) -> LoadedGraph:
        """Code and constants in device memory; loaded when first needed, and again after a fault ended the device."""
        with self._lock:
            if self._loaded is None or not self._loaded.device.alive:
                self._check_host()
                self._unload()
                self._loaded, self._unload = self._load_anew()
            return self._loaded

    def _load_anew(self) -> tuple[LoadedGraph, Callable[[], object]]:
        """Brings the graph to a device; the finalizer takes it away again."""
        token: object = object()
        loaded: list[LoadedGraph] = []
        if self.debugged:
            device = Device(target_of(self.target), debug=True)
        else:
            device = device_for(self.target, self.origin, token, self.gap != 0)
        unload = weakref.finalize(self, _take_away, token, device, loaded)
        try:
            loaded.append(load_graph(self.content, device, self.gap))
        except BaseException:
            unload()
            raise
        return loaded[0], unload

    def _check_host(self) -> None:
        """CompassError when the host code in `.text` is for another machine."""
        from compass_core.hostcc import host

        missing = host.missing_features(self.code.features)
        if self.code.triple != host.triple() or missing:
            lacks = f", which lacks {', '.join(missing)}" if missing else ""
            raise CompassError(
                f"'{self.where}' was compiled for {self.code.triple}; this machine is {host.triple()}{lacks}",
                code="other-host",
                help="build the kernel on this machine",
            )

    def _are_noted(self, ends: GraphNote) -> bool:
        """Whether inputs and outputs are those of the note, in shape, too."""
        infos = (*self.inputs, *self.outputs)
        return [(t.name, t.shape) for t in infos] == [(t.name, t.shape) for t in (*ends.inputs, *ends.outputs)]

    def _check_words(self) -> None:
        """The note `compassc` must describe the parameter block that is there."""
        if self.kernel is None:
            return
        size = self.content.subgraphs[0].params_size if self.content.subgraphs else 0
        if size != 4 * len(self.params):
            raise CompassError(
                f"note 'compassc' lists {len(self.params)} parameters, but the block has {size // 4} words",
                code="invalid-gbin",
            )


def _nothing() -> None:
    pass


def _take_away(token: object, device: Device, loaded: list[LoadedGraph]) -> None:
    """Frees the memory of a deleted program on its device, which others of its origin may still use."""
    for graph in loaded:
        graph.release()
    leave_device(device, token)


def load_graph(content: AipuBin, device: Device, gap: int = 0) -> LoadedGraph:
    """Copies code and constants to the device, `gap` bytes around each constant."""
    if content.extra_weights is not None:
        raise CompassError("constants in extra weight files are not supported by this runtime", code="invalid-gbin")
    owned: list[int] = []

    def place(size: int, extra: int) -> int:
        address = device.allocator.allocate(size + extra)
        owned.append(address)
        device.clear(address, size + extra)
        return address

    text = place(len(content.text), TEXT_OVERREAD)
    device.write(text, content.text)
    const_data = place(len(content.const_data), 0) if content.const_data else 0
    if const_data:
        device.write(const_data, content.const_data)
    weights, statics = [], []
    for bss in content.features.bss:
        bases: dict[bool, int] = {}
        kinds = [section.zero_copy for section in bss.statics]
        for zero_copy in (False, True):
            size, offsets = _constants(bss.statics, [i for i, kind in enumerate(kinds) if kind is zero_copy], gap)
            if offsets:
                base = bases[zero_copy] = place(size, OVERREAD)
                statics += [(bss.statics[i], base + at) for i, at in offsets.items()]
                for source, at, many in joined(bss.statics, offsets):
                    device.write(base + at, content.weights[source : source + many])
        weights.append(bases.get(False, 0))
    return LoadedGraph(device, text, const_data, tuple(weights), tuple(statics), tuple(owned))


def _constants(sections: Sequence[StaticSection], chosen: Sequence[int], gap: int) -> tuple[int, dict[int, int]]:
    """How many bytes the constants of one kind take, and where each section starts in them."""
    size, offsets = gap, {}
    for i in chosen:
        section = sections[i]
        offsets[i] = size = -(-size // section.align) * section.align
        size += section.size + gap
    return size, offsets


def joined(sections: Sequence[StaticSection], offsets: Mapping[int, int]) -> list[tuple[int, int, int]]:
    """Where constants are in the file, where in memory, and their bytes: those that follow each other in both are one."""
    found: list[tuple[int, int, int]] = []
    source = at = many = 0
    for i, offset in offsets.items():
        section = sections[i]
        if (section.src_offset, offset) == (source + many, at + many) and found:
            many += section.size
            found[-1] = source, at, many
        else:
            source, at, many = section.src_offset, offset, section.size
            found.append((source, at, many))
    return found


def _tensors(content: AipuBin, kind: Kind, noted: tuple[NotedTensor, ...]) -> tuple[TensorInfo, ...]:
    """The inputs or outputs in order, with names and shapes where the file knows them."""
    role = kind.name.lower()
    places = sorted(((i, sub) for i, sub in placed_subs(content) if sub.type == kind), key=lambda p: p[1].id)
    if content.kernel is None:
        return tuple(_noted(noted, sub, _dtype(sub), role, i) for i, sub in places)
    params = content.kernel.by_role(role)
    if len(params) != len(places):
        raise CompassError(
            f"note 'compassc' names {len(params)} {role}s, but the file has {len(places)}", code="invalid-gbin"
        )
    infos = []
    for param, (i, sub) in zip(params, places, strict=True):
        if param.nbytes is not None and param.nbytes != sub.size:
            raise CompassError(
                f"note 'compassc' gives '{param.name}' {param.nbytes} bytes, note 'fmlist' {sub.size}",
                code="invalid-gbin",
            )
        infos.append(
            TensorInfo(
                param.name,
                role,
                param.index,
                param.element,
                param.shape,
                param.read and role == "output",
                (i, sub),
                param.dtype == "void",
            )
        )
    return tuple(infos)


def _noted(note: tuple[NotedTensor, ...], sub: SubSection, dtype: DType, role: str, place: int) -> TensorInfo:
    """A tensor of a graph; a shape that does not fit its bytes is not believed. Without a note the scale is that of the
    sub-section, 0 where it has none."""
    noted = note[sub.id] if sub.id < len(note) else None
    scale = (noted.scale, noted.zero_point, noted.axis) if noted else (sub.scale or 1.0, sub.zero_point, None)
    name, shape = (noted.name, noted.shape) if noted else (f"{role}{sub.id}", (-1,))
    if math.prod(shape) * dtype.size != sub.size or min(shape, default=0) < 0:
        shape, scale = (sub.size // dtype.size,), scale if scale[2] is None else (1.0, 0, None)
    quantisation, has_axes = Quantisation(*scale), len(shape) > 1
    return TensorInfo(name, role, sub.id, dtype, shape, False, (place, sub), False, quantisation, has_axes)


def _longer(shape: Sequence[int]) -> list[int]:
    """The sizes that are not 1."""
    return [n for n in shape if n != 1]


def _dtype(sub: SubSection) -> DType:
    found = BY_CODE.get(sub.data_type)
    if found is None:
        raise CompassError(
            f"tensor {sub.id} has the data type {sub.data_type:#x}, which NumPy cannot hold", code="invalid-gbin"
        )
    return found
