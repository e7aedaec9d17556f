"""The graph of typed layers: what importers make, passes and the quantiser rewrite, and the builder builds.

`tensor`, `layer` and `graph` are the three immutable classes, `build` makes a graph, `edit` changes many layers of one,
`text` reads and writes Compass IR (`sections`: its lines, `values`: its values), `verify` checks, `passes` rewrite.
Nothing here knows the layer types at load time: they are declared in `compassc.layers`.
"""

from compassc.graph.build import GraphBuilder
from compassc.graph.graph import Graph
from compassc.graph.layer import Layer
from compassc.graph.tensor import LayerError, Tensor
from compassc.graph.text import read, write

__all__ = ["Graph", "GraphBuilder", "Layer", "LayerError", "Tensor", "read", "write"]
