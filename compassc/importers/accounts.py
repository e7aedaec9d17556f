"""What reading a model may cost."""

from __future__ import annotations

from math import prod

from compass_core.reading.budget import Budget
from compass_core.reading.limits import COMPUTED_BYTES
from compassc.importers.values import Refused


class Accounts:
    """Whoever makes something of a model. `name`: of the node that is looked at. `budget`: what the model may cost to read."""

    name: str
    budget: Budget

    def room(self, *sizes: int, each: int = 8) -> tuple[int, ...]:
        """The shape of an array that is to be made, of elements of `each` bytes. CompassError when the model's budget has
        no room for it; Refused for sizes below 0."""
        shape = tuple(int(d) for d in sizes)
        if min(shape, default=0) < 0:
            raise Refused(f"there is no tensor of the shape {list(shape)}")
        self.budget.take(COMPUTED_BYTES, prod(shape) * each, f"the node '{self.name}'")
        return shape
