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

    Its functions take plain data from ``problem_data``, ``arch_data`` and
    ``schedule_to_dict``: ``evaluate(problem, schedule, arch, options)``, which
    gives ``evaluation_row`` with more per level and tensor;
    ``parseSchedule(text, problem)``, with the library's messages;
    ``formatSchedule(schedule)``; ``moves(before, after)``, a list of lists or
    ``null``; ``loops(problem, schedule, width)``.

    Results equal the library's in every digit: counts that may exceed 2**53
    are ``BigInt``, times and rates take the same operations in the same order,
    and ``problem_data`` contains the communication bounds for every capacity.
    Brackets and tiles placed one by one are not covered.  Dimensions must be
    below 2**53, all tensors together below 2**52 bytes.  A score takes 0.2 ms in
    the median for real layers, tens of milliseconds where a replay is needed.

    Returns
    -------
    str
        For a classic ``<script>``; it loads nothing and needs no build step.

    Examples
    --------
    >>> text = model_js()
    >>> "globalThis.Loopsched" in text, "http" in text
    (True, False)

    In any program that runs JavaScript::

        const text = "M:1024@SM N:1024@SM K:1024 M:128 N:64 K:8";
        const score = Loopsched.evaluate(problem, Loopsched.parseSchedule(text, problem), arch);
        score.dram_bytes;
    """
    folder = resources.files("loopsched.show.page") / "model"
    texts = [(folder / f"{part}.js").read_text(encoding="utf-8") for part in PARTS]
    return _HEAD + "\n".join(texts) + _TAIL
