"""Design matrices as engines see them: products, columns, Gram blocks."""
