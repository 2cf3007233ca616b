"""A solution as a page for people who were not there: its proof, how well it predicts, what was learned, from what, and how to repeat it."""
