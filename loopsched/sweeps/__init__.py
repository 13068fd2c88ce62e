"""Sweeps: architectures x workloads x objectives, in a folder that survives everything."""
