"""One short numpy formula a word, independent of its atom, and the value of a statement as typed."""
