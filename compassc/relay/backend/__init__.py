"""From Relay modules to programs: `kernels` makes kernels of fused functions, `graph` the graph that calls them and its memory,
`build` puts them together, `vm` is the virtual machine, `executors` runs them."""
