"""Element-wise layers join the kernel of the layer before them, where nobody else uses what stands between them.

    Convolution(x), Activation(conv)     ->  one launch

Results are the same as in kernels of their own: between two layers of a kernel values are as they would be stored. As many
layers join as there is a kernel for, at most `LONGEST`.
"""

from __future__ import annotations

from dataclasses import replace

from compassc.graph.launches import Launch, Launches
from compassc.graph.layer import Layer
from compassc.layers.kernels import is_step, takes_tail
from compassc.layers.launches.plan_kernels import planned

NAME = "JoinElementwise"
LONGEST = 16
"""Layers of one kernel."""


def run(program: Launches) -> Launches:
    """The launches with what joins."""
    chains = Chains(program)
    taken: set[str] = set()
    launches: list[Launch] = []
    for launch in program.launches:
        if launch.layers[-1].name in taken:
            continue
        made = launch if launch.plugin else chains.longest(launch)
        taken.update(layer.name for layer in made.layers)
        launches.append(made)
        chains.free.difference_update(taken)
    return replace(program, launches=tuple(launches))


class Chains:
    """Which layers can follow which in a kernel."""

    def __init__(self, program: Launches) -> None:
        self.program = program
        self.users = program.users()
        self.ends = {program.owner(t) for t in program.graph.outputs}
        self.free = {layer.name for x in program.launches if not x.plugin for layer in x.layers}

    def longest(self, launch: Launch) -> Launch:
        """A launch with the layers behind it for which there is a kernel."""
        layers, ends = list(launch.layers), ""
        if not takes_tail(layers[0].type):
            return replace(launch, ends=f"the kernel of a {layers[0].type} takes no other layer")
        while len(layers) < LONGEST:
            after, ends = self.following(layers[-1])
            if after is None:
                break
            layers.append(after)
        else:
            ends = f"a kernel has at most {LONGEST} layers"
        while len(layers) > len(launch.layers):
            found = planned(Launch(tuple(layers), ends), self.program.target)
            if not found.refused:
                return found
            ends = f"'{layers.pop().name}' cannot join: {found.refused}"
        return replace(launch, ends=ends)

    def following(self, layer: Layer) -> tuple[Layer | None, str]:
        """The element-wise layer that alone uses what a layer makes, or None and why there is none. Who uses a view of it is
        a user, too."""
        if len(layer.outputs) != 1:
            return None, f"'{layer.name}' has {len(layer.outputs)} outputs"
        made = layer.output
        owner = self.program.owner(made)
        if owner in self.ends:
            return None, f"'{made.name}' is an output of the graph"
        users = self.users.get(owner, [])
        if len(users) != 1:
            return None, f"'{made.name}' has {len(users)} uses"
        (after,) = users
        if all(t.name != made.name for t in after.inputs):
            return None, f"'{after.name}' uses a view of '{made.name}'"
        if after.name not in self.free:
            return None, f"a plugin takes '{after.name}'"
        if not is_step(after.type):
            return None, f"'{after.name}' is a {after.type}, which is not element-wise"
        if len(after.outputs) != 1:
            return None, f"'{after.name}' has {len(after.outputs)} outputs"
        return after, ""
