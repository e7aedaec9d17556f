"""Settings of the Python API from the environment: the vendor's variables, and the log."""
