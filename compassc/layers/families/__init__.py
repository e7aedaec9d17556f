"""One folder per family of layer types: its declarations, `reference.py` in NumPy, and `kernels.py`."""
