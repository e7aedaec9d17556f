"""How the graph's data types are stored in NumPy arrays."""

from compassc.graph.dtypes import STORED, numpy_dtype

__all__ = ["STORED", "numpy_dtype"]
