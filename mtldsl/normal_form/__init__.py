"""From a statement to blocks and terms: canonicalization, types of terms, reductions."""
