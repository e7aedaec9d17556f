"""Learning what programs cost: features of loop nests, and models that are fitted to measured costs."""

from compassc.tuning.cost.features import Feature, feature_vector, names, table
from compassc.tuning.cost.models import CostModel, Ridge, Trees, create, rank
from compassc.tuning.cost.nest import Nest, loop_nest

__all__ = [
    "CostModel",
    "Feature",
    "Nest",
    "Ridge",
    "Trees",
    "create",
    "feature_vector",
    "loop_nest",
    "names",
    "rank",
    "table",
]
