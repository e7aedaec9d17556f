"""The layers of Compass IR: each declared once, with its references in NumPy and its kernels."""
