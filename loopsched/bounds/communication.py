"""Communication lower bounds: bytes that no order of execution can avoid.

Cut any execution into n phases of equal work.  What a phase touches has a least
size, because few elements allow few multiply-accumulates, and at most a full
fast memory of it is there when the phase begins.  So

    reads of inputs + writes of the output  >=
    bytes touched, summed over phases  -  (n - 1) * capacity

for every n.  n = 1 is compulsory traffic; for large products of matrices the
best n gives 2*M*N*K/sqrt(S) + S.  Proofs are in docs/lower_bounds.md.  Floating
point only chooses n and the prices that enter; the bound itself is computed in
whole numbers and rounded to the safe side.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from loopsched.base.arguments import is_count, show
from loopsched.base.errors import ProblemError
from loopsched.bounds.inequalities import Inequality, inequalities, root_above
from loopsched.problems.footprint import axis_count
from loopsched.problems.problem import MAX_MACS, Problem, Tensor

# Prices are whole multiples of 1 / _SCALE of a byte for each byte.
_SCALE = 2**20
# Far more than floating point is off by, as a share.
_ROUNDING = 1e-6

_COMPULSORY = "every element that is touched is moved once"
_GEMM = "Smith et al., arXiv:1702.02017, with the improvements of docs/lower_bounds.md"
_CONV = "Demmel and Dinh, arXiv:1802.06905; Chen et al., arXiv:1911.05662; exact constants here"
_ANY = "Christ et al., arXiv:1308.0068, product case; exact constants here"


@dataclass(frozen=True, slots=True)
class CommunicationBound:
    """Least traffic between a memory and everything inside of it.

    Parameters
    ----------
    bytes : int
        Reads and writes together; the sum of the two below.
    read_bytes : int
        Reads alone: the fast memory starts empty; a flush at the end changes nothing.
    write_bytes : int
        Writes alone, the flush at the end included.
    compulsory_bytes : int
        What remains however large the fast memory is.
    capacity_bytes : int
        Size of the fast memory.
    n_phases : int
        Phases into which the proof cuts an execution; 1: compulsory.
    method : str
        The argument, in words.
    reference : str
        Where it comes from.

    See Also
    --------
    communication_bound

    Examples
    --------
    >>> from loopsched import gemm
    >>> found = communication_bound(gemm(m=512, n=512, k=512), 65_536)
    >>> found.bytes, found.read_bytes, found.write_bytes
    (8454144, 7405568, 1048576)
    """

    bytes: int
    read_bytes: int
    write_bytes: int
    compulsory_bytes: int
    capacity_bytes: int
    n_phases: int
    method: str
    reference: str

    @property
    def unflushed_write_bytes(self) -> int:
        """Writes that happen even if what is dirty at the end stays inside."""
        return max(0, self.write_bytes - self.capacity_bytes)


def communication_bound(problem: Problem, capacity_bytes: int) -> CommunicationBound:
    """Bound the traffic of every order of execution from below.

    Every point of the problem is computed once, in any order and with any choice of what is
    kept in a fast memory of ``capacity_bytes``; sums are accumulated in place.  Reads and
    writes of the memory behind it are counted as everywhere in loopsched: an output that is
    brought in u times is read u - 1 times and written u times.

    Parameters
    ----------
    problem : Problem
    capacity_bytes : int, bytes
        *All* that can hold data inside the boundary: for the DRAM of a real
        machine the nominal sizes of L2, of all L1s and of all registers.

    Raises
    ------
    ProblemError
        If the capacity is not a whole number of bytes, 0 or more.

    See Also
    --------
    traffic_curve, search

    Notes
    -----
    Never rises with the capacity.  Proofs: docs/lower_bounds.md.  An algorithm
    with fewer multiplications, or one that stores products of two inputs on
    the way to products of three, is another problem.

    References
    ----------
    T. M. Smith et al., *A Tight I/O Lower Bound for Matrix Multiplication*, arXiv:1702.02017;
    M. Christ et al., *Communication Lower Bounds and Optimal Algorithms for Programs That
    Reference Arrays*, arXiv:1308.0068.

    Examples
    --------
    >>> from loopsched import conv2d, gemm
    >>> communication_bound(gemm(m=4096, n=4096, k=4096), 4_718_592).bytes
    510881458
    >>> found = communication_bound(conv2d(c=256, k=256, p=56, q=56, r=3, s=3), 98_304)
    >>> round(found.bytes / found.compulsory_bytes, 2)
    3.5
    """
    if not is_count(capacity_bytes, 0):
        raise ProblemError(
            f"capacity_bytes is {show(capacity_bytes)}; a whole number >= 0 is needed"
        )
    return _bound(problem, capacity_bytes)


@lru_cache(maxsize=1024)
def _bound(problem: Problem, capacity_bytes: int) -> CommunicationBound:
    part, family = _argument(problem)
    best, n_phases, chosen = sum(part.touched), 1, None
    for inequality, known in family if capacity_bytes < best else ():
        found, n = _best(part, inequality, known, capacity_bytes, best)
        if found > best:
            best, n_phases, chosen = found, n, inequality
    names = [tensor.name for tensor in problem.tensors]
    written = part.copies * part.touched[names.index(problem.output)]
    method, reference = _words(problem, part, n_phases, chosen)
    return CommunicationBound(
        bytes=part.copies * best,
        read_bytes=part.copies * best - written,
        write_bytes=written,
        compulsory_bytes=part.copies * sum(part.touched),
        capacity_bytes=capacity_bytes,
        n_phases=n_phases,
        method=method,
        reference=reference,
    )


def _words(
    problem: Problem, part: _Part, n_phases: int, chosen: Inequality | None
) -> tuple[str, str]:
    if chosen is None:
        return _COMPULSORY, "by definition"
    shape = (chosen.powers, chosen.root)
    terms = [
        (f"|{tensor.name}|", power, chosen.root)
        for tensor, power in zip(problem.tensors, chosen.powers, strict=True)
    ]
    if chosen.factor > 1:
        terms.insert(0, (str(chosen.factor), 1, chosen.root))
    most = " ".join(_power(*term) for term in terms if term[1])
    each = f"each of {part.copies} independent parts in " if part.copies > 1 else ""
    what = "multiply-accumulates" if chosen.grain == 1 else "weighted multiply-accumulates"
    method = f"{each}{n_phases} phases of equal work; {what} of a phase <= {most}"
    if shape != ((1, 1, 1), 2):
        return method, _ANY
    return method, _GEMM if chosen.factor == 1 else _CONV


def _power(base: str, power: int, root: int) -> str:
    if power % root:
        return f"{base}^({power}/{root})"
    return base if power == root else f"{base}^{power // root}"


@dataclass(frozen=True, slots=True)
class _Part:
    """One of the equal parts of a problem that share no data; ``touched`` in bytes, a tensor."""

    copies: int
    size: dict[str, int]
    widths: tuple[int, ...]
    touched: tuple[int, ...]


# Bytes that n phases touch, but for rounding, and their level, by n: the same at all capacities.
_Touched = dict[int, tuple[float, float]]


@lru_cache(maxsize=64)
def _argument(problem: Problem) -> tuple[_Part, tuple[tuple[Inequality, _Touched], ...]]:
    """Find what bounds at all capacities have in common."""
    part = _part_of(problem)
    return part, tuple((inequality, {}) for inequality in inequalities(problem, part.size))


def _part_of(problem: Problem) -> _Part:
    """Take the dimensions that index everything apart: their iterations share no data."""
    shared = [dim for dim in problem.dims if all(_is_alone(t, dim) for t in problem.tensors)]
    size = problem.size
    copies = math.prod(size[dim] for dim in shared)
    inner = {dim: 1 if dim in shared else extent for dim, extent in size.items()}
    elems = tuple(
        math.prod(axis_count(axis, {}, inner) for axis in tensor.axes) for tensor in problem.tensors
    )
    widths = tuple(tensor.element_bytes for tensor in problem.tensors)
    touched = tuple(n * width for n, width in zip(elems, widths, strict=True))
    return _Part(copies, inner, widths, touched)


def _is_alone(tensor: Tensor, dim: str) -> bool:
    return any(axis.dims == (dim,) and axis.size is None for axis in tensor.axes)


def _best(
    part: _Part, inequality: Inequality, known: _Touched, capacity: int, above: int
) -> tuple[int, int]:
    """Find the best bound and its number of phases; (0, 1) if none is above ``above``."""

    def about(n: int) -> float:
        if n not in known:
            level = _level(part, inequality, n)
            known[n] = sum(_shares(part, inequality, n, level)), level
        return known[n][0] - (n - 1.0) * capacity

    tried: list[int] = []
    for n in _phase_counts()[: bisect_right(_phase_counts(), inequality.work)]:
        tried.append(n)
        if about(n) <= capacity:
            break  # a phase's share fits inside and shrinks further: more phases gain nothing
    likely: set[int] = set()
    for place in sorted(range(len(tried)), key=lambda place: -about(tried[place]))[:2]:
        low, high = tried[max(0, place - 1)], tried[min(len(tried) - 1, place + 1)]
        while high - low > 2:  # between two steps there is one peak
            middle = (low + high) // 2
            low, high = (low, middle + 1) if about(middle) >= about(middle + 1) else (middle, high)
        likely.update(range(low, high + 1))
    found = (
        (_touched_at_least(part, inequality, n, known[n][1]) - (n - 1) * capacity, n)
        for n in likely
        if about(n) > above - _ROUNDING * known[n][0] - n  # whole numbers are not above it by more
    )
    return max(found, default=(0, 1))


@lru_cache(maxsize=1)
def _phase_counts() -> tuple[int, ...]:
    """List numbers of phases to begin with: steps of a third."""
    counts = [1]
    while counts[-1] < MAX_MACS:
        counts.append(counts[-1] + max(1, counts[-1] // 3))
    return tuple(counts)


def _shares(part: _Part, inequality: Inequality, n: int, level: float) -> list[float]:
    """Least bytes of each tensor that n phases touch together, but for rounding."""
    return [
        min(max(power * level, d), n * d) if power else float(d)
        for power, d in zip(inequality.powers, part.touched, strict=True)
    ]


def _level(part: _Part, inequality: Inequality, n: int) -> float:
    """Find how much of each tensor, per power, n phases of equal work must touch.

    The least sum has shares in the ratio of the powers; but no tensor is
    touched less than once over all phases, nor more than once in each.
    """
    work = inequality.work / n - (inequality.grain if inequality.grain > 1 else 0)
    if work <= 0:
        return 0.0
    active = [
        (power, d, math.log(n * width))
        for power, d, width in zip(inequality.powers, part.touched, part.widths, strict=True)
        if power and d
    ]
    target = inequality.root * math.log(work) - math.log(inequality.factor)
    target += sum(power * log for power, _, log in active)

    def reached(level: float) -> float:  # some thousand times a bound: no generator
        total = 0.0
        for power, d, _ in active:
            share = power * level
            total += power * math.log(d if share < d else min(share, n * d))
        return total

    begin = 0.0
    for end in sorted({edge for power, d, _ in active for edge in (d / power, n * d / power)}):
        if reached(end) >= target:
            free = sum(power for power, d, _ in active if d / power <= begin < n * d / power)
            return begin * math.exp((target - reached(begin)) / free) if free else begin
        begin = end
    return begin


def _touched_at_least(part: _Part, inequality: Inequality, n: int, level: float) -> int:
    """Bound from below, in whole bytes, what n phases of equal work touch together.

    By weak duality any prices beta_i will do; these are the best, a_i L / X_i, but for rounding.
    For X_i >= D_i and beta_i <= 1, X_i >= (1 - beta_i) D_i + beta_i X_i; for X_i <= n D_i and
    beta_i > 1, X_i >= beta_i X_i - (beta_i - 1) n D_i.
    """
    shares = _shares(part, inequality, n, level)
    prices, total = [], 0
    for power, share, d, width in zip(
        inequality.powers, shares, part.touched, part.widths, strict=True
    ):
        price = round(power * level / share * _SCALE) if power and share else 0
        prices.append(price * width)
        # Cheap tensors: each of their bytes is touched at least once; dear ones: at most n times.
        total += (_SCALE - price) * d * (1 if price <= _SCALE else n)
    total += sum(many * _cost(inequality, prices, work) for work, many in _phases(inequality, n))
    return -(-total // _SCALE)


def _phases(inequality: Inequality, n: int) -> Iterator[tuple[int, int]]:
    """Cut the work into n phases: the work that some have at least, and how many."""
    work, more = divmod(inequality.work, n)
    if inequality.grain > 1:  # points are not cut: a phase may miss the work of one
        yield max(0, work - inequality.grain), n
    else:
        yield work, n - more
        yield work + 1, more


def _cost(inequality: Inequality, prices: Sequence[int], work: int) -> int:
    """Least price of the elements that so much work touches.

    By the inequality of arithmetic and geometric means, weighted with powers a_i that add up to
    e: sum of p_i x_i >= e * (work^q / C * product of (p_i / a_i)^a_i)^(1/e).
    """
    degree = inequality.degree
    above = degree**degree * work**inequality.root
    below = inequality.factor
    for power, price in zip(inequality.powers, prices, strict=True):
        above *= price**power
        below *= power**power
    return root_above(-(-above // below), degree)
