"""What the environment asks of the Python API: options by the vendor's variables, and the log."""
