"""Studies: what becomes of a workload when the machine is another."""
