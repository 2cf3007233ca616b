"""Every atom's formula: the modules that register them."""
