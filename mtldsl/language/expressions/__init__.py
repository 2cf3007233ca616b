"""What every statement is made of: numbers and parameters, weights and their affine functions, constraints, objectives, their formulas."""
