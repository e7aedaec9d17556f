"""What is written from the declarations of operations: their pages, and the classes of their C functions for profiles."""
