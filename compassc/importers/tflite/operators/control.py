"""Control flow that is known at import, both branches of what is not, and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compass_core.arrays import Array
from compassc.importers.onnx.operators.control import MOST_STEPS
from compassc.importers.onnx.operators.elementwise import combined
from compassc.importers.onnx.operators.quantised import Quantised, marked, real_numbers
from compassc.importers.tflite.declare import Handle, Item, as_they_are, operator
from compassc.importers.tflite.variables import Known, Variable, handle_of
from compassc.importers.values import NotConstant, Refused, Value

if TYPE_CHECKING:
    from compassc.importers.tflite.convert import Conversion

as_they_are("IF", "WHILE", "CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE")


def _array(b: Conversion, item: Item, what: str) -> Array:
    """The content of an item. NotConstant when it is only known at run time."""
    value = b.real(item)
    if value is None:
        raise Refused(f"its {what} is missing")
    found = b.computed(value) if value.array is None and _is_computed(b, value) else value
    if found.array is None:
        assert found.tensor is not None
        raise NotConstant(f"its {what} is only known at run time", [found.tensor.name])
    return found.array


def _is_computed(b: Conversion, value: Value) -> bool:
    """Whether a value depends on constants only."""
    waiting, seen = [value.tensor], set()
    while waiting:
        tensor = waiting.pop()
        if tensor is None or tensor.name in seen:
            continue
        seen.add(tensor.name)
        if b.producer(tensor).type == "Input":
            return False
        waiting += b.producer(tensor).inputs
    return True


@operator("IF", partly="of a computed condition both branches are computed")
def branch(
    b: Conversion, condition: Item, *given: Item, then_subgraph_index: int = 0, else_subgraph_index: int = 0
) -> list[Item]:
    """The branch of a known condition. Of a computed one both are computed, and the results chosen from."""
    numbers = then_subgraph_index, else_subgraph_index
    try:
        known = bool(_array(b, condition, "condition").reshape(-1)[0])
    except NotConstant:
        return _both(b, condition, given, numbers)
    return b.body(numbers[0 if known else 1], given)


def _both(b: Conversion, condition: Item, given: tuple[Item, ...], numbers: tuple[int, int]) -> list[Item]:
    before, found, assigned = dict(b.variables.current), [], []
    for number in numbers:
        b.variables.current = dict(before)
        found.append(b.body(number, given))
        assigned.append(b.variables.current)
    if len(found[0]) != len(found[1]):
        raise Refused("its branches give different numbers of tensors")
    made = [_chosen(b, condition, x, y) for x, y in zip(*found, strict=True)]
    b.variables.current = before
    for handle in dict.fromkeys([*assigned[0], *assigned[1]]):
        ends = [each.get(handle) or b.variables.begun.get(handle) for each in assigned]
        if None in ends:
            raise Refused(f"one of its branches assigns the variable '{handle.name}', which nothing reads before")
        b.variables.current[handle] = _chosen(b, condition, *ends)
    return made


def _chosen(b: Conversion, condition: Item, x: Item, y: Item) -> Any:
    """One of two items of the same kind, by a condition that is computed."""
    if isinstance(x, Handle) or isinstance(y, Handle) or x is None or y is None:
        if x == y:
            return x
        raise Refused("its branches give different variables")
    if not _alike(x, y):
        raise Refused("its condition is computed, and its branches give tensors of different shapes, types or scales")
    chooser = b.real(condition)
    assert chooser is not None
    if not isinstance(x, Quantised):
        return combined(b, [chooser, x, _plain(y)], "Where", x.dtype)
    with marked(b, x.levels):
        return Quantised(combined(b, [chooser, x.value, _plain(y)], "Where", x.value.dtype), x.levels)


def _plain(item: Known) -> Value:
    """The elements of an item."""
    return item.value if isinstance(item, Quantised) else item


def _alike(x: Known, y: Known) -> bool:
    """Whether two items are of one shape and type, and their elements stand for the same numbers."""
    if isinstance(x, Quantised) and isinstance(y, Quantised):
        return x.value.shape == y.value.shape and x.levels.matches(y.levels)
    return isinstance(x, Value) and isinstance(y, Value) and x.shape == y.shape and x.dtype == y.dtype


@operator("WHILE", partly="where the number of steps is known at import")
def loop(b: Conversion, *given: Item, cond_subgraph_index: int = 0, body_subgraph_index: int = 0) -> list[Item]:
    """Unrolled."""
    carried = list(given)
    for _ in range(MOST_STEPS + 1):
        going = b.body(cond_subgraph_index, carried)
        if len(going) != 1:
            raise Refused(f"its condition is {len(going)} tensors")
        if not _array(b, going[0], "condition").reshape(-1)[0]:
            return carried
        carried = b.body(body_subgraph_index, carried)
    raise Refused(f"it has more than {MOST_STEPS} steps")


@operator("VAR_HANDLE")
def variable(b: Conversion, *, container: str = "", shared_name: str = "") -> list[Item]:
    return [handle_of({"container": container, "shared_name": shared_name})]


def _handle(item: Item) -> Handle:
    if not isinstance(item, Handle):
        raise Refused("what it takes is no variable")
    return item


@operator("READ_VARIABLE", partly="what a variable begins with is the same number everywhere")
def read(b: Conversion, item: Item) -> list[Item]:
    """What was assigned in this run, else an input of the graph: what the run before has left."""
    handle, known = _handle(item), b.variables
    if handle in known.current:
        return [known.current[handle]]
    (info,) = b.output_infos()
    if handle not in known.assigned:
        if handle not in known.initial:
            raise Refused(f"nothing assigns the variable '{handle.name}'")
        value, levels = Value.of(known.initial[handle]), b.levels(info)
        return [value if levels is None else Quantised(value, levels)]
    if handle not in known.begun:
        shape = [d for d in info.shape if d is not None]
        if len(shape) < len(info.shape):
            raise Refused(f"the shape of the variable '{handle.name}' is open")
        known.begun[handle] = b.new_input(info.called(handle.name or info.name), shape)
    return [known.begun[handle]]


@operator("ASSIGN_VARIABLE")
def assign(b: Conversion, item: Item, value: Item) -> list[Item]:
    handle = _handle(item)
    if isinstance(value, Handle) or value is None:
        raise Refused("what it assigns is no tensor of numbers")
    if b.variables.initialising:
        b.variables.initial[handle] = _array(b, _plain(value), "value")
    else:
        b.variables.current[handle] = value
    return []


@operator("CALL_ONCE", partly="where it gives variables what they begin with")
def once(b: Conversion, *, init_subgraph_index: int = 0) -> list[Item]:
    before, b.variables.initialising = b.variables.initialising, True
    try:
        b.body(init_subgraph_index, [])
    finally:
        b.variables.initialising = before
    return []


def left_behind(b: Conversion) -> list[Variable]:
    """The variables that are kept. Refused where what one begins with is not one number, and where a run leaves something
    else than it reads."""
    found = []
    for handle, begun in b.variables.begun.items():
        left = b.variables.current.get(handle, begun)
        if not _alike(begun, left):
            raise Refused(f"the variable '{handle.name}' is read as another tensor than it is assigned")
        array = b.variables.initial.get(handle)
        if array is not None and isinstance(begun, Quantised):
            array = real_numbers(Quantised(Value.of(array), begun.levels))
        if array is not None and array.size and (array != array.reshape(-1)[0]).any():
            raise Refused(f"the variable '{handle.name}' begins with numbers that are not all the same")
        first = 0.0 if array is None or not array.size else float(array.reshape(-1)[0])
        if not np.isfinite(first):
            raise Refused(f"the variable '{handle.name}' begins with {first}")
        found.append(Variable(handle.name, begun, left, first))
    return found
