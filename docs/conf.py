"""How Sphinx builds the site: `python -m sphinx -W docs site`."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from pygments.lexer import RegexLexer, bygroups
from pygments.token import Generic

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
html_static_path = ["_static"]
html_css_files = ["site.css"]

myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_class_members_toctree = False
numpydoc_show_inherited_class_members = False
add_module_names = False


class Console(RegexLexer):
    """Commands and what they print, which is no code: only prompts are set off."""

    name = "console"
    tokens = {  # noqa: RUF012
        "root": [
            (r"^(\$ )((?:.*\\\n)*.*\n)", bygroups(Generic.Prompt, Generic.Strong)),
            (r".*\n", Generic),
        ]
    }


def without_private(*event: Any) -> tuple[str | None, str | None]:
    """Leave arguments that are no user's out of a signature."""
    *_, signature, returned = event
    return signature and re.sub(r"(?:, )?\b_\w+(?=[,)])", "", signature), returned


def keep_units(app: Any, doctree: nodes.document, docname: str) -> None:
    """Let no line end between a number and its percent sign."""
    for text in list(doctree.findall(nodes.Text)):
        kept = re.sub(r"(?<=\d) (?=%)", "\N{NO-BREAK SPACE}", text)
        if kept != text and not isinstance(text.parent, nodes.FixedTextElement | nodes.literal):
            text.parent.replace(text, nodes.Text(kept))


def setup(app: Any) -> None:
    """Read console blocks with our own reader; mend signatures and the ends of lines."""
    app.add_lexer("console", Console)
    app.connect("autodoc-process-signature", without_private)
    app.connect("doctree-resolved", keep_units)
