"""What a user hands over as numbers, arrays, tables and names: read exactly, or refused by a sentence that says what to write."""
