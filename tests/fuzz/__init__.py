"""Random well-typed kernels: what PySim computes and what the compiled kernel computes must be the same bits."""
