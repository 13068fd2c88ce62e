"""What macOS says of an Apple CPU: sysctl."""

from __future__ import annotations

import subprocess

from loopsched.base.errors import ArchError
from loopsched.machines.host_facts import Cache, Host
from loopsched.machines.microarchitectures import core_of

_FEATURES = {
    "LSE": "lse",
    "RDM": "rdm",
    "CRC32": "crc",
    "FP16": "fullfp16",
    "FHM": "fp16fml",
    "DotProd": "dotprod",
    "FCMA": "complxnum",
    "JSCVT": "jsconv",
    "LRCPC": "rcpc",
    "BF16": "bf16",
    "I8MM": "i8mm",
    "SME": "sme",
    "SME2": "sme2",
}


def sysctl_text() -> str:
    """Ask the system for all it says of its hardware.

    Raises
    ------
    ArchError
        If there is no ``sysctl``, or it fails.
    """
    try:
        asked = subprocess.run(
            ("sysctl", "hw", "machdep.cpu"), capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise ArchError(
            f"cannot run sysctl, which says what the CPU is: {error.strerror}"
        ) from None
    if not asked.stdout:
        raise ArchError("sysctl says nothing of the CPU; is it the system's own?")
    return asked.stdout


def read_macos(text: str) -> Host:
    """Read what ``sysctl hw machdep.cpu`` prints.

    Raises
    ------
    ArchError
        If it is not of an Apple CPU, or a number is missing.
    """
    values = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    title = values.get("machdep.cpu.brand_string", "a processor without a name")
    words = title.split()
    if len(words) < 2 or words[0] != "Apple" or not words[1][1:].isdigit():
        raise ArchError(f"{title}: on macOS only Apple's own CPUs are read; give a file")

    def number(*names: str) -> int:
        for name in names:
            if values.get(name, "").isdigit():
                return int(values[name])
        raise ArchError(f"sysctl has no {names[0]}, which is needed")

    fast = "hw.perflevel0"
    n_cores = number(f"{fast}.physicalcpu", "hw.physicalcpu")
    line = number("hw.cachelinesize")
    sharing = number(f"{fast}.cpusperl2") if f"{fast}.cpusperl2" in values else n_cores
    clusters = -(-n_cores // sharing)
    n_cores -= n_cores % clusters
    core = core_of("Apple", 0, int(words[1][1:]))
    caches = (
        Cache(
            *(2, number(f"{fast}.l2cachesize", "hw.l2cachesize"), clusters, line, None),
            f"sysctl {fast}.l2cachesize and cpusperl2",
        ),
        Cache(
            *(1, number(f"{fast}.l1dcachesize", "hw.l1dcachesize"), n_cores, line),
            core.l1_ways if core else None,
            f"sysctl {fast}.l1dcachesize",
        ),
    )
    found = [
        llvm
        for name, llvm in _FEATURES.items()
        if values.get(f"hw.optional.arm.FEAT_{name}") == "1"
    ]
    return Host(
        title=title,
        identity=title,
        isa="aarch64",
        core=core,
        features=("fp-armv8", "neon", *found),
        vector_bytes=16,
        cores=(),
        n_cores=n_cores,
        caches=caches,
        page_bytes=number("hw.pagesize"),
        clock_hz=None,
        max_clock_hz=None,
        n_sockets=1,
        read={
            "cores": f"sysctl {fast}.physicalcpu: performance cores",
            "features": "sysctl hw.optional.arm",
            "page": "sysctl hw.pagesize",
        },
        notes=("Efficiency cores and the system cache are left out.",),
    )
