"""Choices of configurations held against measured spaces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopsched.base.arguments import Checker
from loopsched.base.csv_text import Value, repeated
from loopsched.base.display import Shown
from loopsched.base.errors import InputError, nearest
from loopsched.base.statistics import rank_correlation
from loopsched.gpu.choice.attention import Attention
from loopsched.gpu.choice.families import FAMILIES, Asked, Family, family_of
from loopsched.gpu.choice.grouped import Grouped
from loopsched.gpu.choice.pick import Ranked, rank
from loopsched.gpu.choice.space import COMPILED, MOST, Space
from loopsched.machines.arch import Arch
from loopsched.machines.arch_file import as_arch
from loopsched.network.selection import problem_of
from loopsched.problems.builders import gemm
from loopsched.problems.convolution import conv2d
from loopsched.validation.csv_files import check, sheet_of, shown

FIRST = (1, 5, 10, 20)
_LIBRARY = "library"
_CONV = ("n", "h", "w", "c", "k", "r", "s", "stride", "padding")


@dataclass(frozen=True, slots=True)
class ChoiceValidation(Shown):
    """What choosing by estimate costs on measured spaces.

    Parameters
    ----------
    rows : tuple of mapping
        The file's rows that count, each with ``estimate_us``, ``bound_us``
        and ``may_be_best``.
    problems : tuple of mapping
        Of each kind, data type and problem: ``configurations``, ``best_us``,
        ``library_us`` where the file has it, ``first_1`` to ``first_20`` (the
        best measured of the first choices over the best measured of all),
        ``rank_correlation``, ``mape``, ``set_share`` (of the space that may be
        best), ``set_holds_best``, ``bound_violations``, ``refused`` (rows that
        were measured, and cannot run by what is known here).
    summary : mapping
        ``file``, ``arch``, ``rows``, and for each kind and data type the
        geometric mean and the worst of each ``first_...``, the largest
        ``set_share``, ``sets_without_best``, ``bound_violations``, ``refused``;
        ``left_out``: rows of each kind that no kernel family here is.
    """

    rows: tuple[Mapping[str, Any], ...]
    problems: tuple[Mapping[str, Any], ...]
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Case:
    """The measured configurations of one problem."""

    family: Family
    data_type: str
    problem: str
    rows: list[dict[str, Value]]
    library_us: float | None


def validate_choices(
    file: str | os.PathLike[str], arch: str | os.PathLike[str] | Arch, *, kernel: str | None = None
) -> ChoiceValidation:
    """Hold choices against a file of measured configurations.

    Parameters
    ----------
    file : str or path
        A CSV file, or ``triton_h100``, which is shipped.  Columns: ``problem``
        (MxNxK, NxHxWxCxKxRxSxstridexpadding, or
        BxHxSxDxcausal, and G if keys have fewer heads; or ``gemm:m=8,n=8,k=8``), the
        kernel's parameters,
        ``time_us`` or ``time_ms`` (empty: did not run); ``kind`` (``gemm``,
        ``conv``, ``attn``) unless a kernel is given; ``data_type`` (if there is none,
        the kernel's usual one).  ``clblast_gemm`` and ``filter`` without
        problems are those of Kernel Tuner's hub: 4096x4096x4096, and 4096 x
        4096 outputs of ``filter_height`` x ``filter_width``; ``registers``,
        ``spills`` and ``shared_bytes`` are used where they stand.  A row whose
        first parameter is ``library`` is what a library takes.
    arch : str, path or Arch
        The machine that was measured.
    kernel : str, optional
        The family, whatever ``kind`` says.

    Raises
    ------
    InputError
        If the file or a row of it cannot be understood; all faults at once.

    Examples
    --------
    >>> found = validate_choices("triton_h100", "h100")
    >>> found.summary["rows"], found.summary["left_out"]
    (7226, {})

    See Also
    --------
    loopsched.pick : what is held against measurements here.
    """
    if kernel is not None:
        checker = Checker("validate_choices", InputError)
        family_of(checker, kernel)
        checker.finish()
    machine = as_arch(arch)
    sheet = sheet_of(file, "spaces")
    where = sheet.where
    check(where, [*repeated(sheet.names), *_missing(sheet.names, kernel)])
    faults: list[str] = []
    left_out: dict[str, int] = {}
    cases = _cases(sheet.rows, kernel, faults, left_out)
    check(where, faults)
    if not cases and not left_out:
        raise InputError(f"{where}: no row has a time")
    if not cases:
        kinds = " ".join(sorted(left_out)) or "none"
        raise InputError(f"{where}: no rows of a kind that is known here; kinds: {kinds}")
    rows: list[Mapping[str, Any]] = []
    problems = []
    for case in cases:
        problem = _problem(case, where)
        judged = _judged(case, problem, machine, rows)
        problems.append(judged)
    return ChoiceValidation(
        tuple(rows), tuple(problems), _summary(where, machine, problems, left_out)
    )


def _missing(names: Sequence[str], kernel: str | None) -> Iterator[str]:
    needed = [] if kernel in _HUB else ["problem"]
    needed += [] if "time_ms" in names else ["time_us"]
    needed += [] if kernel else ["kind"]
    for name in needed:
        if name not in names:
            yield f"no column '{name}'; {nearest(name, names, 'columns')}"


def _cases(
    lines: Sequence[tuple[str, dict[str, Value] | str]],
    kernel: str | None,
    faults: list[str],
    left_out: dict[str, int],
) -> list[_Case]:
    """Sort rows by problem; say what is wrong with them."""
    by_kind = {one.kind: one for one in FAMILIES.values()}
    cases: dict[tuple[str, str, str], _Case] = {}
    libraries: dict[tuple[str, str, str], float] = {}
    for place, line in lines:
        if isinstance(line, str):
            faults.append(f"{place}: {line}")
            continue
        kind = str(line.get("kind"))
        family = FAMILIES[kernel] if kernel else by_kind.get(kind)
        if family is None:
            left_out[kind] = left_out.get(kind, 0) + 1
            continue
        time_us = _time_us(line)
        if time_us is None:
            continue
        line = line | {"time_us": time_us, "problem": _named(line, family)}
        data_type = str(line.get("data_type") or family.data_type)
        key = (family.name, data_type, str(line["problem"]))
        if line.get(family.names[0]) == _LIBRARY:
            if isinstance(time_us, (int, float)):
                libraries[key] = float(time_us)
            continue
        wrong = [
            name
            for name in (*family.names, *(one for one in family.more if line.get(one) is not None))
            if not _is_whole(line.get(name), int(name not in family.switches))
        ]
        wrong += [] if _is_positive(time_us) else ["time_us"]
        if wrong:
            told = ", ".join(f"{name} {shown(line.get(name))}" for name in wrong)
            faults.append(f"{place}: numbers above zero, whole except times, are needed: {told}")
            continue
        case = cases.setdefault(key, _Case(family, data_type, key[2], [], None))
        case.rows.append(line)
    return [
        _Case(one.family, one.data_type, one.problem, one.rows, libraries.get(key))
        for key, one in cases.items()
    ]


def _time_us(line: Mapping[str, Value]) -> Value:
    """Take a row's time; what is no number is left to be told."""
    if "time_us" in line:
        return line["time_us"]
    time_ms = line.get("time_ms")
    return 1e3 * time_ms if isinstance(time_ms, (int, float)) else time_ms


def _named(line: Mapping[str, Value], family: Family) -> Value:
    """Name a row's problem; files of Kernel Tuner's hub have but one, and do not say it."""
    if "problem" in line or family.name not in _HUB:
        return line.get("problem")
    sizes = {"r": line.get("filter_height", 15), "s": line.get("filter_width", 15)}
    if not all(isinstance(one, int) for one in sizes.values()):
        return None
    more = {name: _HUB_OUTPUTS + int(one or 0) - 1 for name, one in sizes.items()}
    return _HUB[family.name].format(**sizes, h=more["r"], w=more["s"])


_HUB_OUTPUTS = 4096
_HUB = {"clblast_gemm": "4096x4096x4096", "filter": "1x{h}x{w}x1x1x{r}x{s}x1x0"}


def _is_positive(value: Value) -> bool:
    return isinstance(value, (int, float)) and 0 < value < np.inf


def _is_whole(value: Value, least: int, most: float = MOST) -> bool:
    """Say whether a value is a whole number, written as 4 or 4.0."""
    return isinstance(value, (int, float)) and least <= value <= most and value % 1 == 0


def problem_named(text: str, family: Family) -> Asked:
    """Read a problem's sizes as measured files write them.

    Raises
    ------
    InputError
        If they are not written so.

    Examples
    --------
    >>> problem_named("64x32x16", FAMILIES["triton_gemm"]).macs
    32768
    """
    if family.kind in ("attn", "decode"):
        attention = Attention.named(text)
        # Files of decoding that say nothing of queries have one a head.
        alone = family.kind == "decode" and not attention.queries
        return replace(attention, queries=1, name=text) if alone else attention
    if family.kind == "grouped":
        return Grouped.named(text)
    if ":" in text:
        return problem_of(text)
    parts = text.split("x")
    needed = len(_CONV) if family.kind in ("conv", "filter") else 3
    if len(parts) != needed or not all(part.isascii() and part.isdigit() for part in parts):
        form = "MxNxK" if needed == 3 else "x".join(_CONV)
        raise InputError(f"problem '{text[:60]}' is not {form}")
    sizes = [int(part) for part in parts]
    if needed == 3:
        m, n, k = sizes
        return gemm(m=m, n=n, k=k, name=text)
    return conv2d(**dict(zip(_CONV, sizes, strict=True)), name=text)  # type: ignore[arg-type]


def _problem(case: _Case, where: str) -> Asked:
    try:
        return problem_named(case.problem, case.family)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _judged(
    case: _Case, problem: Asked, machine: Arch, rows: list[Mapping[str, Any]]
) -> dict[str, Any]:
    given = [name for name in case.family.more if any(row.get(name) for row in case.rows)]
    names = (*case.family.names, *given)
    told = [
        name for name in COMPILED if all(_is_whole(row.get(name), 0, np.inf) for row in case.rows)
    ]
    columns = {
        # Terms are not split where a row does not say so.
        name: np.array([1 if (one := row.get(name)) is None else one for row in case.rows], float)
        for name in (*names, *told)
    }
    ranked = rank(problem, machine, case.family, Space(names, columns), case.data_type)
    kept = [row for row, runs in zip(case.rows, ranked.feasible, strict=True) if runs]
    measured = np.array([row["time_us"] for row in kept], dtype=np.float64)
    estimate = 1e6 * np.maximum(ranked.times.time_s, ranked.cold_s)
    bound_us = 1e6 * ranked.bound_s
    for row, guess, may in zip(kept, estimate, ranked.may_be_best, strict=True):
        rows.append(
            dict(row)
            | {"kind": case.family.kind, "data_type": case.data_type}
            | {"estimate_us": float(guess), "bound_us": bound_us, "may_be_best": bool(may)}
        )
    return _sums(case, ranked, measured, estimate, bound_us)


def _sums(
    case: _Case, ranked: Ranked, measured: Any, estimate: Any, bound_us: float
) -> dict[str, Any]:
    ran = [float(row["time_us"] or 0) for row in case.rows]
    best = min(ran)
    in_order = measured[ranked.order]
    firsts = {f"first_{many}": float(in_order[:many].min()) / best for many in FIRST}
    return {
        "kind": case.family.kind,
        "data_type": case.data_type,
        "problem": case.problem,
        "configurations": len(measured),
        "best_us": best,
        "library_us": case.library_us,
        **firsts,
        "rank_correlation": rank_correlation(estimate.tolist(), measured.tolist()),
        "mape": float(np.mean(np.abs(estimate / measured - 1))),
        "set_share": float(ranked.may_be_best.mean()),
        "set_holds_best": best in measured[ranked.may_be_best],
        "bound_violations": sum(time < bound_us for time in ran),
        "refused": len(ran) - len(measured),
    }


def _summary(
    where: str, machine: Arch, problems: Sequence[Mapping[str, Any]], left_out: Mapping[str, int]
) -> dict[str, Any]:
    groups = []
    for kind, data_type in dict.fromkeys((one["kind"], one["data_type"]) for one in problems):
        mine = [one for one in problems if (one["kind"], one["data_type"]) == (kind, data_type)]
        group: dict[str, Any] = {
            "kind": kind,
            "data_type": data_type,
            "problems": len(mine),
            "rows": sum(one["configurations"] for one in mine),
        }
        for many in FIRST:
            costs = [one[f"first_{many}"] for one in mine]
            group[f"first_{many}"] = float(np.exp(np.mean(np.log(costs))))
            group[f"first_{many}_worst"] = max(costs)
        group["mape"] = float(np.mean([one["mape"] for one in mine]))
        group["set_share"] = max(one["set_share"] for one in mine)
        group["sets_without_best"] = sum(not one["set_holds_best"] for one in mine)
        group["bound_violations"] = sum(one["bound_violations"] for one in mine)
        group["refused"] = sum(one["refused"] for one in mine)
        groups.append(group)
    return {
        "file": where,
        "arch": machine.name,
        "rows": sum(group["rows"] for group in groups),
        "groups": groups,
        "bound_violations": sum(group["bound_violations"] for group in groups),
        "left_out": dict(left_out),
    }
