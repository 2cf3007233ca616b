"""A corpus of problems to measure solvers on: data x scaling x model x strength, every route to three accuracies, peers at the same ones.

    python benchmarks/corpus                  # everything that is not in the rows yet; then the page
    python benchmarks/corpus --quick          # minutes: a small stratified part
    python benchmarks/corpus --page           # the page from the rows alone
    python benchmarks/corpus --data FOLDER    # the corpus's models on your own files
    python benchmarks/corpus --help

Each file holds one idea: `data` (sets, halves, scalings), `user_data` (files of a folder), `models` (statements), `critical` (the unit of
strengths), `papers` (models of papers), `problems` (the list), `routes` (our own solvers), `peers*` (others'), `measure` (one problem in
one process), `runner` (many processes, limits, what is done), `rows` (the table on the disk), `profiles`, `regret`, `page`.
"""
