"""Mutants of measuring a GPU."""

from __future__ import annotations

from .mutant import In

_COME_BACK = "::test_known_numbers_come_back"
_LAUNCH = "::test_a_launch_is_what_was_asked_for"
_experiments = In("gpu/calibration/experiments.py", "test_calibration.py")
_experiments.broken(
    "calibrate-start-counted",
    "cycles of a step hold a part of what starting takes",
    "return (many - few) / (2 * launch.steps)",
    "return many / (3 * launch.steps)",
    _COME_BACK,
)
_experiments.broken(
    "calibrate-bandwidth-of-all",
    "the time of the short run is not taken off",
    "return n_bytes * (many - few) / (long_s - short_s)",
    "return n_bytes * many / long_s",
    _COME_BACK,
)
_experiments.broken(
    "calibrate-dram-from-l2",
    "the chain of loads from DRAM finds its ring in L2",
    "Launch(kernel, 1, 1, 2048, n_bytes, cold)",
    "Launch(kernel, 1, 1, 2048, n_bytes % (256 * _MIB), False)",
    _COME_BACK,
)
_experiments.broken(
    "calibrate-groups-as-warps",
    "a product of four warps is counted for each of them",
    "macs = warps // 4 * _GROUP_CHAINS",
    "macs = warps * _GROUP_CHAINS",
    "::test_tensor_rates_are_by_instruction_and_warps",
)
_experiments.broken(
    "calibrate-worst-run",
    "disturbed runs count",
    "min(device.run(one).cycles",
    "max(device.run(one).cycles",
    _COME_BACK,
)
_machine = In("gpu/calibration/machine.py", "test_calibration.py")
_machine.broken(
    "calibrate-bound-by-measurement",
    "DRAM's bandwidth, on which bounds rest, is what was measured",
    'dram["bandwidth"] = _sourced(f"{bus!r} B/s"',
    'dram["bandwidth"] = _sourced(f"{figures.dram.value!r} B/s"',
    "::test_the_file_of_a_known_gpu",
)
_machine.broken(
    "calibrate-l2-limit-lost",
    "bounds take L2's measured bandwidth for its highest",
    '        l2["peak_bandwidth"] = _sourced(\n            f"{_RECEIVED * told.sms} B/cycle",',
    '        l2["peak_bandwidth"] = _sourced(\n            f"{figures.l2.value!r} B/s",',
    "::test_the_file_of_a_known_gpu",
)
_machine.broken(
    "calibrate-rate-lowered",
    "a slower instruction lowers the rate that bounds rest on",
    "if power is not None and power >= held.get(data_type, 0):",
    "if power is not None:",
    "::test_rates_of_bounds_are_never_lowered",
)
_machine.broken(
    "calibrate-name-alone",
    "a GPU with other SMs takes the file whose name is in its own",
    "if arch.gpu is not None and arch.compute.units == told.sms:",
    "if arch.gpu is not None:",
    "::test_shipped_files_are_found",
)
_machine.broken(
    "calibrate-foreign-power",
    "a GPU without a file has the power limit of another",
    '        data["gpu"].pop(key, None)',
    '        data["gpu"].get(key)',
    "::test_what_is_of_another_gpu_alone_is_not_taken",
)
_driver = In("gpu/calibration/driver.py", "test_calibration.py")
_driver.broken(
    "driver-kilohertz",
    "the driver's kilohertz are taken for hertz",
    'told["memory_clock_hz"] *= 1e3',
    'told["memory_clock_hz"] *= 1',
    "::test_the_driver_says_what_the_gpu_is",
)
_driver.broken(
    "driver-l2-warm",
    "L2 keeps the ring of a cold chain",
    "        if launch.cold:\n",
    "        if False:\n",
    _LAUNCH,
)
_driver.broken(
    "driver-ring-elsewhere",
    "the ring's addresses lack the place where it lies",
    "ring(launch.n_bytes) + np.uint64(self._data.value)",
    "ring(launch.n_bytes)",
    _LAUNCH,
)
_driver.broken(
    "driver-milliseconds",
    "milliseconds are taken for seconds",
    "return 1e-3 * spent_ms.value",
    "return spent_ms.value",
    _LAUNCH,
)
_driver.broken(
    "driver-first-block",
    "one block stands for all",
    "return Run(float(median(clocks.tolist())), time_s)",
    "return Run(float(clocks[0]), time_s)",
    _LAUNCH,
)

CALIBRATION = (*_experiments.mutants, *_machine.mutants, *_driver.mutants)
