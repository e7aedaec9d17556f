"""Passes on graphs: one file each, found by its name, run by the framework of the kernels' passes (`compassc.passes`).

A pass has a constant `NAME`, a docstring whose first line says what it does, and `run(graph) -> graph`, which gives the
graph itself when it changes nothing. Outputs stay the same: bit for bit where layers only move or go, within rounding
where the pass's docstring says that sums and products are put together otherwise.
"""

from __future__ import annotations

from compassc.graph.graph import Graph
from compassc.graph.text import in_pieces
from compassc.graph.verify import check
from compassc.pass_manager import Folder, PassOptions, pipeline_names, run_pipeline


def _text(graph: Graph, functions: tuple[str, ...] = ()) -> str:
    """The graph's text, of the named layers only when there are names."""
    text = in_pieces(graph)[0]
    if not functions:
        return text
    sections = text.split("\n\n")
    return "\n\n".join(s for s in sections if any(f"\nlayer_name={name}\n" in f"\n{s}\n" for name in functions))


def _verify(graph: Graph) -> None:
    check(graph)


GRAPHS: Folder[Graph] = Folder(__name__, _text, _verify)


def optimise(graph: Graph, options: PassOptions | None = None) -> Graph:
    """The graph after the standard pipeline, or the one of `options`."""
    return run_stage("optimize", graph, options)


def run_stage(stage: str, graph: Graph, options: PassOptions | None = None) -> Graph:
    """The graph after the pipeline of a stage, or the one of `options`."""
    options = options or PassOptions()
    names = pipeline_names(stage, GRAPHS) if options.passes is None else options.passes
    return run_pipeline(names, graph, options, folder=GRAPHS)
