"""Working-set coordinate descent and proximal Newton steps on the rows of the weights."""
