"""The graph builder: Compass IR text, its constants and plugins become an aipu.bin.

The stages, one module each: `nodes` (what plugins see of the graph), `plugin_host` (which plugin takes which layer),
`memory` (where tensors lie), `emit` (the container's content), `build` (files in, file out). `dsl_files` writes the
one-layer graph and the plugin of a DSL kernel.
"""

from compassc.gbuilder.build import build_from_params, build_graph, kernel_files

__all__ = ["build_from_params", "build_graph", "kernel_files"]
