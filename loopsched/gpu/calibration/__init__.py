"""Microbenchmarks that fill a machine file on the GPU at hand."""
