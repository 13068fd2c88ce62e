"""A GPU that is made of known numbers, and a driver that is made of nothing.

The first gives the times that they imply, and nothing else.  Written apart from the experiments: it
knows what each kernel does, from `kernels.cu`, and what its hardware takes for that, start of the
kernel and disturbances included.  The second keeps what it was asked, and answers as `cuda.h` says.
"""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from loopsched.gpu.calibration.device import Launch, Properties, Run

H200 = Properties(
    name="NVIDIA H200",
    capability=(9, 0),
    sms=132,
    max_clock_hz=1.98e9,
    memory_clock_hz=3.201e9,
    bus_bits=6016,
    memory_bytes=150_109_880_320,
    l2_bytes=62_914_560,
    shared_bytes=233_472,
    block_shared_bytes=232_448,
    system_shared_bytes=1024,
    registers=65_536,
    threads=2048,
    blocks=32,
)
# Multiply-adds of one instruction: of a warp, and of four for each column.
MMA = {"fp16": 2048, "bf16": 2048, "tf32": 1024, "fp8": 4096, "int8": 4096}
WGMMA = {"fp16": 1024, "bf16": 1024, "tf32": 512, "fp8": 2048, "int8": 2048}


@dataclass
class FakeGpu:
    """Hardware by its numbers: cycles, bytes a second, operations a cycle and SM."""

    properties: Properties = H200
    fma: float = 4.0
    shared: float = 23.0
    l1: float = 32.0
    l2: float = 366.0
    dram: float = 642.0
    lanes: float = 128.0
    shared_rate: float = 128.0
    l1_rate: float = 64.0
    lines: float = 1.0
    dram_rate: float = 4.5e12
    l2_rate: float = 9.5e12
    launch: float = 2.7e-6
    # Share of the full rate of instructions by one warp a scheduler, and by more.
    warp_share: tuple[float, float] = (0.5, 0.625)
    group_share: tuple[float, float] = (0.9, 1.0)
    tensor: dict[str, float] = field(
        default_factory=lambda: {
            "fp16": 2048.0, "bf16": 2048.0, "tf32": 1024.0, "fp8": 4096.0, "int8": 4096.0,
        }
    )  # fmt: skip
    loaded_hz: float = 1.6e9
    noise: random.Random = field(default_factory=lambda: random.Random(0))
    asked: list[str] = field(default_factory=list)

    def run(self, launch: Launch) -> Run:
        self.asked.append(launch.kernel)
        if launch.kernel == "read":
            # What fits in L2 stays there; the first pass is the same for all.
            is_near = launch.n_bytes <= self.properties.l2_bytes
            rate = self.l2_rate if is_near else self.dram_rate
            time_s = 7e-6 + launch.n_bytes * launch.steps / rate
            return Run(0.0, time_s * self._disturbed())
        cycles = (51 + launch.steps * self._step(launch)) * self._disturbed()
        is_loaded = launch.blocks == self.properties.sms
        clock = self.loaded_hz if is_loaded else self.properties.max_clock_hz
        return Run(cycles, 3e-6 + cycles / clock)

    def empty_s(self) -> float:
        return self.launch * self._disturbed()

    def close(self) -> None:
        self.asked.append("close")

    def _disturbed(self) -> float:
        """Most runs are undisturbed, some take up to half as long again."""
        return 1.0 if self.noise.random() < 0.7 else 1 + self.noise.random() / 2

    def _step(self, launch: Launch) -> float:
        kernel, threads = launch.kernel, launch.threads
        if kernel.startswith("wgmma"):
            _, data_type, n = kernel.split("_")
            share = self.group_share[threads > 128]
            macs = threads // 128 * 16 * int(n[1:]) * WGMMA[data_type]
            return macs / (self.tensor[data_type] * share)
        if kernel.startswith("mma"):
            data_type = kernel.removeprefix("mma_")
            share = self.warp_share[threads > 128]
            return threads // 32 * 4 * MMA[data_type] / (self.tensor[data_type] * share)
        if kernel == "chase_past_l1":
            return (
                self.l2
                if launch.n_bytes <= self.properties.l2_bytes and not launch.cold
                else self.dram
            )
        return {
            "chain_fma": self.fma,
            "chase_shared": self.shared,
            "chase_l1": self.l1,
            "rate_fp32": 8 * threads / self.lanes,
            "rate_shared": 16 * threads / self.shared_rate,
            "rate_l1": 16 * threads / self.l1_rate,
            "rate_lines": threads / self.lines,
        }[kernel]


class FakeLibrary:
    """Stands for libcuda and libnvrtc: fills in what is asked for, and keeps the rest.

    Parameters
    ----------
    attributes : dict of int to int
        What `cuDeviceGetAttribute` says.
    clocks : list of int
        What the kernels write.
    """

    def __init__(self, attributes: dict[int, int], clocks: list[int]) -> None:
        self.attributes, self.clocks = attributes, clocks
        self.calls: list[str] = []
        self.launches: list[dict[str, Any]] = []
        self.written: dict[int, bytes] = {}
        self.cleared: list[int] = []
        self.functions: list[str] = []
        self.shared: dict[str, int] = {}
        self.next_place = 1 << 32
        self.log = b"bad"
        self.failing = ""
        self.n_gpus = 1

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*given: Any) -> int:
            self.calls.append(name)
            if name == self.failing:
                return 7
            getattr(type(self), f"on_{name}", lambda *_: None)(self, *given)
            return 0

        return call

    def on_cuGetErrorString(self, status: int, text: Any) -> None:
        text._obj.value = b"no luck"

    def on_cuDeviceGetCount(self, count: Any) -> None:
        count._obj.value = self.n_gpus

    def on_cuDeviceGetName(self, name: Any, size: int, device: Any) -> None:
        name.value = b"NVIDIA H200"

    def on_cuDeviceTotalMem_v2(self, total: Any, device: Any) -> None:
        total._obj.value = 150_109_880_320

    def on_cuDeviceGetAttribute(self, value: Any, number: int, device: Any) -> None:
        value._obj.value = self.attributes[number]

    def on_cuModuleGetFunction(self, function: Any, module: Any, name: bytes) -> None:
        self.functions.append(name.decode())
        function._obj.value = len(self.functions)

    def on_cuFuncSetAttribute(self, function: Any, number: int, value: int) -> None:
        assert number == 8
        self.shared[self.functions[function.value - 1]] = value

    def on_cuMemAlloc_v2(self, place: Any, size: Any) -> None:
        place._obj.value = self.next_place
        self.next_place += size.value

    def on_cuMemsetD8_v2(self, place: Any, value: int, size: Any) -> None:
        self.cleared.append(size.value)

    def on_cuMemcpyHtoD_v2(self, to: Any, what: Any, size: Any) -> None:
        self.written[to.value] = ctypes.string_at(what, size.value)

    def on_cuMemcpyDtoH_v2(self, to: Any, place: Any, size: Any) -> None:
        array = (ctypes.c_uint64 * (size.value // 8))(*self.clocks[: size.value // 8])
        ctypes.memmove(to, array, size.value)

    def on_cuEventElapsedTime(self, spent_ms: Any, *events: Any) -> None:
        spent_ms._obj.value = 2.5

    def on_cuLaunchKernel(self, function: Any, *given: Any) -> None:
        blocks, _, _, threads, _, _, shared, _, places, _ = given
        kinds = (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)
        values = [kind.from_address(at).value for kind, at in zip(kinds, places, strict=True)]
        self.launches.append(
            {
                "kernel": self.functions[function.value - 1],
                "blocks": blocks,
                "threads": threads,
                "shared": shared,
                "data": values[0],
                "n_bytes": values[1],
                "steps": values[2],
            }
        )

    def on_nvrtcGetProgramLogSize(self, program: Any, size: Any) -> None:
        size._obj.value = len(self.log) + 1

    def on_nvrtcGetProgramLog(self, program: Any, log: Any) -> None:
        log.value = self.log

    def on_nvrtcGetCUBINSize(self, program: Any, size: Any) -> None:
        size._obj.value = 4

    def on_nvrtcGetCUBIN(self, program: Any, image: Any) -> None:
        image.raw = b"\x7fELF"
