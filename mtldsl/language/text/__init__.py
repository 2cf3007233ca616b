"""Statements as text: source with places, its grammar, the parser."""
