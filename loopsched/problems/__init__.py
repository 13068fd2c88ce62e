"""Loop nests of multiply-accumulates: iteration spaces, tensors, workload files."""
