"""What the compiler, the runtime and the simulator share: errors, switches, the clang finder and aipu.bin's layout."""

VERSION = "0.1.0"
