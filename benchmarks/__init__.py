"""What the toolchain's speed is held to, measured side by side with what it is compared to: `python -m benchmarks`."""
