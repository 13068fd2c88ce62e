"""What a sweep says about machines: totals, the best of them, and the front."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from loopsched.base.rows import Row

_VALUES = {"time": "time_s", "dram_bytes": "dram_bytes", "energy": "energy_pj"}


@dataclass(slots=True)
class _Sum:
    """A workload on a machine, searched for one objective."""

    numbers: tuple[float | None, ...]
    base: str
    n_wanted: int
    times: list[float] = field(default_factory=list)
    energies: list[float] = field(default_factory=list)
    products: list[float] = field(default_factory=list)
    dram_bytes: int = 0
    n_layers: int = 0
    n_failed: int = 0
    n_proven: int = 0
    error: str | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a layer, as often as it occurs."""
        self.n_layers += 1
        if row["error"] is not None:
            self.n_failed += 1
            self.error = self.error or f"{row['problem']}: {row['error']}"
            return
        count = row["count"]
        self.times.append(count * row["time_s"])
        self.dram_bytes += count * row["dram_bytes"]
        self.n_proven += row["proven"]
        if row["energy_pj"] is not None:
            self.energies.append(count * row["energy_pj"])
            self.products.append(count * row["energy_pj"] * row["time_s"])

    def row(self) -> Row:
        """Describe the sums by plain values."""
        return {
            "time_s": math.fsum(self.times),
            "dram_bytes": self.dram_bytes,
            "energy_pj": math.fsum(self.energies) if self.energies else None,
            "layers": max(self.n_wanted, self.n_layers),
            "missing": max(self.n_wanted - self.n_layers, 0),
            "failed": self.n_failed,
            "proven": self.n_proven,
            "error": self.error,
        }

    def value(self, objective: str) -> float:
        """Read off what was searched for; a machine on which a layer fails is no choice.

        Neither is one that has not all layers yet.
        """
        if self.n_failed or self.n_layers < self.n_wanted:
            return math.inf
        if objective == "edp":
            return math.fsum(self.products)
        return float(self.row()[_VALUES[objective]] or 0.0)


def machine_rows(
    rows: Iterable[Mapping[str, Any]], keys: Sequence[str], layers: Mapping[str, int] | None = None
) -> list[Row]:
    """Sum the best schedules of every workload on every machine, the best machine first.

    Parameters
    ----------
    rows : iterable of dict
        Results of a sweep.
    keys : sequence of str
        Numbers of the machines that were varied.
    layers : dict, optional
        How many each workload has; by default, those that the rows have.

    Returns
    -------
    list of dict
        One for each workload, objective and machine.  ``place`` is 1 for the
        best; there is none where layers fail (``error`` says why the first
        does) or are ``missing`` yet.  ``relative`` is how many times worse
        than the best; ``is_front`` says that no variation of the same machine
        is as good with none of the varied numbers greater and one of them
        less, or better with none greater.

    Examples
    --------
    >>> row = {"base": "a", "workload": "w", "objective": "time", "rank": 1, "count": 2,
    ...        "dram_bytes": 8, "proven": True, "energy_pj": None, "error": None}
    >>> rows = [{**row, "arch": "slow", "L2.capacity": 64.0, "time_s": 0.5},
    ...         {**row, "arch": "fast", "L2.capacity": 96.0, "time_s": 0.25}]
    >>> for one in machine_rows(rows, ["L2.capacity"]):
    ...     print(one["place"], one["arch"], one["time_s"], one["relative"], one["is_front"])
    1 fast 0.5 1.0 True
    2 slow 1.0 2.0 True
    """
    groups: dict[tuple[str, str], dict[str, _Sum]] = {}
    for row in rows:
        if row["rank"] is not None and row["rank"] > 1:
            continue
        group = groups.setdefault((row["workload"], row["objective"]), {})
        if row["arch"] not in group:
            wanted = (layers or {}).get(row["workload"], 0)
            group[row["arch"]] = _Sum(tuple(row[key] for key in keys), row["base"], wanted)
        group[row["arch"]].add(row)
    found: list[Row] = []
    for (workload, objective), sums in groups.items():
        head = {"workload": workload, "objective": objective}
        found += [{**head, **one} for one in _placed(sums, objective, keys)]
    return found


def _placed(sums: Mapping[str, _Sum], objective: str, keys: Sequence[str]) -> Iterator[Row]:
    values = {name: one.value(objective) for name, one in sums.items()}
    other = "time" if objective == "dram_bytes" else "dram_bytes"
    order = sorted(sums, key=lambda name: (values[name], sums[name].value(other)))
    best = values[order[0]]
    front = _front(sums, values)
    for place, name in enumerate(order, 1):
        one = sums[name]
        known = math.isfinite(values[name])
        yield {
            "place": place if known else None,
            "arch": name,
            "base": one.base,
            **dict(zip(keys, one.numbers, strict=True)),
            **one.row(),
            "relative": (values[name] / best if best else 1.0) if known else None,
            "is_front": known and name in front,
        }


def _front(sums: Mapping[str, _Sum], values: Mapping[str, float]) -> set[str]:
    """Find the machines of each base that no other one beats.

    One machine beats another if it asks for no more, gives no less, and
    differs in one of these.
    """
    points: dict[str, list[tuple[tuple[float, ...], str]]] = {}
    for name, one in sums.items():
        # A number that a machine has not is one that its variations have not either.
        point = (values[name], *(number or 0.0 for number in one.numbers))
        points.setdefault(one.base, []).append((point, name))
    found = set()
    for group in points.values():
        # In this order the first that beats a machine comes before it, and is of the front.
        front = np.empty((len(group), len(group[0][0])))
        size = 0
        for point, name in sorted(group):
            rivals = front[:size]
            no_worse = (rivals <= point).all(axis=1)
            if (no_worse & (rivals < point).any(axis=1)).any():
                continue
            front[size] = point
            size += 1
            found.add(name)
    return found
