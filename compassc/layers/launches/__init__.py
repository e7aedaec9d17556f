"""Passes on the launches of a graph (`compassc.graph.launches`): one file each, run by the framework of all passes.

A pass has a constant `NAME` and `run(launches) -> launches`. They begin with a launch for each layer; kernels are made
for the launches' target.
"""

from __future__ import annotations

from compassc.graph.launches import Launches, write_launches
from compassc.pass_manager import Folder, PassOptions, pipeline_names, run_pipeline

JOIN = "JoinElementwise"
"""The pass that makes launches of several layers."""


def _verify(program: Launches) -> None:
    """Each computing layer is in one launch, but for those that plugins and views take away."""
    names = [layer.name for launch in program.launches for layer in launch.layers]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"layers in several launches: {sorted(twice)}"


LAUNCHES: Folder[Launches] = Folder(__name__, write_launches, _verify)


def group(program: Launches, options: PassOptions | None = None) -> Launches:
    """The launches after the standard pipeline, or the one of `options`."""
    options = options or PassOptions()
    names = pipeline_names("group", LAUNCHES) if options.passes is None else options.passes
    return run_pipeline(names, program, options, folder=LAUNCHES)
