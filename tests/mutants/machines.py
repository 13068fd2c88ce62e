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
    'return f"{value!r} {base_unit(RATES[0])}"',
    'return f"{value!r} {base_unit(RATES[1])}"',
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
    '_varied("shared_latency", "shared_latency", "cycles"),\n'
    '    _varied("l1_latency", "l1_latency", "cycles"),',
    '_varied("shared_latency", "l1_latency", "cycles"),\n'
    '    _varied("l1_latency", "shared_latency", "cycles"),',
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

MACHINES = (
    *_arch.mutants,
    *_arch_file.mutants,
    *_arch_format.mutants,
    *_gpu_limits.mutants,
    *_keys.mutants,
    *_levels.mutants,
)
