"""Plans of graphs that were built before, in the cache: the launches, with what calls of their kernels need, so that no kernel
is made.

How a graph is grouped, and what its kernels are, follows from the graph, the target, the switches and the toolchain alone, which
make the key. An argument that is a constant of a layer, or one in another order, is kept as a place in that constant.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, cast

import numpy as np

from compass_core import switches, targets
from compass_core.arrays import Array, content_of
from compass_core.files.cache import Cache, key_of
from compass_core.lazy import LazyModule
from compass_core.namedtuple import NamedTuple
from compassc import services
from compassc.graph import Layer, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.graph.launches import Launch, Launches
from compassc.layers.arranged import Arranged, Packing
from compassc.layers.choices import is_asked
from compassc.layers.kernel import Argument, CachedKernel, Kernel
from compassc.layers.kernel_cache import KernelCache, maker_identity

if TYPE_CHECKING:
    from compassc import pass_manager
    from compassc.layers.launches import plan_kernels
else:  # where a plan is known, neither is needed
    pass_manager, plan_kernels = (
        LazyModule("compassc.pass_manager"),
        LazyModule("compassc.layers.launches.plan_kernels"),
    )

ENTRY_KIND = "plan"
"""The kind of the entries in the cache."""
MOST_BYTES_KEPT = 1 << 22
"""Of the arrays of a plan, beside constants of layers; one that has more is not kept."""
_LENGTH = 8
"""Bytes of the length of an entry's text, which stands before it; arrays are behind it."""
_LARGE = 1 << 16
"""Bytes of a constant that is hashed beside others."""
_PLAIN = (bool, int, float, str, type(None))


_making = threading.Lock()


class _NotCacheable(Exception):
    """Something that has no form in the cache."""


class PlanCache:
    """The plans beside the objects of their kernels, which are made for `target`. `fuse`: layers join."""

    def __init__(self, objects: KernelCache, cache: Cache, target: str, fuse: bool) -> None:
        self._objects, self._cache, self._target, self._fuse = objects, cache, target, fuse

    def grouped(self, program: Launches, make: Callable[[Launches], Launches]) -> Launches:
        """What `make` gives for a program of single layers: taken from the cache, or made and put there."""
        if self._depends_on_more(program):
            return make(program)
        try:
            key = key_of(*self._about(), *_said_of(program), *_hashes_of(program))
        except _NotCacheable:
            return make(program)
        return self._get(key, program) or self._put(key, make(program))

    def _depends_on_more(self, program: Launches) -> bool:
        """Whether launches follow from more than a key tells: from records of the tuner, from who watches passes or asks for
        choices, from parts of a graph that are graphs; or layers are not known by their names."""
        names = [x.layers[0].name for x in program.launches]
        if len(set(names)) < len(names):
            return True
        may_be_watched = "compassc.pass_manager" in sys.modules
        is_watched = is_asked() or (may_be_watched and not pass_manager.pipelines_are_plain())
        return is_watched or bool(program.graph.subgraphs) or bool(services.are_others_on_record())

    def _about(self) -> list[str]:
        """All that kernels may depend on beside the graph."""
        settings = [f"{switch.name}={setting.text}" for switch, setting in switches.settings()]
        return ["1", maker_identity(), repr(targets.load(self._target)), str(self._fuse), *settings]

    def _get(self, key: str, program: Launches) -> Launches | None:
        """The program with the launches that were put; None where there are none."""
        path = self._cache.get(ENTRY_KIND, key)
        if path is None:
            return None
        content = memoryview(path.read_bytes())
        end = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
        single = {x.layers[0].name: x for x in program.launches}
        arrays, launches = content[end:], []
        for names, ends, *kernel in json.loads(bytes(content[_LENGTH:end])):
            launch = replace(single[names[0]], layers=tuple(single[name].layers[0] for name in names), ends=ends)
            if kernel:
                launch = replace(launch, kernel=_cached_kernel(launch, self._target, (*kernel,), arrays))
            launches.append(launch)
        return replace(program, launches=tuple(launches))

    def _put(self, key: str, made: Launches) -> Launches:
        """Keeps launches, unless one of them has no kernel, or one that is not to be kept; gives them."""
        arrays = bytearray()
        with suppress(_NotCacheable):
            text = json.dumps([self._row(launch, arrays) for launch in made.launches]).encode()
            self._cache.put(ENTRY_KIND, key, len(text).to_bytes(_LENGTH, "little") + text + arrays)
        return made

    def _row(self, launch: Launch, arrays: bytearray) -> list[object]:
        names = [layer.name for layer in launch.layers]
        if launch.plugin:
            return [names, launch.ends]
        kernel = launch.kernel
        if not isinstance(kernel, Kernel):
            raise _NotCacheable
        arguments = [_argument(value, launch, arrays) for value in kernel.arguments]
        return [names, launch.ends, kernel.name, self._objects.key_of_object(kernel), arguments]


# -------------------------------------------------------------------------------------------------------------- the key


def _said_of(program: Launches) -> Iterator[str]:
    """All that plans may depend on, but the values of constants: of layers everything but the line of the text that they
    stand in."""
    yield repr([t.name for t in program.graph.outputs])
    yield repr(dict(program.owners))
    for launch in program.launches:
        yield launch.plugin
        for layer in launch.layers:
            told = [f for f in fields(Layer) if f.name not in ("constants", "span")]
            yield str([_said(getattr(layer, f.name)) for f in told])
            yield str([(name, array.dtype.name, array.shape) for name, array in layer.constants.items()])


def _hashes_of(program: Launches) -> list[str]:
    """Hashes of the constants, whose sizes tell which are in which. Large ones are hashed on all processors."""
    contents = [content_of(a) for x in program.launches for layer in x.layers for a in layer.constants.values()]
    large = [content for content in contents if len(content) >= _LARGE]
    small = key_of(*(content for content in contents if len(content) < _LARGE))
    if not large:
        return [small]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [small, *pool.map(key_of, large)]


def _said(value: object) -> str:
    """A value of a layer in words that no other one has. _NotCacheable for an object of which that is not known."""
    if isinstance(value, _PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, Tensor):
        return str([_said(getattr(value, f.name)) for f in fields(Tensor)])
    if isinstance(value, dict):
        return str([(_said(key), _said(held)) for key, held in value.items()])
    if isinstance(value, (list, tuple)):
        return str([type(value).__name__, *map(_said, value)])
    raise _NotCacheable


# ------------------------------------------------------------------------------------------------------------ arguments


class _Place(NamedTuple):
    """Where the elements of an array lie: in a constant of the layer of a number, or where there is none, among the arrays
    that are kept; `at`: from which byte on."""

    dtype: str
    shape: tuple[int, ...]
    at: int
    layer: int = -1
    constant: str = ""


def _argument(value: Argument, launch: Launch, arrays: bytearray) -> object:
    """An argument of a kernel as JSON has it: a number, or a list. What is kept of it goes to `arrays`."""
    if type(value) in (int, float):
        return value
    if isinstance(value, Tensor):
        return [value.name]
    if isinstance(value, Arranged):
        return [_placed(value.planes, launch, arrays), value.packing]
    if isinstance(value, np.ndarray):
        return [_placed(value, launch, arrays), None]
    raise _NotCacheable


def _placed(array: Array, launch: Launch, arrays: bytearray) -> _Place:
    kind = array.dtype.name
    if numpy_dtype(kind) != array.dtype:
        raise _NotCacheable
    for number, layer in enumerate(launch.layers):
        for name, constant in layer.constants.items():
            at = _address(array) - _address(constant)
            whole = array.flags.c_contiguous and constant.flags.c_contiguous
            if whole and array.nbytes and 0 <= at <= constant.nbytes - array.nbytes:
                return _Place(kind, array.shape, at, number, name)
    arrays += bytes(-len(arrays) % 8)
    at = len(arrays)
    if at + array.nbytes > MOST_BYTES_KEPT:
        raise _NotCacheable
    arrays += content_of(array)
    return _Place(kind, array.shape, at)


def _address(array: Array) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _cached_kernel(launch: Launch, target: str, row: tuple[str, str, list[object]], arrays: memoryview) -> CachedKernel:
    tensors = {t.name: t for layer in launch.layers for t in (*layer.inputs, *layer.outputs)}
    name, object_key, arguments = row
    known = tuple(_known(one, launch.layers, tensors, arrays) for one in arguments)
    return CachedKernel(name, object_key, known, partial(_made_again, launch, target, name))


def _known(given: object, layers: Sequence[Layer], tensors: Mapping[str, Tensor], arrays: memoryview) -> Argument:
    """The argument that `_argument` told of."""
    if not isinstance(given, list):
        return cast("int | float", given)
    if len(given) == 1:
        return tensors[given[0]]
    place, packing = given
    kind, shape, at, number, constant = place
    source = arrays if number < 0 else content_of(layers[number].constants[constant])
    array = np.frombuffer(source, numpy_dtype(kind), prod(shape), at).reshape(shape)
    if packing is None:
        return array
    lanes, groups, own, window, *rest = packing
    return Arranged(array, Packing(lanes, groups, own, tuple(window), *rest))


def _made_again(launch: Launch, target: str, name: str) -> Kernel:
    """The kernel of a launch, which is the one of that name: one at a time, while several threads may ask."""
    with _making:
        made = plan_kernels.planned(launch, target).kernel
    assert isinstance(made, Kernel) and made.name == name, f"the kernel of '{launch.layers[0].name}' is not {name}"
    return made
