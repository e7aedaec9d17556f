"""Launches as somebody says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from compass_core.errors import CompassError, Span
from compassc.graph.launches import Launch, Launches
from compassc.graph.layer import Layer
from compassc.layers.launches.join_elementwise import Chains


def as_told(program: Launches, groups: Sequence[Sequence[str]], path: str) -> Launches:
    """The launches of the layers with these names. CompassError where these are not the layers of the program, each once,
    or where one cannot follow the other in a kernel."""
    single = {x.layers[0].name: x.layers[0] for x in program.launches if not x.plugin}
    told = [name for group in groups for name in group]
    for name in told:
        if name not in single or told.count(name) > 1:
            why = "is there twice" if name in single else "is no layer of the graph that runs in a built-in kernel"
            raise _wrong(f"'{name}' {why}", path)
    if missing := [name for name in single if name not in told]:
        raise _wrong(f"the layer '{missing[0]}' is in no launch", path)
    chains = Chains(program)
    made = {group[0]: _followed(chains, [single[name] for name in group], path) for group in groups}
    launches = [x if x.plugin else made.get(x.layers[0].name) for x in program.launches]
    return replace(program, launches=tuple(x for x in launches if x is not None))


def _followed(chains: Chains, layers: list[Layer], path: str) -> Launch:
    for one, other in pairwise(layers):
        after, why = chains.following(one)
        if after is not other:
            reason = why or (f"'{after.name}' does" if after else "")
            raise _wrong(f"'{other.name}' cannot follow '{one.name}' in a launch: {reason}", path)
    return Launch(tuple(layers), f"as '{path}' says")


def _wrong(what: str, path: str) -> CompassError:
    return CompassError(what, Span(path, 1), code="bad-launches", help="`compassc group` writes such texts")
