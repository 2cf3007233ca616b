"""The method of multipliers with semismooth Newton steps, for losses with kinks beside norms."""
