"""Microbenchmarks that fill a machine file on this GPU."""
