"""Tuned libraries: how long a product takes when the best of many tiled kernels runs."""
