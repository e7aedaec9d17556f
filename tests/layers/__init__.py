"""Kernels of layers against their references; `python -m tests.layers.random_networks` makes networks of them."""
