"""Fake trees of /proc and /sys, and a dump of sysctl, after what machines of these kinds say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

ZEN4 = (
    "fpu sse4_2 fma avx f16c hypervisor avx2 bmi2 avx512f avx512dq avx512ifma avx512cd avx512bw "
    "avx512vl avx512_bf16 avx512vbmi avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni avx512_bitalg "
    "avx512_vpopcntdq"
)
ICE_LAKE = (
    "fpu sse4_2 fma avx f16c avx2 bmi2 avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl "
    "avx512vbmi avx512_vbmi2 gfni vaes vpclmulqdq avx512_vnni avx512_bitalg avx512_vpopcntdq"
)
ALDER_LAKE = "fpu sse4_2 fma avx f16c avx2 bmi2 avx_vnni gfni vaes vpclmulqdq"
GRAVITON3 = (
    "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm jscvt fcma "
    "lrcpc dcpop sha3 asimddp sha512 sve asimdfhm svei8mm svebf16 i8mm bf16 dgh rng"
)


def write(root: Path, name: str, text: object) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def cpu(root: Path, number: int, *, siblings: str, package: int = 0) -> None:
    place = f"sys/devices/system/cpu/cpu{number}/topology"
    write(root, f"{place}/thread_siblings_list", siblings)
    write(root, f"{place}/physical_package_id", package)


def cache(
    root: Path, number: int, index: int, level: int, size: str, ways: int, shared: str, kind: str
) -> None:
    place = f"sys/devices/system/cpu/cpu{number}/cache/index{index}"
    values = {
        "level": level,
        "type": kind,
        "size": size,
        "ways_of_associativity": ways,
        "coherency_line_size": 64,
        "shared_cpu_list": shared,
    }
    for name, value in values.items():
        write(root, f"{place}/{name}", value)


def caches(
    root: Path,
    number: int,
    own: str,
    last: str,
    *,
    l1: tuple[str, int],
    l2: tuple[str, int],
    l3: tuple[str, int] | None,
) -> None:
    """Caches of one logical CPU: two of its core, one that cores share."""
    cache(root, number, 0, 1, *l1, own, "Data")
    cache(root, number, 1, 1, "32K", 8, own, "Instruction")
    cache(root, number, 2, 2, *l2, own, "Unified")
    if l3:
        cache(root, number, 3, 3, *l3, last, "Unified")


def cpuinfo(root: Path, numbers: Iterable[int], lines: dict[str, object]) -> None:
    blocks = (
        "\n".join(
            [f"processor\t: {number}", *(f"{key}\t: {value}" for key, value in lines.items())]
        )
        for number in numbers
    )
    write(root, "proc/cpuinfo", "\n\n".join(blocks) + "\n")


def x86(vendor: str, family: int, model: int, name: str, flags: str) -> dict[str, object]:
    return {
        "vendor_id": vendor,
        "cpu family": family,
        "model": model,
        "model name": name,
        "flags": flags,
    }


def zen4_vm(root: Path, *, l1: tuple[str, int] = ("32K", 8), model: int = 17) -> Path:
    """Two cores of an EPYC 9004 in a virtual machine, without cpufreq."""
    cpuinfo(root, range(2), x86("AuthenticAMD", 25, model, "AMD EPYC", ZEN4))
    for number in range(2):
        cpu(root, number, siblings=str(number))
        caches(root, number, str(number), "0-1", l1=l1, l2=("1024K", 8), l3=("32768K", 16))
    write(root, "proc/self/cgroup", "4:memory:/\n1:cpu,cpuacct:/\n0::/")
    return root


def two_xeons(root: Path) -> Path:
    """Two sockets of eight cores of Ice Lake, two threads each."""
    cpuinfo(root, range(32), x86("GenuineIntel", 6, 106, "Intel(R) Xeon(R) Gold 6334", ICE_LAKE))
    for number in range(32):
        core, package = number % 16, number % 16 // 8
        own = f"{core},{core + 16}"
        last = "0-7,16-23" if package == 0 else "8-15,24-31"
        cpu(root, number, siblings=own, package=package)
        caches(root, number, own, last, l1=("48K", 12), l2=("1280K", 20), l3=("18432K", 12))
        place = f"sys/devices/system/cpu/cpu{number}/cpufreq"
        write(root, f"{place}/scaling_driver", "intel_pstate")
        write(root, f"{place}/cpuinfo_max_freq", 3700000)
        write(root, f"{place}/scaling_max_freq", 3000000)
    write(root, "proc/self/cgroup", "0::/user.slice/job")
    return root


def alder_lake(root: Path) -> Path:
    """Eight performance cores of two threads, eight efficiency cores."""
    cpuinfo(root, range(24), x86("GenuineIntel", 6, 151, "Intel(R) Core(TM) i9-12900K", ALDER_LAKE))
    for number in range(24):
        first = number - number % 2
        own = f"{first}-{first + 1}" if number < 16 else str(number)
        shared = own if number < 16 else f"{number - number % 4}-{number - number % 4 + 3}"
        cpu(root, number, siblings=own)
        l1, l2 = (("48K", 12), ("1280K", 10)) if number < 16 else (("32K", 8), ("2048K", 16))
        caches(root, number, own, "0-23", l1=l1, l2=l2, l3=("30720K", 12))
        cache(root, number, 2, 2, *l2, shared, "Unified")
        place = f"sys/devices/system/cpu/cpu{number}/cpufreq"
        highest = (5200000 if number in (8, 9) else 5100000) if number < 16 else 3900000
        write(root, f"{place}/cpuinfo_max_freq", highest)
        write(root, f"{place}/scaling_max_freq", highest)
    write(root, "sys/devices/cpu_core/cpus", "0-15")
    write(root, "sys/devices/cpu_atom/cpus", "16-23")
    return root


def graviton3(root: Path, n_cores: int = 64) -> Path:
    """Cores of Neoverse V1; the system does not say the ways of caches."""
    lines = {
        "BogoMIPS": "2100.00",
        "Features": GRAVITON3,
        "CPU implementer": "0x41",
        "CPU architecture": 8,
        "CPU variant": "0x1",
        "CPU part": "0xd40",
    }
    cpuinfo(root, range(n_cores), lines)
    for number in range(n_cores):
        own = str(number)
        cpu(root, number, siblings=own)
        last = f"0-{n_cores - 1}"
        caches(root, number, own, last, l1=("64K", 0), l2=("1024K", 0), l3=("32768K", 0))
    write(root, "proc/sys/abi/sve_default_vector_length", 32)
    return root


M1 = """\
hw.ncpu: 8
hw.physicalcpu: 8
hw.cachelinesize: 128
hw.pagesize: 16384
hw.l1dcachesize: 65536
hw.l2cachesize: 4194304
hw.nperflevels: 2
hw.perflevel0.physicalcpu: 4
hw.perflevel0.logicalcpu: 4
hw.perflevel0.l1icachesize: 196608
hw.perflevel0.l1dcachesize: 131072
hw.perflevel0.l2cachesize: 12582912
hw.perflevel0.cpusperl2: 4
hw.perflevel1.physicalcpu: 4
hw.perflevel1.l1dcachesize: 65536
hw.perflevel1.l2cachesize: 4194304
hw.optional.arm.FEAT_DotProd: 1
hw.optional.arm.FEAT_FP16: 1
hw.optional.arm.FEAT_BF16: 0
hw.optional.arm.FEAT_I8MM: 0
hw.optional.arm.FEAT_LSE: 1
machdep.cpu.brand_string: Apple M1
machdep.cpu.core_count: 8
"""

# As recorded by archspec (archspec-json, tests/targets/darwin-sequoia-m4), shortened.
M4_MAX = """\
hw.ncpu: 16
hw.memsize: 68719476736
hw.perflevel0.physicalcpu: 12
hw.perflevel0.logicalcpu: 12
hw.perflevel0.l1icachesize: 196608
hw.perflevel0.l1dcachesize: 131072
hw.perflevel0.l2cachesize: 16777216
hw.perflevel0.cpusperl2: 6
hw.perflevel0.name: Performance
hw.perflevel1.physicalcpu: 4
hw.perflevel1.l1dcachesize: 65536
hw.perflevel1.l2cachesize: 4194304
hw.perflevel1.cpusperl2: 4
hw.perflevel1.name: Efficiency
hw.optional.arm.FEAT_CRC32: 1
hw.optional.arm.FEAT_FHM: 1
hw.optional.arm.FEAT_DotProd: 1
hw.optional.arm.FEAT_RDM: 1
hw.optional.arm.FEAT_LSE: 1
hw.optional.arm.FEAT_LRCPC: 1
hw.optional.arm.FEAT_FCMA: 1
hw.optional.arm.FEAT_JSCVT: 1
hw.optional.arm.FEAT_BF16: 1
hw.optional.arm.FEAT_EBF16: 0
hw.optional.arm.FEAT_I8MM: 1
hw.optional.arm.FEAT_FP16: 1
hw.optional.arm.FEAT_SME: 1
hw.optional.arm.FEAT_SME2: 1
hw.optional.neon: 1
hw.physicalcpu: 16
hw.cacheconfig: 16 1 4 0 0 0 0 0 0 0
hw.pagesize: 16384
hw.cachelinesize: 128
hw.l1dcachesize: 65536
hw.l2cachesize: 4194304
hw.osenvironment:
hw.nperflevels: 2
hw.targettype: J614c
machdep.cpu.core_count: 16
machdep.cpu.brand_string: Apple M4 Max
"""
