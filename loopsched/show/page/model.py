"""The model in JavaScript, for pages that evaluate schedules by themselves."""

from __future__ import annotations

from functools import cache
from importlib import resources

# In this order: each file uses only functions of those before it, or later at run time.
PARTS = (
    "integers", "text", "problem", "footprint", "nest", "view", "reuse", "cells", "walk", "replay",
    "filters", "buffer", "compute", "machine", "score", "notation", "loops_text", "moves",
)  # fmt: skip

_HEAD = '"use strict";\nglobalThis.Loopsched = (() => {\n'
_TAIL = """
return Object.freeze({ evaluate, parseSchedule, formatSchedule, loops, moves });
})();
if (typeof module !== "undefined") module.exports = globalThis.Loopsched;
"""


@cache
def model_js() -> str:
    """Build the script that defines the one object ``Loopsched``.

    Returns
    -------
    str
        For a classic ``<script>``; it loads nothing and needs no build step.

    Examples
    --------
    >>> text = model_js()
    >>> "globalThis.Loopsched" in text, "http" in text
    (True, False)
    """
    folder = resources.files("loopsched.show.page") / "model"
    texts = [(folder / f"{part}.js").read_text(encoding="utf-8") for part in PARTS]
    return _HEAD + "\n".join(texts) + _TAIL
