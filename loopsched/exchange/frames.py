"""Results as pandas and Polars data frames."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from loopsched.base.arrow_rows import columns
from loopsched.base.errors import InputError, MissingExtraError
from loopsched.base.rows import Row
from loopsched.models.score import Evaluation
from loopsched.network.graph import Network
from loopsched.network.rows import network_rows
from loopsched.problems.footprint import problem_bytes
from loopsched.problems.problem import Problem
from loopsched.problems.workload import Workload
from loopsched.scheduler.result import Result
from loopsched.scheduler.rows import evaluation_row, result_rows
from loopsched.scheduler.tradeoffs import Tradeoff

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def rows_of(source: object) -> list[Row]:
    """Describe anything that has rows by rows of plain values.

    Parameters
    ----------
    source : object
        As for `to_pandas`.

    Returns
    -------
    list of dict
        A result gives one row per schedule; a workload, one per problem.

    Raises
    ------
    InputError
        If it has none.

    Examples
    --------
    >>> from loopsched import gemm
    >>> rows_of([gemm(m=4, n=3, k=2)])[0]["macs"], rows_of({"a": 1})
    (24, [{'a': 1}])
    """
    if isinstance(source, Result):
        return result_rows(source, has_brackets=False)
    if isinstance(source, Evaluation):
        return [evaluation_row(source, has_brackets=False)]
    if isinstance(source, Tradeoff):
        made = {"capacity_bytes": source.capacity_bytes, "schedule": str(source.schedule)}
        return [made | evaluation_row(source.evaluation, has_brackets=False)]
    if isinstance(source, Workload):
        layers = zip(source.problems, source.counts, strict=True)
        return [
            {"layer": number, "count": count, **_problem_row(problem)}
            for number, (problem, count) in enumerate(layers)
        ]
    if isinstance(source, Network):
        return network_rows(source)
    if isinstance(source, Problem):
        return [_problem_row(source)]
    if isinstance(source, Mapping):
        return [dict(source)]
    own = getattr(source, "rows", None)
    if own is not None:
        return [dict(row) for row in (own() if callable(own) else own)]
    if isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        return [row for one in source for row in rows_of(one)]
    raise InputError(f"a {type(source).__name__} has no rows; results, workloads and rows do")


def _problem_row(problem: Problem) -> Row:
    return {
        "problem": problem.name,
        "kind": problem.kind,
        "macs": problem.macs,
        "bytes": problem_bytes(problem),
        "sizes": dict(problem.size),
    }


def flattened(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Spread nested values over columns of their own.

    What a list holds under a ``name`` goes by that name.

    Examples
    --------
    >>> row = {"time_s": 1.0, "levels": [{"name": "L2", "bytes": {"low": 3, "high": 4}}]}
    >>> flattened([row])
    [{'time_s': 1.0, 'L2.bytes.low': 3, 'L2.bytes.high': 4}]
    """
    return [dict(_leaves("", row)) for row in rows]


def _leaves(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(f"{prefix}.{key}" if prefix else str(key), item)
    elif isinstance(value, (list, tuple)) and value and all(_is_named(item) for item in value):
        for item in value:
            rest = {key: one for key, one in item.items() if key != "name"}
            # Levels have names of their own; ``levels.`` before them would say nothing.
            outer = "" if prefix == "levels" else f"{prefix}."
            yield from _leaves(f"{outer}{item['name']}", rest)
    else:
        yield prefix, value


def _is_named(item: object) -> bool:
    return isinstance(item, Mapping) and isinstance(item.get("name"), str)


def to_pandas(source: object, *, flat: bool = True) -> pd.DataFrame:
    """Make a pandas data frame.

    Parameters
    ----------
    source : object
        A `Result`, `Evaluation`, `Problem`, `Workload` or `Network`; points of
        `pareto`; whatever has ``rows``, such as curves, fusion plans and sweeps;
        rows themselves; or an iterable of any of these.
    flat : bool
        Whether nested values get columns of their own, such as
        ``L2.promised_bytes``; otherwise they stay lists and mappings.

    Raises
    ------
    MissingExtraError
        If pandas is not installed.

    See Also
    --------
    to_polars, search_workload

    Examples
    --------
    >>> from loopsched import gemm, load_arch, search
    >>> frame = to_pandas(search(gemm(m=64, n=64, k=64), load_arch("titan_v"), top=2))
    >>> frame[["rank", "dram_bytes", "L2.promised_bytes"]]
       rank  dram_bytes  L2.promised_bytes
    0     1       49152              49152
    1     2       49152              49152
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError(
            "pandas data frames need pandas; install it, or loopsched with the extra 'pandas'"
        ) from None
    found = _columns(source, flat)
    return pd.DataFrame(found).astype(dict.fromkeys(_unfilled(found), "float64"))


def to_polars(source: object, *, flat: bool = True) -> pl.DataFrame:
    """Make a Polars data frame.

    Parameters are those of `to_pandas`.

    Raises
    ------
    MissingExtraError
        If polars is not installed.

    See Also
    --------
    to_pandas

    Examples
    --------
    >>> from loopsched import Workload, gemm
    >>> frame = to_polars(Workload("mine", (gemm(m=4, n=3, k=2), gemm(m=8, n=3, k=2))))
    >>> frame["macs"].sum()
    72
    """
    try:
        import polars as pl
    except ImportError:
        raise MissingExtraError("Polars data frames need polars; install it") from None
    found = _columns(source, flat)
    return pl.DataFrame(found, strict=False).cast(dict.fromkeys(_unfilled(found), pl.Float64))


def _columns(source: object, flat: bool) -> dict[str, list[Any]]:
    rows = rows_of(source)
    return columns(flattened(rows) if flat else rows)


def _unfilled(found: Mapping[str, list[Any]]) -> list[str]:
    """Name the columns without any value: numbers are what is left out."""
    return [name for name, values in found.items() if all(value is None for value in values)]
