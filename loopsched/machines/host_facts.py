"""What an operating system says of the CPU, whichever it is."""

from __future__ import annotations

from dataclasses import dataclass

from loopsched.machines.cpu import FEATURES
from loopsched.machines.microarchitectures import Core


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache as the cores in use see it: how many there are of it, and where that is from."""

    level: int
    capacity_bytes: int
    instances: int
    line_bytes: int
    ways: int | None
    source: str


@dataclass(frozen=True, slots=True)
class Host:
    """A machine as it was found.

    Parameters
    ----------
    title : str
        The processor's name for itself.
    identity : str
        Its vendor, family and model.
    isa : {'x86-64', 'aarch64'}
    core : Core or None
        What is known of such cores.
    features : tuple of str
        In LLVM's words, those that bear on code.
    vector_bytes : int, bytes
    cores : tuple of int
        Numbers of the logical CPUs used, one of each core; empty where the
        system does not number them.
    n_cores : int
    caches : tuple of Cache
        Outermost first.
    page_bytes : int, bytes
    clock_hz, max_clock_hz : float or None, hertz
        None: the system does not say.
    n_sockets : int
    read : dict of str to str
        Where what was read is from: ``cores``, ``features``, ``page``, ``clock``.
    notes : tuple of str
        What a reader of results should know.
    """

    title: str
    identity: str
    isa: str
    core: Core | None
    features: tuple[str, ...]
    vector_bytes: int
    cores: tuple[int, ...]
    n_cores: int
    caches: tuple[Cache, ...]
    page_bytes: int
    clock_hz: float | None
    max_clock_hz: float | None
    n_sockets: int
    read: dict[str, str]
    notes: tuple[str, ...] = ()


_ARM_WORDS = {
    "fp": "fp-armv8",
    "asimd": "neon",
    "atomics": "lse",
    "asimdrdm": "rdm",
    "crc32": "crc",
    "asimdhp": "fullfp16",
    "asimdfhm": "fp16fml",
    "asimddp": "dotprod",
    "fcma": "complxnum",
    "jscvt": "jsconv",
    "lrcpc": "rcpc",
}


def llvm_features(isa: str, words: str) -> tuple[str, ...]:
    """Translate a line of flags of /proc/cpuinfo into LLVM's names, in their order.

    Examples
    --------
    >>> llvm_features("x86-64", "fpu sse4_2 avx2 avx512_bf16 amx_tile")
    ('sse4.2', 'avx2', 'avx512bf16', 'amx-tile')
    >>> llvm_features("aarch64", "fp asimd asimddp sve")
    ('fp-armv8', 'neon', 'dotprod', 'sve')
    """
    given = {_ARM_WORDS.get(word, word) for word in words.split()}
    plain = {_plain(word) for word in given}
    return tuple(name for name in FEATURES[isa] if _plain(name) in plain)


def _plain(word: str) -> str:
    return word.replace("_", "").replace("-", "").replace(".", "")


def groups_in_use(shared: dict[int, int], most: int) -> list[int]:
    """Choose cores so that each shared cache has as many of them.

    Parameters
    ----------
    shared : dict of int to int
        Core to the shared cache that it uses.
    most : int
        Cores that may run at a time.

    Returns
    -------
    list of int
        The most cores for which that holds; of those, spread over the fewest caches.

    Examples
    --------
    >>> groups_in_use({0: 0, 1: 0, 2: 0, 3: 7, 4: 7}, most=8)
    [0, 1, 3, 4]
    >>> groups_in_use({0: 0, 1: 0, 2: 7, 3: 7}, most=2)
    [0, 1]
    """
    members: dict[int, list[int]] = {}
    for core, cache in sorted(shared.items()):
        members.setdefault(cache, []).append(core)
    largest = max((len(group) for group in members.values()), default=0)
    best: list[int] = []
    for each in range(min(largest, most), 0, -1):
        fitting = [group for group in members.values() if len(group) >= each]
        chosen = [core for group in fitting[: most // each] for core in group[:each]]
        if len(chosen) > len(best):
            best = chosen
    return best
