"""Everything about the package stands in pyproject.toml, but for the text that a package index shows: the README, whose links lead nowhere there unless they are absolute."""

import os
import re
from pathlib import Path

from setuptools import setup

# where the repository can be read, such as https://host/owner/mtldsl/blob/main; whoever publishes a version sets it
HOME = os.environ.get("MTLDSL_REPOSITORY", "").rstrip("/")


def for_an_index(text: str, home: str) -> str:
    """The README with every relative link absolute below `home`; without a home, the links' texts alone, so that no link is dead."""
    link = re.compile(r"\[([^\]]+)\]\((?![a-z]+:|#)([^)]+)\)")
    return link.sub(rf"[\1]({home}/\2)" if home else r"\1", text)


setup(
    long_description=for_an_index(Path(__file__).with_name("README.md").read_text(encoding="utf-8"), HOME),
    long_description_content_type="text/markdown",
)
