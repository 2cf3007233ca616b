"""Data made to order, with the weights that made them."""
