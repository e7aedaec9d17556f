"""The operator library: Compass IR layers written as kernels in the DSL, one module per family under `families/`.

A family declares which layer types it takes with `@operator`; the function looks at one layer and chooses a kernel and
its arguments. Kernels take shapes as scalars, so layers that differ in shape alone share one compiled object.
"""
