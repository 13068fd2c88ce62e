"""What is simulated: one cache under the memory, or all caches of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, Literal, TypedDict, get_args

from loopsched.base.arguments import Checker, is_count, show
from loopsched.base.errors import InputError, gathered
from loopsched.base.keywords import object_of, refuse_unknown
from loopsched.base.units import format_capacity
from loopsched.machines.arch import Arch

Policy = Literal["lru", "random", "belady"]
WritePolicy = Literal["back", "through"]
Sees = Literal["misses", "all"]
Instances = Mapping[str, int] | int | None


@dataclass(frozen=True, slots=True)
class Cache:
    """One cache under the memory.

    Parameters
    ----------
    capacity_bytes : int, bytes
    line_bytes : int, bytes, optional
        Move whole lines of memory.  By default single elements are moved, and
        it does not matter where they lie.
    ways : int, optional
        Lines per set of a set-associative cache. By default, it is fully associative.
    policy : {'lru', 'random', 'belady'}
        What is evicted: the least recently used; one at random, in sets; or what is next
        used furthest in the future, which gives the fewest misses (where all elements have
        one size; write-backs may be more than necessary).
    write_policy : {'back', 'through'}
        Whether written data wait for their eviction, or are passed on at once, too.
    instances : mapping of unit to int, or int, optional
        How many items of spatial loops work at once on the cache.  By default
        they come one after the other.
    seed : int
        Seed of random replacement.

    Raises
    ------
    InputError
        With everything that cannot be.

    See Also
    --------
    simulate, Caches

    Examples
    --------
    >>> Cache(capacity_bytes=32768, line_bytes=64, ways=8).ways
    8
    """

    capacity_bytes: int
    line_bytes: int | None = None
    ways: int | None = None
    policy: Policy = "lru"
    write_policy: WritePolicy = "back"
    instances: Instances = None
    seed: int = 0

    def __post_init__(self) -> None:
        check = Checker("cache", InputError)
        check.choice("policy", self.policy, get_args(Policy))
        check.choice("write_policy", self.write_policy, get_args(WritePolicy))
        if not is_count(self.seed, 1 - 2**63, 2**63 - 1):
            check.fault(f"seed is {show(self.seed)}; a whole number of at most 63 bits is needed")
        capacity = check.count("capacity_bytes", self.capacity_bytes, 0)
        line = check_line(check, self.line_bytes)
        check_room(check, line, capacity)
        if self.ways is not None:
            self._check_sets(check, capacity, line)
        elif self.policy == "random":
            check.fault("policy 'random' picks victims within a set; give ways (and line_bytes)")
        check.finish()

    def _check_sets(self, check: Checker, capacity: int, line: int) -> None:
        a_set = line * check.count("ways", self.ways)
        if not line:
            check.fault("ways are lines of a set; give line_bytes, too")
        elif self.policy == "belady":
            check.fault("policy 'belady' is that of a fully associative cache; leave out ways")
        elif capacity % a_set or not capacity:
            check.fault(
                f"capacity_bytes is {show(self.capacity_bytes)}; a multiple of ways * line_bytes "
                f"= {a_set} is needed"
            )
        elif capacity // line > 2**30:
            check.fault(f"capacity_bytes is {show(self.capacity_bytes)}: more than 2**30 lines")


@dataclass(frozen=True, slots=True)
class Caches:
    """All caches of a machine, wave by wave; an `Arch` alone stands for them, too.

    Parameters
    ----------
    arch : Arch
    line_bytes : int, bytes, optional
        As of a `Cache`, at all levels.
    sees : {'misses', 'all'}
        What an outer level sees: what inner levels ask for, or, as
        the brackets of `loopsched.evaluate` do, all accesses.
    warm : bool
        Whether caches that units own keep their contents from item to item.
        By default each item finds them empty.

    Raises
    ------
    InputError
        With everything that cannot be, such as lines larger than one of the
        caches.

    See Also
    --------
    simulate, Cache
    """

    arch: Arch
    line_bytes: int | None = None
    sees: Sees = "misses"
    warm: bool = False

    def __post_init__(self) -> None:
        check = Checker("caches", InputError)
        if not isinstance(self.arch, Arch):
            check.fault(f"arch is {show(self.arch)}; an Arch is needed, as load_arch returns")
        check.choice("sees", self.sees, get_args(Sees))
        check.flag("warm", self.warm)
        line = check_line(check, self.line_bytes)
        if isinstance(self.arch, Arch):
            for level in self.arch.caches:
                if level.usable_bytes is not None:
                    check_room(check, line, level.usable_bytes, f" of {level.name}")
        check.finish()


class Fields(TypedDict, total=False):
    """The fields of a `Cache` and of `Caches`, as keyword arguments."""

    capacity_bytes: int | None
    line_bytes: int | None
    ways: int | None
    policy: Policy
    write_policy: WritePolicy
    instances: Instances
    seed: int
    arch: Arch | None
    sees: Sees
    warm: bool


def simulated(cache: Cache | Caches | Arch | None, given: Mapping[str, Any]) -> Cache | Caches:
    """Make what is simulated of what `loopsched.simulate` is given.

    Raises
    ------
    InputError
        If there is nothing to simulate, or fields of both; or an argument cannot be.
    """
    every: dict[str, Field[Any]] = {one.name: one for kind in _KINDS for one in fields(kind)}
    refuse_unknown(given, list(every), "simulate")
    named = {
        name: value
        for name, value in given.items()
        if value != (None if every[name].default is MISSING else every[name].default)
    }
    if isinstance(cache, Arch):
        cache = Caches(cache)
    if cache is not None and not isinstance(cache, _KINDS):
        needed = "a Cache, Caches or an Arch is needed, or a size as capacity_bytes="
        raise InputError.joined("simulate", [f"found {show(cache)}; {needed}"])
    is_machine = "arch" in named or isinstance(cache, Caches)
    kind: type[Cache | Caches] = Caches if is_machine else Cache
    own = {one.name for one in fields(kind)}
    faults = []
    if cache is None and is_machine == ("capacity_bytes" in named):
        both = "both are" if is_machine else "neither is"
        faults.append(f"capacity_bytes and arch: {both} given; give exactly one")
    for name in (name for name in named if name not in own and name != "capacity_bytes"):
        whose = "a single cache (capacity_bytes=) has"
        whose = whose if is_machine else "the caches of a machine (arch=) have"
        faults.append(f"{name}: only {whose} it; leave it out")
    with gathered(faults):
        if cache is not None or {"capacity_bytes", "arch"} & named.keys():
            kept = {name: value for name, value in given.items() if name in own}
            found: Cache | Caches = object_of(kind, cache, kept, "simulate")
    InputError.refuse("simulate", faults)
    return found


_KINDS: tuple[type[Cache], type[Caches]] = (Cache, Caches)


def check_line(check: Checker, line_bytes: object) -> int:
    """Check the length of lines; 0: elements are moved."""
    if line_bytes is None:
        return 0
    line = check.count("line_bytes", line_bytes)
    if line & (line - 1) or line > 2**20:
        check.fault(f"line_bytes is {show(line_bytes)}; a power of two up to 2**20 is needed")
    return line


def check_room(check: Checker, line: int, capacity: int, of: str = "") -> None:
    """Refuse lines that no cache of a capacity can hold; a capacity of 0 is no cache."""
    if 0 < capacity < line:
        check.fault(
            f"line ({format_capacity(line)}) is above the capacity{of} "
            f"({format_capacity(capacity)})"
        )
