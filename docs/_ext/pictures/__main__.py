"""`python docs/_ext/pictures`: see the package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from pictures import draw

for path in draw(names=sys.argv[1:] or None):
    print(path)
