"""What functions keep of their values in integers, and what they cost: `python -m compassc.evaluation.functions` writes the
table of docs/quantisation.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from compass_core import files
from compass_core.arrays import Array
from compass_core.namedtuple import NamedTuple
from compassc.graph import Graph, GraphBuilder
from compassc.layers.families.activation.reference import METHOD_OF, PLAIN
from compassc.layers.real_values import to_raw, to_real
from compassc.models import compile
from compassc.quantizer.compare import run_quantised
from compassc.quantizer.convert import quantize_with_reasons
from compassc.quantizer.execute import run
from compassc.quantizer.observe import calibrate
from compassc.quantizer.settings import Settings
from compassc.quantizer.similarity import Similarity
from compassc.quantizer.tables import FASTER_AS_FLOATS, has_table

PAGE = Path("docs/quantisation.md")
BEGIN, END = "<!-- made by `make docs` -->", "<!-- end -->"
"""Around the table in the page."""
HEAD = """| function | int8 | 16 bits, `table_bits: 10` | int16, w8a16 | float16 | float32 | in int16 |
|---|---|---|---|---|---|---|
"""
SHAPE = (1, 16, 16, 32)
FORMS: Mapping[str, Settings] = {
    "int8": Settings.preset("int8"),
    "vendor": Settings.preset("int16", table_bits=10),
    "int16": Settings.preset("int16"),
    "float16": Settings.preset("int16").overridden({"layer": {"float": "float16"}}),
    "float32": Settings.preset("int16").overridden({"layer": {"float": "float32"}}),
}
"""Forms of one layer among others of int8, or of int16, by the names of columns."""


def _normal(random: np.random.Generator) -> Array:
    return random.normal(0, 2, SHAPE)


def _narrow(random: np.random.Generator) -> Array:
    return np.clip(random.normal(0, 1, SHAPE), -3, 3)  # limits as of a Clip before, where many values lie


def _positive(random: np.random.Generator) -> Array:
    return np.abs(random.normal(0, 3, SHAPE)) + 1


def _inside_one(random: np.random.Generator) -> Array:
    return random.uniform(-0.9, 0.9, SHAPE)


DOMAINS: dict[str, Callable[[np.random.Generator], Array]] = {
    **dict.fromkeys(("Sqrt", "Rsqrt", "Log", "Reciprocal", "Acosh", "Pow"), _positive),
    **dict.fromkeys(("Asin", "Acos", "Atanh", "Tan"), _inside_one),
    **dict.fromkeys(("Exp", "Sinh", "Cosh", "Square"), _narrow),
}
"""Values that a function is tried on, where they are not normal ones."""
ATTRIBUTES: dict[str, dict[str, object]] = {
    "Softmax": {"axis": -1}, "LogSoftmax": {"axis": -1}, "Pow": {"exponent": 1.7},
}  # fmt: skip


def names() -> list[str]:
    """Layer types that are functions of numbers, and those of rows that are made of such."""
    own = {name for name in (*METHOD_OF, *PLAIN) if has_table(_graph(name).layers[1])}
    return sorted(own | {name for name in FASTER_AS_FLOATS if not name.isupper()})


def _graph(name: str) -> Graph:
    """The layer alone. Its input is an output, and what it makes goes through a layer that moves it, so that both are
    integers where the layer itself is none."""
    g = GraphBuilder("function")
    x = g.input("x", SHAPE, "float32")
    of = [(SHAPE, "float32")]
    (y,) = g.layer(name, [x], name="layer", outputs=of, attributes=ATTRIBUTES.get(name, {}))
    (z,) = g.layer("Reshape", [y], name="same", outputs=of, attributes={"shape": list(SHAPE)})
    return g.finish([z, x])


def quantised(name: str, form: str) -> tuple[Graph, float, str | None]:
    """(the layer in a form, signal to error in dB when its inputs are right, why it is a float: None for one of integers)."""
    graph, random = _graph(name), np.random.default_rng(5)
    domain = DOMAINS.get(name, _normal)
    samples = [{graph.inputs[0].name: domain(random).astype(np.float32)} for _ in range(2)]
    made = quantize_with_reasons(graph, calibrate(graph, samples, FORMS[form]), FORMS[form])
    source, found = made.graph.inputs[0], Similarity()
    for sample in samples:
        x = to_real(source, to_raw(source, sample[source.name]))
        want: dict[str, Array] = {}
        run(graph, {source.name: x}, lambda layer, _, out, want=want: want.update({layer.name: out[0]}))  # type: ignore[misc]
        got = run_quantised(made.graph, {source.name: x})[graph.outputs[0].name]
        found.add(got, want["layer"])
    return made.graph, found.sqnr, made.floats.get("layer")


def cycles(graph: Graph) -> float:
    """Estimated cycles of the layer, with conversions; what goes in is no output of a built graph."""
    return compile(replace(graph, outputs=graph.outputs[:1])).profile().cycles


class FunctionQuality(NamedTuple):
    """A function: how it is computed in int16, and (dB, cycles) by form."""

    name: str
    how: str
    measured: Mapping[str, tuple[float, float]]

    def text(self) -> str:
        """A line of the table."""
        each = (
            f"{f'{ratio:.0f}' if np.isfinite(ratio) else 'exact'}, {cost:,.0f}"
            for ratio, cost in self.measured.values()
        )
        return f"| {self.name} | {' | '.join(each)} | {self.how} |"


def measured(name: str) -> FunctionQuality:
    """A function in all forms."""
    how, found = "", dict[str, tuple[float, float]]()
    for form in FORMS:
        graph, ratio, _ = quantised(name, form)
        found[form] = (ratio, cycles(graph))
        if form == "int16":
            how = _how(graph)
    return FunctionQuality(name, how, found)


def _how(graph: Graph) -> str:
    """What computes the function."""
    layer = next(layer for layer in graph.layers if layer.name == "layer")
    if not layer.output.is_integer:
        return layer.output.dtype
    return f"{max(array.size for array in layer.constants.values()):,} entries"


def table() -> str:
    """All lines."""
    return HEAD + "\n".join(measured(name).text() for name in names()) + "\n"


def with_table(page: str, made: str) -> str:
    """The page with this table between its marks."""
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    return f"{before}{BEGIN}\n\n{made}\n{END}{after}"


if __name__ == "__main__":
    files.write(PAGE, with_table(files.read_text(PAGE), table()))
