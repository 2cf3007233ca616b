"""Problem files: a model, its data and its outputs as TOML, read with the place of every mistake."""
