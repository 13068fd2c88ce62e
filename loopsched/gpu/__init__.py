"""GPU kernels: what a mapped nest or a library kernel asks of a GPU, and how long it takes."""
