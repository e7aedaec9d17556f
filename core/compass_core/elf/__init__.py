"""ELF64 objects of kernel code: their layout, joining several, and how an aipu.bin carries them."""
