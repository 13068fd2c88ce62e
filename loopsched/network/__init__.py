"""Networks: layers as a graph, with the tensors that pass between them."""
