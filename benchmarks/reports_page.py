"""Write the figures of docs/reports.md from what `loopsched.reproduce` gives.

    python benchmarks/reports_page.py

Each section of the page ends with a mark ``<!-- figures NAME -->``; what follows it, up
to the next section, is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from loopsched.gpu.estimate import Caches
from loopsched.published import Line, Reproduction, report_000, reproduce
from loopsched.published.result import printed

PAGE = Path(__file__).parent.parent / "docs" / "reports.md"
# What the sums of report 003 leave out has a row of its own.
LEFT_OUT_003 = "Convolutions by size of the filter"
# What the tables of report 000 vary, as the page says it.
VARIED = {"block": "block", "channel": "channels", "kernel": "filter", "size": "image"}


def row(*cells: object) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def head(*titles: str) -> list[str]:
    return [row(*titles), "|" + "---|" * len(titles)]


def percent(error: float | None, digits: int = 1) -> str:
    return "" if error is None else f"{100 * error:.{digits}f} %"


def ranked(rank: float | None) -> str:
    return "" if rank is None else f"{rank:.3f}"


def times(found: Reproduction, table: str, group: str) -> tuple[Line, ...]:
    return dict(found.table(table).groups())[group]


def choices_000() -> list[str]:
    """Mean errors of the times of report 000's tables, by what it does not say."""
    tables = printed("report_000")["tables"]
    lines = head("loops over the filter", "caches", *(VARIED[table["name"]] for table in tables))
    for unrolled in (True, False):
        for caches in get_args(Caches):
            errors = []
            for table in tables:
                pairs = zip(table["cases"], table["measured"]["execution_ms"], strict=True)
                off = []
                for value, measured in pairs:
                    problem, block = report_000.case(table["varied"], value)
                    ours = report_000.ours_of(problem, block, caches=caches, unrolled=unrolled)
                    off.append(abs(ours["execution_ms"] / float(measured) - 1))
                errors.append(percent(sum(off) / len(off)))
            lines.append(row("unrolled" if unrolled else "as written", caches, *errors))
    return lines


def figures_000(found: Reproduction) -> list[str]:
    theirs = (
        percent(one.mean_error_theirs) for one in found.summary if one.group == "execution time"
    )
    lines = choices_000()
    return [
        "Mean error of the times:",
        "",
        *lines[:2],
        row("the report's model", "", *theirs),
        *lines[2:],
    ]


def figures_001(found: Reproduction) -> list[str]:
    lines = head("kernel", "measured (ms)", "ours (ms)")
    for line in times(found, "times", "kernel time"):
        lines.append(row(line.row, line.measured, f"{line.ours:.2f}"))
    return lines


def figures_002(found: Reproduction) -> list[str]:
    both = "both layers"
    lines = head("images", f"mean error, {both}", "rank correlation")
    pools = {one.group: one for one in found.summary if not one.table}
    for images in (100, 1000, 10000):
        pool = pools[f"{both}, {images} images"]
        lines.append(row(f"{images:,}", percent(pool.mean_error_ours), ranked(pool.rank_ours)))
    return lines


def figures_003(found: Reproduction) -> list[str]:
    ranks = ("rank correlation: theirs", "ours")
    lines = head("rows", "number: theirs, ours", "mean error: theirs", "ours", *ranks)
    for one in found.summary:
        if one.table and one.table != LEFT_OUT_003:
            continue
        cells = [f"{one.rows_theirs}, {one.rows_ours}"]
        cells += [percent(one.mean_error_theirs), percent(one.mean_error_ours)]
        cells += [ranked(one.rank_theirs), ranked(one.rank_ours)]
        lines.append(row(one.table or f"together: {one.group}", *cells))
    return lines


SECTIONS: dict[str, Callable[[Reproduction], list[str]]] = {
    "000": figures_000,
    "001": figures_001,
    "002": figures_002,
    "003": figures_003,
}


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, section in SECTIONS.items():
        mark = f"<!-- figures {name} -->"
        figures = "\n".join((mark, "", *section(reproduce(f"report_{name}")), ""))
        before, after = text.split(mark)
        rest = re.search(r"^## ", after, re.MULTILINE)
        text = before + figures + (f"\n{after[rest.start() :]}" if rest else "")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
