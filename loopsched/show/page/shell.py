"""What pages have in common: each is one file of HTML that may load nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

from loopsched.base.version import __version__


def text_of(name: str) -> str:
    """Read a file that pages are made of."""
    return files("loopsched.show.page").joinpath(name).read_text(encoding="utf-8")


def page_html(
    body: str,
    style: str,
    title: str,
    parts: Mapping[str, str],
    *,
    scripts: Sequence[str] = (),
    version: str = __version__,
) -> str:
    """Fill in a page's body, then what is around it; only its style and its scripts may work."""
    more = f" script-src {' '.join(map(_hash, scripts))};" if scripts else ""
    common = {
        "policy": f"default-src 'none'; style-src {_hash(style)};{more} img-src data:; "
        "base-uri 'none'; form-action 'none'",
        "style": style,
        "title": escape(title),
        "version": escape(version),
    }
    return _filled("shell.html", common | {"body": _filled(body, {**common, **parts})})


def _filled(name: str, parts: Mapping[str, str]) -> str:
    # One pass: what is put in is not looked at again, whatever names it holds.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], text_of(name))


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
