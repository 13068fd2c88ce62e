"""Every problem, architecture and mapping among Timeloop's exercises: read, or refused and why.

    tar xzf timeloop_exercises.tar.gz -C FOLDER
    python -m benchmarks.timeloop_campaign FOLDER

A mapping is read with the problem and the architecture that stand nearest to it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from loopsched.base.errors import InputError
from loopsched.exchange.timeloop import read_timeloop
from loopsched.exchange.timeloop.reading import read_arch
from loopsched.exchange.timeloop.shapes import read_problem
from loopsched.exchange.timeloop.text import parsed

KINDS = ("problem", "architecture", "mapping")


def sections(path: Path) -> set[str]:
    """Find which sections a file has, by its unindented keys."""
    return set(re.findall(r"^(\w+):", path.read_text(encoding="utf-8"), re.MULTILINE))


def nearest(path: Path, kind: str, known: dict[Path, set[str]]) -> list[Path]:
    """Find the files of a kind that stand nearest to one: in its folder, or in those around."""
    if kind in known[path]:
        return [path]
    for folder in path.parents:
        found = sorted(
            one
            for one, named in known.items()
            if folder in one.parents and kind in named and "mapping" not in named
        )
        own = [one for one in found if "ref" not in str(one.relative_to(folder).parent)]
        if found:
            return own or found
    return []


def attempts(path: Path, known: dict[Path, set[str]]) -> Iterator[list[Path]]:
    """Go through the sets of files that a mapping may be read with."""
    around = [nearest(path, other, known)[:12] for other in ("problem", "architecture")]
    for problem, arch in product(*around):
        yield list(dict.fromkeys([path, problem, arch]))


def judged(path: Path, kind: str, known: dict[Path, set[str]]) -> str:
    """Read what a file says of a kind; empty if that goes, else why not."""
    try:
        data = parsed(path.read_text(encoding="utf-8"), path.parent)
        if kind == "problem":
            read_problem(data[kind], str(path))
        if kind == "architecture":
            read_arch(data[kind], str(path), data.get("variables"))
    except InputError as error:
        return str(error)
    if kind != "mapping":
        return ""
    why = ""
    for files in attempts(path, known):
        try:
            read_timeloop(files)
        except InputError as error:
            why = why or str(error)
        else:
            return ""
    return why or "no problem or architecture beside it"


def main(folder: Path) -> None:
    """Count what is read and what is refused."""
    known = {path: sections(path) for path in sorted(folder.rglob("*.yaml"))}
    tally: Counter[tuple[str, str]] = Counter()
    for path, named in known.items():
        for kind in (one for one in KINDS if one in named):
            why = judged(path, kind, known)
            tally[kind, "refused" if why else "read"] += 1
            if why:
                print(f"{path.relative_to(folder)}: {kind}: {' '.join(why.split())}")
    for (kind, verdict), count in sorted(tally.items()):
        print(f"{kind:12} {verdict:8} {count}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
