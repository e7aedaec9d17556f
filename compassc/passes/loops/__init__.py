"""Passes on functions of blocks and of loops over scalars: what a schedule becomes before kernels of all kinds go on alike."""
