"""Mutants of the search that claim too much; `claims` holds its logs against them."""

from __future__ import annotations

from .catalogue import MUTANTS
from .mutant import In
from .searching import LEAST

_exact = In("scheduler/exact.py")
_exact.broken(
    "all-floors-a-tenth-higher",
    "every bound is a tenth too high",
    "        self._raise_floor(self.bounds.floor(self.objective))\n",
    "        self._raise_floor(1.1 * self.bounds.floor(self.objective))\n",
)
_exact.broken(
    "proven-if-nothing-better-came",
    "the best that was found counts as proven",
    "    proven = proven or best <= searcher.floor or (listed and is_whole(space))\n",
    "    proven = True\n",
)
_bounds = In("scheduler/level_bounds.py")
_bounds.broken(
    "output-read-once-more",
    "where nothing fits, the output's first visits are read",
    "                total += moved - once\n",
    "                total += moved\n",
)
_bounds.broken(
    "passing-counts-twice",
    "what passes a level is bounded by twice as much",
    "            least += self._passing_bytes(level, room.passing)\n",
    "            least += 2 * self._passing_bytes(level, room.passing)\n",
)
_bounds.broken(
    "own-bound-counts-beside",
    "bytes that no order avoids are added to the bound of bodies",
    "        return max(least, least_bytes(self.problem, self.arch, level))\n",
    "        return least + least_bytes(self.problem, self.arch, level)\n",
)
_bounds.broken(
    "unfitting-never-fits",
    "a cache that cannot serve all units at once never keeps anything",
    "            least = min(least, self._unfitting_bytes(level))\n",
    "            least = max(least, self._unfitting_bytes(level))\n",
)
_bounds.broken(
    "edp-of-the-largest",
    "energy times time is bounded by energy times its own square root, too",
    'return energy if objective == "energy" else energy * self._time_floor()',
    'return energy if objective == "energy" else energy * max(energy**0.5, 1)',
)
_bounds.broken(
    "bodies-need-half",
    "bodies that take more than half of a level are left out of bounds",
    "self._body_of(tables, room or room_of(self.problem, level), keeps, below)",
    "self._body_of(tables, replace(room or room_of(self.problem, level), shared_bytes="
    "room_of(self.problem, level).shared_bytes // 2), keeps, below)",
)
_bounds.broken(
    "bodies-need-one-byte-more",
    "bodies that fill a level are left out of bounds",
    "self._body_of(tables, room or room_of(self.problem, level), keeps, below)",
    "self._body_of(tables, replace(room or room_of(self.problem, level), shared_bytes="
    "room_of(self.problem, level).shared_bytes - 1), keeps, below)",
)
_least = In("scheduler/least.py")
_least.broken(
    "pieces-meet-once-more",
    "n pieces meet at n places",
    "-(-whole // np.array(each)) - 1 for whole",
    "-(-whole // np.array(each)) for whole",
)
_least.broken(
    "overlaps-add-up",
    "overlaps along two dimensions are added",
    "    found = np.maximum.outer(alone[0], alone[1])\n",
    "    found = np.add.outer(alone[0], alone[1])\n",
)
_least.broken(
    "halos-one-wider",
    "pieces beside each other share one position more",
    "            return cls(none, width - step)\n",
    "            return cls(none, width - step + 1)\n",
)
_kernels = In("scheduler/kernels.py")
_kernels.broken(
    "two-pieces-are-twice-as-long",
    "two pieces beside each other are both whole in bounds",
    "                d1 = min(n1 + 1, whole1) if along == 0 else n1\n",
    "                d1 = min(2 * n1, whole1) if along == 0 else n1\n",
)
_kernels.broken(
    "windows-of-three",
    "reuse along several loops needs three bodies",
    "    if between > 1:\n        return int(2 * one[b])\n",
    "    if between > 1:\n        return int(3 * one[b])\n",
)
_kernels.broken(
    "untouched-bodies-twice",
    "what a loop does not index takes room twice",
    "    if touching == 0:\n        return int(one[b])\n",
    "    if touching == 0:\n        return int(2 * one[b])\n",
)
_body = In("scheduler/body.py")
_body.broken(
    "runs-of-the-first-dimension",
    "runs are known for the first of their dimensions only",
    "            for dim in run:\n",
    "            for dim in run[:1]:\n",
)
_body.broken(
    "first-class-only",
    "of all classes of orders the last is left out",
    "    return class_rows(dims, len(tensors), chosen, halo_reuse)\n",
    "    return class_rows(dims, len(tensors), chosen[:-1] or chosen, halo_reuse)\n",
)
_body.broken(
    "copies-always-two",
    "every body needs its room twice",
    "kernels.Buffer(room.shared_bytes, own, keeps.copies, keeps.is_guaranteed)",
    "kernels.Buffer(room.shared_bytes, own, 2, keeps.is_guaranteed)",
)
_orders = In("scheduler/orders.py")
_orders.broken(
    "no-slides",
    "no order lets a window slide",
    "                    slide = dim if dim in sliding else None\n",
    "                    slide = None\n",
)
_orders.broken(
    "order-skipped",
    "one dimension is never innermost",
    "    for dim in rest:\n        yield from _prefixes(",
    "    for dim in rest[1:] or rest:\n        yield from _prefixes(",
)
_tables = In("scheduler/tables.py")
_tables.broken(
    "whole-extent-lost",
    "the smallest extent is not tried",
    "(-(-longest // e))) for e in classes}, reverse=True))\n",
    "(-(-longest // e))) for e in classes - {1}} or {1}, reverse=True))\n",
)
_tables.broken(
    "weights-off-by-the-output",
    "the output's bytes count three times",
    "[size + size * (name == problem.output) for",
    "[size + 2 * size * (name == problem.output) for",
)
_tables.broken(
    "first-visits-cost",
    "the output's first visits are read",
    "        constant=tensor_bytes(problem, problem.output_tensor),\n",
    "        constant=0,\n",
)
_items = In("scheduler/items.py")
_items.broken(
    "item-sizes-skipped",
    "every second way to cut items is left out",
    "    return tuple(sorted(found, key=lambda cut: (-cut.extent, -cut.listed)))\n",
    "    return tuple(sorted(found, key=lambda cut: (-cut.extent, -cut.listed)))[::2]\n",
)

_SCORES = tuple(
    f"loopsched/{file}.py"
    for file in (
        "models/buffer", "models/compute", "models/machine", "models/reuse", "models/score",
        "models/traffic", "models/view", "scheduler/body", "scheduler/exact",
        "scheduler/items", "scheduler/kernels", "scheduler/level_bounds", "scheduler/orders",
        "scheduler/placement", "scheduler/tables", "scheduler/waves",
    )
)  # fmt: skip

OVERCLAIMING = (
    *(one for one in MUTANTS if one.file in _SCORES),
    *LEAST,
    *(one for file in (_exact, _bounds, _least, _kernels, _body, _orders, _tables, _items)
      for one in file.mutants),
)  # fmt: skip
