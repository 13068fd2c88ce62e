"""Curves: the least traffic of a problem against the capacity of one buffer."""
