"""Files generated from the declarations of operations: their pages, and the cost classes of their C functions."""
