"""How Sphinx builds the site: `python -m sphinx -W docs site`."""

from __future__ import annotations

import loopsched

project = "loopsched"
author = "The loopsched developers"
project_copyright = author
version = release = loopsched.__version__

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary"]
exclude_patterns = ["images/README.md"]
html_theme = "furo"
html_title = f"loopsched {version}"
html_show_copyright = False
html_copy_source = False

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = False
add_module_names = False
