"""The fast solver against the reference: whole models, block by block where they are not convex, and how far apart two answers are."""
