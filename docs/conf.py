"""The site: `sphinx-build -W --keep-going docs build/site`. What is not usual about it stands in `_ext/`, one idea a file."""

import sys
from pathlib import Path

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "_ext"), str(DOCS.parent)]

import lessons  # noqa: E402

import mtldsl  # noqa: E402  from this checkout

project = "mtldsl"
author = "the authors of mtldsl"
version = release = mtldsl.__version__

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "lessons",
    "mathml",
    "elsewhere",
    "api_pages",
    "pictures",
    "example_page",
    "names",
    "catalogue_pages",
]
exclude_patterns = ["_*"]

myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
highlight_language = "text"  # where a block does not say what it is, it is not Python
html_math_renderer = "mathml"
suppress_warnings = ["sphinx_gallery.duplicate_filename"]  # a lesson and its solutions have one name
copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "lessons",
    "filename_pattern": lessons.pattern(),
    "within_subsection_order": "FileNameSortKey",
    "ignore_pattern": "solutions",
    "backreferences_dir": "lessons/uses",
    "image_scrapers": ("lessons.drawn",),
    "reset_modules": ("lessons.forget", "matplotlib"),
    "abort_on_example_error": True,
    # objective and bound, for lessons without a picture
    "default_thumb_file": str(DOCS / "_static" / "lesson.svg"),
    "capture_repr": (),  # they print what they have to say
    "show_signature": False,
    "write_computation_times": False,
    "inspect_global_variables": False,
    "parallel": 2,
}

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_use_ivar = True
napoleon_use_param = False
napoleon_use_rtype = False
napoleon_preprocess_types = False

html_theme = "pydata_sphinx_theme"
html_title = "mtldsl: multi-task models, solved with a proof"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {page: [] for page in ("index", "start", "choosing")}  # they have no pages below them
html_theme_options = {
    "logo": {"text": "mtldsl"},
    "navigation_with_keys": False,
    "show_prev_next": True,
    "collapse_navigation": True,  # the names of 230 pages on each of them made up most of its text
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
