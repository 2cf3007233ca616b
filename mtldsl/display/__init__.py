"""What objects show of themselves in a notebook and on a page: panels of facts and tables, without knowing of what."""
