"""The words themselves: one table of them, and what is typed made into terms."""
