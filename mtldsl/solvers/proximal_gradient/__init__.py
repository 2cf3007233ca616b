"""Proximal gradient and proximal Newton steps for smooth losses."""
