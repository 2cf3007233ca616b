"""Files that stay where they are: read in parts by Dask's workers at each pass, or once and kept there."""
