"""Loading plugin files, running their methods, and choosing which plugin takes which layer.

Plugins are the user's code: whatever they raise becomes a CompassError that names the plugin file and line.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from compass_core.errors import CompassError, Span, together
from compass_core.lazy import LazyModule
from compass_core.namedtuple import NamedTuple
from compassc.gbuilder.memory import owner
from compassc.gbuilder.nodes import Node, Nodes
from compassc.gbuilder.plugin_api import (
    BuilderOpPlugin,
    PluginType,
    Registration,
    SubgraphNode,
    Tensor,
    plugin_modules,
)
from compassc.graph import Layer

if TYPE_CHECKING:
    import difflib
else:  # an error needs it
    difflib = LazyModule("difflib")

T = TypeVar("T")
PREFIX = "aipubt_"
_ONE_AT_A_TIME = threading.RLock()
"""Modules and import paths are the whole process's: graphs of other threads wait."""
PATH_VARIABLE = "AIPUPLUGIN_PATH"


class Plugin(NamedTuple):
    """A builder plugin and the file it comes from."""

    instance: BuilderOpPlugin
    path: Path

    @property
    def name(self) -> str:
        return type(self.instance).__name__


class Match(NamedTuple):
    """Layers that one plugin takes, and the merged node that replaces them."""

    plugin: Plugin
    nodes: list[Node]
    merged: SubgraphNode


Groups = list[tuple[Plugin, list[Node]]]
"""Layers, with the plugin that makes their kernel."""


def call(path: Path, what: str, function: Callable[..., T], *args: object) -> T:
    """`function(*args)` of the plugin file `path`; what it raises becomes a CompassError at the plugin's line."""
    try:
        return function(*args)
    except CompassError:
        raise
    except Exception as error:  # the plugin is foreign code: every kind of exception is its author's to see
        lines = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
        line = lines[-1].lineno if lines else getattr(error, "lineno", None)
        raise CompassError(
            f"the plugin fails in {what}: {type(error).__name__}: {error}",
            Span(str(path), line or 1),
            code="plugin",
        ) from error


def plugin_files(places: Iterable[Path]) -> list[Path]:
    """The plugin files in folders, and those named themselves; of files with the same name the first counts."""
    found: dict[str, Path] = {}
    for place in places:
        inside = sorted([*place.glob(f"{PREFIX}*.py"), *place.glob(f"{PREFIX}*/__init__.py")])
        for path in [place] if place.is_file() else inside:
            name = path.parent.name if path.name == "__init__.py" else path.stem
            found.setdefault(name, path)
    return list(found.values())


def search_path(folders: Iterable[Path]) -> list[Path]:
    """`folders`, then those of the environment variable AIPUPLUGIN_PATH."""
    listed = os.environ.get(PATH_VARIABLE, "").split(":")
    return [*folders, *(Path(part) for part in listed if part)]


@contextmanager
def plugins(folders: list[Path], target: str) -> Iterator[list[Plugin]]:
    """The builder plugins in `folders` (files count, too) for a target. Their modules and import paths exist only while
    this is active."""
    with _ONE_AT_A_TIME, _imports_from(folders), plugin_modules() as registered:
        loaded = []
        for path in plugin_files(folders):
            start = len(registered)
            call(path, "its import", _execute, path)
            loaded += [_instance(r, path, target) for r in registered[start:] if r.kind == PluginType.Builder]
        yield [plugin for plugin in loaded if plugin is not None]


@contextmanager
def _imports_from(folders: list[Path]) -> Iterator[None]:
    """Python imports from these folders first, and forgets the plugins it imported. Other changes to the import
    path in the meantime are kept."""
    added, saved_modules = [str(place.parent if place.is_file() else place) for place in folders], set(sys.modules)
    sys.path[:0] = added
    try:
        yield
    finally:
        for folder in added:
            if folder in sys.path:
                sys.path.remove(folder)
        for name in set(sys.modules) - saved_modules:
            if name.startswith(PREFIX):
                del sys.modules[name]


def _execute(path: Path) -> None:
    """Runs a plugin file as a module of its own, without leaving compiled files in its folder."""
    from types import ModuleType

    package = path.name == "__init__.py"
    module = ModuleType(path.parent.name if package else path.stem)
    module.__file__ = str(path)
    if package:
        module.__path__ = [str(path.parent)]
    sys.modules[module.__name__] = module
    exec(compile(path.read_bytes(), str(path), "exec"), vars(module))  # noqa: S102 (plugins are programs)


def _instance(registration: Registration, path: Path, target: str) -> Plugin | None:
    """An instance of a registered class, or None when it does not want the target."""
    cls = registration.cls
    if not issubclass(cls, BuilderOpPlugin):
        raise CompassError(
            f"{path}: {cls.__name__} is registered as a builder plugin but is no BuilderOpPlugin", code="plugin"
        )
    instance = call(path, f"{cls.__name__}()", cls)
    return Plugin(instance, path) if call(path, "set_target", instance.set_target, target) else None


class OnAiff(NamedTuple):
    """Whether a layer is built for the AIFF: the nodes of its chain, and the assumptions that its results rest on; or the
    reason why it is not."""

    layer: Layer
    reason: str
    nodes: int = 0
    assumed: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.reason:
            return f"'{self.layer.name}' runs on the TECs: {self.reason}"
        trust = f", which takes on trust {', '.join(self.assumed)}" if self.assumed else ""
        return f"'{self.layer.name}' runs on the AIFF: {self.nodes} node{'s' * (self.nodes > 1)}{trust}"


class Library(Protocol):
    """The built-in kernels, for layers that no plugin takes; `types` are the layer types it knows, `on_aiff` tells of those
    that were to be built for the AIFF."""

    on_aiff: list[OnAiff]

    @property
    def types(self) -> tuple[str, ...]: ...

    def prepare(self) -> None:
        """Has what kernels are compiled with made meanwhile, where it is not there."""
        ...

    def make_views(self, graph: Nodes) -> None:
        """Removes layers that need not run: their outputs lie in the memory of their input."""
        ...

    def take(self, graph: Nodes, nodes: list[Node]) -> tuple[Groups, dict[int, str]]:
        """Groups of layers, each with a plugin that makes their kernel; and, by id of a node, why it was not taken."""
        ...

    def compile(self, graph: Nodes, matches: Sequence[Match]) -> None:
        """Has the objects of the kernels made, on all processors."""
        ...


def choose(graph: Nodes, loaded: list[Plugin], library: Library | None = None) -> list[Match]:
    """The plugin of each layer, in topological order. CompassError naming all layers that no plugin takes."""
    scores = [float(call(p.path, "get_score", p.instance.get_score)) for p in loaded]
    ranked = sorted(zip(scores, loaded, strict=True), key=lambda row: -row[0])
    rows = [(score, (p, *call(p.path, "get_graph_pattern", p.instance.get_graph_pattern))) for score, p in ranked]
    refused: dict[int, list[str]] = {id(n): [] for n in graph.nodes}
    found, left = _taken(graph, graph.nodes, [row for score, row in rows if score >= 0], refused)
    if left and library is not None:
        groups, reasons = library.take(graph, left)
        found += groups
        left = [n for n in left if id(n) in reasons]
        for node in left:
            refused[id(node)].append(f"the layers of this toolchain cannot take it: {reasons[id(node)]}")
    # the library's score is 0: plugins below come after it
    more, left = _taken(graph, left, [row for score, row in rows if score < 0], refused)
    found += more
    if left:
        types = {str(t) for _, (_, aliases, _) in rows for _, t in aliases}
        known = sorted(types | set(library.types if library else ()))
        raise together([_nobody(graph, n, refused[id(n)], known) for n in left])
    position = {id(n): i for i, n in enumerate(graph.nodes)}
    # a merged node runs when its last layer could: all that it needs has been made by then
    found.sort(key=lambda f: max(position[id(n)] for n in f[1]))
    users: dict[int, list[int]] = {id(t): [0] for t in graph.outputs}  # 0: the outside
    for node in graph.nodes:
        for tensor in node.inputs:
            # who reads a view needs what it is a view of
            for needed in {id(tensor), id(owner(tensor))}:
                users.setdefault(needed, []).append(id(node))
    return [Match(plugin, nodes, _merge(nodes, users)) for plugin, nodes in found]


def _taken(
    graph: Nodes, nodes: list[Node], patterns: list[tuple[Plugin, object, object]], refused: dict[int, list[str]]
) -> tuple[list[tuple[Plugin, list[Node]]], list[Node]]:
    """(plugins with the layers they take, the layers that are left)."""
    taken = {id(n) for n in graph.nodes} - {id(n) for n in nodes}
    found: list[tuple[Plugin, list[Node]]] = []
    for node in nodes:
        if id(node) not in taken:
            plugin, group, reasons = _first_match(graph, node, patterns, taken)
            refused[id(node)] += reasons
            if plugin is not None:
                found.append((plugin, group))
                taken.update(id(n) for n in group)
    return found, [n for n in nodes if id(n) not in taken]


def _nobody(graph: Nodes, node: Node, refused: list[str], known: list[str]) -> CompassError:
    near = difflib.get_close_matches(str(node.type), known, 1, 0.75)
    unknown = f"did you mean {near[0]}?" if near else "`compassc layers` lists the built-in types"
    error = graph.graph.error(
        node.layer,
        f"no plugin takes the layer '{node.name}' of type {node.type}",
        "" if str(node.type) in known else unknown,
    )
    return CompassError(error.message, error.span, code="no-plugin", notes=tuple(refused), help=error.help)


def _first_match(
    graph: Nodes, node: Node, patterns: list[tuple[Plugin, object, object]], taken: set[int]
) -> tuple[Plugin | None, list[Node], list[str]]:
    """(the plugin that takes a layer, the layers it takes with it, why others refused it)."""
    refused = []
    for plugin, aliases, edges in patterns:
        nodes = _find_pattern(graph, node, aliases, edges, taken)
        if nodes is None:
            continue
        if call(plugin.path, "check_params", plugin.instance.check_params, nodes):
            return plugin, nodes, []
        refused.append(f"{plugin.name} ({plugin.path}) refuses it in check_params")
    return None, [], refused


def _find_pattern(graph: Nodes, first: Node, aliases: Any, edges: Any, taken: set[int]) -> list[Node] | None:
    """Free layers that form the pattern, `first` among them, in the order of the aliases; None when there are none."""
    types = [str(wanted) for _, wanted in aliases]
    if str(first.type) not in types:
        return None
    if len(types) == 1:
        return [first]
    makers = {id(t): n for n in graph.nodes for t in n.outputs}
    links = {(id(makers[id(t)]), id(n)) for n in graph.nodes for t in n.inputs if id(t) in makers}
    names = [alias for alias, _ in aliases]

    def extend(chosen: list[Node]) -> list[Node] | None:
        at = dict(zip(names, chosen, strict=False))
        if any((id(at[a]), id(at[b])) not in links for a, b in edges if a in at and b in at):
            return None
        if len(chosen) == len(names):
            return chosen if any(n is first for n in chosen) else None
        for node in graph.nodes:
            free = id(node) not in taken and all(node is not n for n in chosen)
            if free and str(node.type) == types[len(chosen)] and (result := extend([*chosen, node])) is not None:
                return result
        return None

    return extend([])


def _merge(nodes: list[Node], users: Mapping[int, list[int]]) -> SubgraphNode:
    """The merged node: its inputs come from outside the match, its outputs are used outside. `users`: by id of a tensor the
    ids of the nodes it goes into."""
    if len(nodes) == 1:
        node = nodes[0]
        constants = {f"{node.name}/{name}": t for name, t in node.constants.items()}
        return SubgraphNode(list(node.inputs), list(node.outputs), constants, dict(node.params))
    made = {id(t) for n in nodes for t in n.outputs}
    inside = {id(n) for n in nodes}
    outputs = [t for n in nodes for t in n.outputs]
    inputs: dict[int, Tensor] = {id(t): t for n in nodes for t in n.inputs if id(t) not in made}
    return SubgraphNode(
        inputs=list(inputs.values()),
        outputs=[t for t in outputs if any(user not in inside for user in users.get(id(t), ()))],
        constants={f"{n.name}/{name}": t for n in nodes for name, t in n.constants.items()},
        params={k: v for n in nodes for k, v in n.params.items()},
    )
