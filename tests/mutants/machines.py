"""Mutants of machines: levels, limits, files."""

from __future__ import annotations

from .mutant import In

_arch = In("machines/arch.py", "test_arch.py")
_arch.broken(
    "arch-inside-one-unit",
    "all units inside a level hold as much as one",
    "total = -(-self.compute.units // level.instances) * storage",
    "total = storage",
    ">>> Arch.inside_bytes",
)
_arch.broken(
    "arch-digest-of-titles",
    "two machines that differ in their title alone differ in their digest",
    'for key in ("title", "notes", "sources", "source"):',
    'for key in ("notes", "sources", "source"):',
    "::test_digest_depends_on_content_only",
)
_arch.broken(
    "arch-bandwidth-of-outer-boundary",
    "the bandwidth of a level is that toward the memory",
    'self._position(owner) + (field == "bandwidth")',
    "self._position(owner)",
    "::test_scaled",
)
_arch.broken(
    "arch-factor-in-floats",
    "a value set is only near the one asked for",
    "factor = Fraction(value) / Fraction(current)",
    "factor = Fraction(value / current)",
    "::test_the_value_asked_for_is_the_value_set",
)
_arch.broken(
    "arch-instances-need-not-nest",
    "instances need not divide among those around them",
    "    if inner.instances % outer.instances:",
    "    if inner.instances < outer.instances:",
    "::test_levels_that_do_not_fit_together",
)
_arch.broken(
    "arch-growing-inward",
    "a level may be larger than the one around it",
    "if (inner.capacity_bytes or 0) > (outer.capacity_bytes or 0):",
    "if (inner.capacity_bytes or 0) > 2 * (outer.capacity_bytes or 0):",
    "::test_levels_that_do_not_fit_together",
)
_arch_file = In("machines/arch_file.py", "test_arch_file.py")
_arch_file.broken(
    "file-cycle-unsaid",
    "a level inside a later one is told as a wrong order",
    "elif names.index(parent) >= index:",
    "elif names.index(parent) > len(names):",
    "::test_malformed_files",
)
_arch_file.broken(
    "file-peak-at-sustained-clock",
    "the peak of a bandwidth a cycle is at the sustained clock",
    "peak = bandwidth / clocks[0] * clocks[1]",
    "peak = bandwidth",
    "::test_titan_v",
)
_arch_file.broken(
    "file-buffers-first-only",
    "a level's capacity is that of its first buffer",
    "sum(size for _, size in buffers) or None",
    "next((size for _, size in buffers), None)",
    "::test_diannao",
)
_arch_file.broken(
    "file-innermost-bandwidth",
    "a bandwidth inward of the innermost level is let pass",
    "    if outer.bandwidth is not None:\n        reader",
    "    if outer.bandwidth is None and outer.peak is not None:\n        reader",
    "::test_malformed_files",
)
_arch_file.broken(
    "file-share-above-one",
    "a share above 1 is taken",
    "        if 0 < number <= 1:",
    "        if 0 < number:",
    "test_gpu_limits.py::test_faults_name_place_and_what_is_allowed",
)
_arch_file.broken(
    "file-unknown-key-ignored",
    "an unknown key is passed over",
    'self.fault(place, f"unknown key {show(key)}; {hint}")',
    "_ = hint",
    "::test_malformed_files",
)
_arch_format = In("machines/arch_format.py", "test_arch_file.py")
_arch_format.broken(
    "format-no-false-written",
    "a flag that is false is left out of the file",
    "(value == 0 and value is not False)",
    "value == 0",
    "::test_what_is_switched_off_is_written",
)
_arch_format.broken(
    "format-sources-lost",
    "sources of numbers are not written",
    'return {"value": value, "source": source} if source else {"value": value}',
    'return {"value": value}',
    "::test_shipped_files_are_complete",
)
_arch_format.broken(
    "format-any-key-in-schema",
    "the schema lets unknown keys pass",
    '        "additionalProperties": False,\n    }',
    '        "additionalProperties": True,\n    }',
    "::test_schema_refuses_what_the_reader_refuses",
)
_arch_format.broken(
    "format-share-without-limit",
    "the schema lets shares above 1 pass",
    '"exclusiveMinimum": 0, "maximum": 1}',
    '"exclusiveMinimum": 0}',
    "::test_schema_refuses_what_the_reader_refuses",
)
_arch_format.broken(
    "format-one-level-will-do",
    "the schema takes a machine of one level",
    '"minItems": 2',
    '"minItems": 1',
    "::test_schema_refuses_what_the_reader_refuses",
)
_arch_format.broken(
    "format-rate-unit",
    "bandwidths are written a cycle",
    "return exact(value, RATES[0])",
    "return exact(value, RATES[1])",
    "::test_shipped_files_are_complete",
)
_gpu_limits = In("machines/gpu_limits.py", "test_gpu_limits.py")
_gpu_limits.broken(
    "limits-warps-of-64",
    "warps count 64 threads where the file says nothing",
    "warp_threads: int = 32",
    "warp_threads: int = 64",
    "::test_titan_v_is_what_report_000_lists",
)
_gpu_limits.broken(
    "limits-shared-alone",
    "more shared memory leaves what a block may ask for",
    'along=("block_shared", "l1")',
    'along=("l1",)',
    "::test_more_shared_memory_raises_what_a_block_may_have",
)
_gpu_limits.broken(
    "limits-latencies-swapped",
    "the latencies of shared memory and of L1 change places",
    '*(_varied(f"{one}_latency", f"{one}_latency", "cycles") for one in _LATENCIES),',
    '*(_varied(f"{one}_latency", f"{other}_latency", "cycles") for one, other in '
    'zip(_LATENCIES, ("fma", "l1", "shared", *_LATENCIES[3:]), strict=True)),',
    "::test_titan_v_is_what_report_000_lists",
)
_gpu_limits.broken(
    "limits-half-the-threads",
    "a block has 512 threads at most where the file says nothing",
    "max_block_threads: int = 1024",
    "max_block_threads: int = 512",
    "::test_titan_v_is_what_report_000_lists",
)
_gpu_limits.broken(
    "limits-warps-of-a-block",
    "resident warps are those of the largest block",
    "return self.max_threads // self.warp_threads",
    "return self.max_block_threads // self.warp_threads",
    "::test_titan_v_is_what_report_000_lists",
)
_keys = In("machines/keys.py", "test_arch.py")
_keys.broken(
    "keys-scaled-twice-rounded",
    "a scaled number is rounded twice",
    "return float(Fraction(value) * factor)",
    "return value * float(factor)",
    "::test_the_value_asked_for_is_the_value_set",
)
_keys.broken(
    "keys-optional-share-zero",
    "a share that must be given may be 0",
    "entry.least == 0 and value == 0",
    "value == 0",
    "test_gpu_limits.py::test_a_share_stays_a_share",
)
_keys.broken(
    "keys-name-given-twice",
    "a word may stand for two numbers",
    "for name in sorted({name for name in names if names.count(name) > 1}):\n"
    '            yield f"{entry.key} names',
    "for name in sorted({name for name in names if names.count(name) > 2}):\n"
    '            yield f"{entry.key} names',
    "::test_impossible_compute",
)
_keys.broken(
    "keys-infinite-passes",
    "an infinite number passes",
    "return 0 < value < math.inf",
    "return 0 < value",
    "::test_impossible_levels",
)
_keys.broken(
    "keys-any-name-of-several",
    "a rate for an unknown data type passes",
    "            if entry.words and name not in entry.words:",
    "            if entry.words and name in ():",
    "::test_impossible_compute",
)
_keys.broken(
    "keys-words-begin-with-digits",
    "a word may begin with a digit",
    're.compile(r"[A-Za-z][A-Za-z0-9_]*")',
    're.compile(r"[A-Za-z0-9_]+( [0-9])?")',
    "::test_impossible_levels",
)
_keys.broken(
    "keys-bytes-without-end",
    "a capacity of 2**63 bytes passes",
    "is_count(value, entry.least, MAX_BYTES)",
    "is_count(value, entry.least)",
    "::test_impossible_levels",
)
_keys.broken(
    "keys-nothing-goes-along",
    "a scaled capacity leaves its useful part as it was",
    "for name in (key, *(table[key].along or ())):",
    "for name in (key,):",
    "::test_scaled",
)
_levels = In("machines/levels.py", "test_arch.py")
_levels.broken(
    "levels-nominal-is-useful",
    "the whole capacity counts where less of it is useful",
    "        if self.effective_capacity_bytes is not None:",
    "        if self.effective_capacity_bytes == 0:",
    "::test_values_of_levels",
)
_levels.broken(
    "levels-bound-at-sustained",
    "bounds use the sustained bandwidth",
    "        if self.peak_bandwidth_bytes_per_s is not None:\n            return self.peak",
    "        if self.peak_bandwidth_bytes_per_s == 0:\n            return self.peak",
    "::test_values_of_levels",
)
_levels.broken(
    "levels-may-hold-passes",
    "what a level may hold counts as passing it",
    "in (*self.holds, *self.may_hold) for name in names)",
    "in self.holds for name in names)",
    "::test_values_of_levels",
)
_levels.broken(
    "levels-peak-at-sustained-clock",
    "the peak rate is at the sustained clock",
    "return self.rate(data_type) * self.units * self.max_clock_hz",
    "return self.rate(data_type) * self.units * self.clock_hz",
    "::test_rates",
)
_levels.broken(
    "levels-line-above-capacity",
    "a line may be longer than the level",
    '("line", level.line_bytes))',
    '("line", None))',
    "::test_impossible_levels",
)
_levels.broken(
    "levels-peak-below-bandwidth",
    "a peak below the bandwidth passes",
    "peak < bandwidth:",
    "peak < bandwidth / 1e6:",
    "::test_impossible_levels",
)
_levels.broken(
    "levels-clock-above-highest",
    "a clock above the highest one passes",
    "is_positive(high) and high < low:",
    "is_positive(high) and high > low * 10:",
    "::test_impossible_compute",
)
_cpu = In("machines/cpu.py", "test_cpu.py")
_cpu.broken(
    "cpu-width-without-feature",
    "vectors of 64 bytes need no AVX-512",
    '64: "avx512f"}',
    '64: "avx"}',
    "::test_faults_name_place_and_what_is_allowed",
)
_cpu.broken(
    "cpu-features-of-another-isa",
    "features of another instruction set pass",
    "if feature not in FEATURES[cpu.isa]:",
    "if feature not in CPU_KEYS[2].words:",
    "::test_faults_name_place_and_what_is_allowed",
)
_cpu.broken(
    "cpu-sums-of-one-multiplier",
    "independent sums are those of a single multiplier",
    "-(-self.fma_latency * self.fma_per_cycle // 1)",
    "-(-self.fma_latency // 1)",
    "::test_independent_sums",
)
_cpu.broken(
    "cpu-sums-rounded-down",
    "a part of an independent sum is left out",
    "-(-self.fma_latency * self.fma_per_cycle // 1)",
    "self.fma_latency * self.fma_per_cycle // 1",
    "::test_independent_sums",
)
_cpu.broken(
    "cpu-lanes-in-bits",
    "lanes are four times as many",
    "return self.vector_bytes // element_bytes",
    "return 4 * self.vector_bytes // element_bytes",
    "::test_arm_vectors",
)
_host = In("machines/host.py", "test_host.py")
_host.broken(
    "host-highest-clock-is-sustained",
    "bounds use the clock that is measured",
    "        highest = host.core.max_clock_hz\n",
    "        highest = clock\n",
    "::test_boost_that_the_system_leaves_out",
)
_host.broken(
    "host-registers-always-32",
    "every CPU has 32 vector registers",
    '"value": 32 if is_wide else 16,',
    '"value": 32,',
    "::test_two_kinds_of_core",
)
_host.broken(
    "host-memory-of-one-socket",
    "the limit of memory is that of one socket",
    "core.dram_bytes_per_s * host.n_sockets",
    "core.dram_bytes_per_s",
    "::test_two_sockets",
)
_host.broken(
    "host-bandwidth-of-one-core",
    "caches deliver to one core alone",
    '"value": f"{rate * cores} B/cycle"',
    '"value": f"{rate} B/cycle"',
    "::test_a_virtual_machine_of_zen_4",
)
_host.broken(
    "host-measurement-over-table",
    "a multiplier that other work kept busy is none",
    "better = min if key",
    "better = max if key",
    "test_rates.py::test_what_is_measured_becomes_a_file",
)
_host.broken(
    "host-tiles-unused",
    "matrix tiles do not count",
    "        if tile in has:",
    "        if tile in ():",
    "::test_rates_of_types",
)
_host.broken(
    "host-kept-for-any-machine",
    "what was measured is kept for all machines alike",
    "crc32(repr(host).encode())",
    "crc32(b'host')",
    "::test_what_was_measured_is_kept",
)
_host_linux = In("machines/host_linux.py", "test_host.py")
_host_linux.broken(
    "linux-threads-are-cores",
    "each thread of a core is a core",
    "seen.setdefault(own or str(cpu), cpu)",
    "seen.setdefault(str(cpu), cpu)",
    "::test_two_sockets",
)
_host_linux.broken(
    "linux-affinity-unread",
    "cores that the process may not use count",
    "sorted(set(allowed) & set(known) or known)",
    "sorted(known)",
    "::test_affinity",
)
_host_linux.broken(
    "linux-quota-of-leaf",
    "limits of outer control groups do not hold",
    "for each in (folder, *folder.parents):",
    "for each in (folder,):",
    "::test_control_groups",
)
_host_linux.broken(
    "linux-quota-rounded-up",
    "half a core that is granted counts as one",
    "        return int(quota) // int(period) or 1\n    with suppress(OSError, ValueError):\n"
    "        quota, period = ((",
    "        return -(-int(quota) // int(period)) + 1\n    with suppress(OSError, ValueError):\n"
    "        quota, period = ((",
    "::test_control_groups",
)
_host_linux.broken(
    "linux-boost-left-out",
    "the highest clock of acpi-cpufreq passes as one",
    '== "acpi-cpufreq":',
    '== "none":',
    "::test_boost_that_the_system_leaves_out",
)
_host_linux.broken(
    "linux-made-up-caches",
    "sizes that a virtual machine makes up are believed",
    "if core is None or not is_virtual or cache.level > 2:",
    "if core is None or is_virtual or cache.level > 2:",
    "::test_caches_that_a_virtual_machine_makes_up",
)
_host_linux.broken(
    "linux-instruction-caches",
    "caches of instructions hold data",
    '== "Instruction":',
    '== "Code":',
    "::test_two_sockets",
)
_timing = In("machines/timing.py", "test_rates.py")
_timing.broken(
    "timing-half-the-chain",
    "two operations are taken for one cycle",
    "clocks.append(_CHAIN * rounds",
    "clocks.append(_CHAIN // 2 * rounds",
    "::test_the_clock_is_cycles_over_time",
)
_timing.broken(
    "timing-bytes-of-one-thread",
    "the rate is that of one thread",
    "return sum(size * times / one for one in taken), min(taken)",
    "return size * times / min(taken), min(taken)",
    "::test_rates_are_bytes_over_the_time_of_each_thread",
)
_timing.broken(
    "timing-every-other-vector",
    "the reader skips half of the memory",
    'f"  %o{at} = add i64 %i, {at * vector_bytes}"',
    'f"  %o{at} = add i64 %i, {at // 2 * 2 * vector_bytes}"',
    "::test_the_reader_reads_every_byte",
)
_timing.broken(
    "timing-chain-shortcut",
    "operations of the chain do not wait for each other",
    'f"  %v{at + 2} = xor i64 %v{at + 1}, %z"',
    'f"  %v{at + 2} = xor i64 %v0, %z"',
    "::test_the_chain_is_what_it_says",
)
_timing.broken(
    "timing-one-try",
    "short tries are not repeated",
    "while taken < seconds / 2:",
    "while taken < 0:",
    "::test_rates_are_bytes_over_the_time_of_each_thread",
)
_rates = In("codegen/rates.py", "test_rates.py")
_rates.broken(
    "rates-chain-of-sums-lost",
    "chains begin anew each iteration",
    "[ %x, %entry ], [ %c{one}_{_TURNS}, %loop ]",
    "[ %x, %entry ], [ %x, %loop ]",
    "::test_each_chain_adds_eight_products_an_iteration",
)
_rates.broken(
    "rates-two-rounds-of-lines",
    "lines are linked in several rounds",
    "places[order[at - 1] * step]",
    "places[order[at - 2] * step]",
    "::test_the_chase_goes_through_all_lines",
)
_rates.broken(
    "rates-size-of-the-level-alone",
    "what is read fits the level inside",
    "inner + min(share // 2, 2 * inner or share)",
    "min(share // 2, 2 * inner or share)",
    "::test_sizes_are_beyond_the_level_inside",
)
_rates.broken(
    "rates-latency-of-many",
    "the latency is that of all chains together",
    "clock / one * 4",
    "clock / many * 4",
    "::test_what_is_measured_becomes_a_file",
)
_rates.broken(
    "rates-loads-of-all",
    "loads a cycle are those of all cores",
    'if row["level"] == "L1")',
    'if row["level"] == "L1" and row["cores"] > 1)',
    "::test_what_is_measured_becomes_a_file",
)

MACHINES = (
    *_arch.mutants,
    *_arch_file.mutants,
    *_arch_format.mutants,
    *_gpu_limits.mutants,
    *_keys.mutants,
    *_levels.mutants,
    *_cpu.mutants,
    *_host.mutants,
    *_host_linux.mutants,
    *_timing.mutants,
    *_rates.mutants,
)
