"""Functions of 16-bit numbers: near in the presets, as large a table as is asked for, and the page's table about both."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core import files
from compassc.evaluation import functions
from compassc.quantizer import Settings
from compassc.quantizer.tables import FASTER_AS_FLOATS
from tests.choosing import chosen


@pytest.mark.parametrize("name", functions.names())
def test_a_function_keeps_65_db(name):
    _, ratio, _ = functions.quantised(name, "int16")
    assert ratio >= 65


@pytest.mark.parametrize("values", [lambda x: np.clip(x, 0, 6), lambda x: x * 20, lambda x: x / 50, lambda x: x - 8])
@pytest.mark.parametrize("name", ["Sigmoid", "Silu", "GELU", "Softplus", "ELU", "MISH"])
def test_it_does_wherever_the_values_lie(name, values, monkeypatch):
    domain = functions.DOMAINS.get(name, functions._normal)
    monkeypatch.setitem(functions.DOMAINS, name, lambda random: values(domain(random)))
    _, ratio, _ = functions.quantised(name, "int16")
    assert ratio >= 65


@pytest.mark.parametrize("items", range(8, 17))
@pytest.mark.parametrize("name", ["Silu", "Tanh", "Sqrt", "Sine", "Softmax", "LogSoftmax", "Pow"])
def test_a_table_has_as_many_entries_as_asked_for_or_is_refused(name, items, monkeypatch):
    monkeypatch.setitem(functions.FORMS, "asked", Settings.preset("int16", table_bits=items))
    graph, _, why = functions.quantised(name, "asked")
    layer = next(layer for layer in graph.layers if layer.name == "layer")
    if why:
        assert items > 11 and "LSRAM" in why and layer.output.dtype == "float32"
    else:
        assert [array.size for array in layer.constants.values()] == [1 << items]


@pytest.mark.parametrize("name", ["Silu", "Softmax"])
def test_the_largest_tables_are_built(name, monkeypatch):
    monkeypatch.setitem(functions.FORMS, "asked", Settings.preset("int16", table_bits=12 if name == "Silu" else 11))
    graph, _, why = functions.quantised(name, "asked")
    assert not why and functions.cycles(graph) > 0


def cells() -> dict[str, list[str]]:
    """Lines of the page's table by the function."""
    text = files.read_text(functions.PAGE).split(functions.BEGIN)[1].split(functions.END)[0]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()[2:]]
    return {line[0]: line for line in lines}


@pytest.mark.parametrize("name", sorted(chosen(functions.names(), 20)))
def test_the_page_has_what_is_measured(name):
    assert functions.measured(name).text() == "| " + " | ".join(cells()[name]) + " |"


def test_the_page_has_every_function_in_its_faster_form():
    found = cells()
    assert sorted(found) == functions.names()
    for name, line in found.items():
        _, table, own, half, whole = (int(cell.split(", ")[1].replace(",", "")) for cell in line[1:6])
        assert own <= min(half, whole), name
        # the table of these has nothing between entries, the largest of Acosh keeps less than 65 dB
        if line[6] == "float32" and name not in ("Sine", "Cosine", "Acosh"):
            assert own < table, name


def test_what_is_faster_as_a_float_is_one():
    floats = {name for name, line in cells().items() if line[6] == "float32"} - {"Acosh"}
    from compassc.layers.families.activation.reference import METHOD_OF

    assert {METHOD_OF.get(name, name) for name in floats} == FASTER_AS_FLOATS
