"""Layout of anything that is shown: panels of facts and tables, in a terminal, a notebook, a page; without knowing of what."""
