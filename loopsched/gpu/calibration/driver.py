"""Run the microbenchmarks through NVIDIA's driver; NVRTC compiles them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from loopsched.base.errors import ArchError
from loopsched.gpu.calibration.device import RINGS, Launch, Properties, Run
from loopsched.gpu.calibration.rings import ring
from loopsched.gpu.calibration.sources import GROUP_SHARED_BYTES, source, target

# Numbers of the driver's interface (cuda.h).
_ATTRIBUTES = {
    "sms": 16,
    "max_clock_hz": 13,
    "memory_clock_hz": 36,
    "bus_bits": 37,
    "l2_bytes": 38,
    "shared_bytes": 81,
    "block_shared_bytes": 97,
    "system_shared_bytes": 111,
    "registers": 82,
    "threads": 39,
    "blocks": 106,
}
_MAJOR, _MINOR, _MAX_DYNAMIC_SHARED = 75, 76, 8
_MOST_BYTES, _SCRATCH_BYTES, _MOST_BLOCKS = 1 << 30, 512 << 20, 1 << 16
_SPIN_STEPS = 2_000  # thousands of cycles: longer than it takes to launch what waits behind it


class CudaDevice:
    """The first GPU that the driver shows.

    Raises
    ------
    ArchError
        If there is no driver, no GPU or no NVRTC, or a call of them fails.
    """

    def __init__(self) -> None:
        self._cuda = _library(("libcuda.so.1", "nvcuda.dll"), "no NVIDIA driver was found")
        self._call("cuInit", 0)
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        if not count.value:
            raise ArchError("calibrate gpu: the driver shows no GPU")
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), 0)
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self._device)
        self._call("cuCtxSetCurrent", context)
        self._properties = self._read_properties()
        self._module = ctypes.c_void_p()
        capability = self._properties.capability
        image = compiled(source(capability), target(capability))
        self._call("cuModuleLoadData", ctypes.byref(self._module), image)
        self._functions: dict[str, ctypes.c_void_p] = {}
        self._n_bytes = min(_MOST_BYTES, self._properties.memory_bytes // 4)
        self._data = self._memory(self._n_bytes)
        self._scratch = self._memory(_SCRATCH_BYTES)
        self._clocks, self._sink = self._memory(8 * _MOST_BLOCKS), self._memory(4)
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self._events:
            self._call("cuEventCreate", ctypes.byref(event), 0)

    def close(self) -> None:
        """Give the memory back."""
        for place in (self._data, self._scratch, self._clocks, self._sink):
            self._call("cuMemFree_v2", place)
        self._call("cuDevicePrimaryCtxRelease_v2", self._device)

    @property
    def properties(self) -> Properties:
        """What the driver says."""
        return self._properties

    def run(self, launch: Launch) -> Run:
        """Launch once."""
        if launch.n_bytes > self._n_bytes:
            raise ArchError(f"calibrate gpu: {launch.n_bytes:,} bytes of memory are needed")
        if launch.kernel in RINGS:
            self._copy(self._data, ring(launch.n_bytes) + np.uint64(self._data.value))
        if launch.cold:
            self._call("cuMemsetD8_v2", self._scratch, 0, ctypes.c_size_t(_SCRATCH_BYTES))
        self._call("cuEventRecord", self._events[0], None)
        self._launch(launch)
        time_s = self._until_now()
        clocks = np.zeros(launch.blocks, dtype=np.uint64)
        self._call(
            "cuMemcpyDtoH_v2", clocks.ctypes.data_as(ctypes.c_void_p), self._clocks,
            ctypes.c_size_t(clocks.nbytes),
        )  # fmt: skip
        return Run(float(median(clocks.tolist())), time_s)

    def empty_s(self) -> float:
        """Take the seconds of an empty kernel, launched while another keeps the GPU busy."""
        self._launch(Launch("spin", 1, 32, _SPIN_STEPS))
        self._call("cuEventRecord", self._events[0], None)
        self._launch(Launch("nothing", self._properties.sms, 32, 0))
        return self._until_now()

    def _until_now(self) -> float:
        """Take the seconds since the first event."""
        self._call("cuEventRecord", self._events[1], None)
        self._call("cuEventSynchronize", self._events[1])
        spent_ms = ctypes.c_float()
        self._call("cuEventElapsedTime", ctypes.byref(spent_ms), *self._events)
        return 1e-3 * spent_ms.value

    def _launch(self, launch: Launch) -> None:
        kernel = launch.kernel
        grouped = kernel.startswith("wgmma")
        shared = GROUP_SHARED_BYTES if grouped else 0
        if kernel not in self._functions:
            function = ctypes.c_void_p()
            self._call("cuModuleGetFunction", ctypes.byref(function), self._module, kernel.encode())
            if grouped:
                self._call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, shared)
            self._functions[kernel] = function
        given = [
            self._data, ctypes.c_uint64(launch.n_bytes), ctypes.c_int(launch.steps),
            self._clocks, self._sink,
        ]  # fmt: skip
        places = [ctypes.cast(ctypes.byref(one), ctypes.c_void_p) for one in given]
        self._call(
            "cuLaunchKernel", self._functions[kernel], launch.blocks, 1, 1, launch.threads, 1, 1,
            shared, None,
            (ctypes.c_void_p * len(places))(*places), None,
        )  # fmt: skip

    def _copy(self, to: ctypes.c_uint64, what: NDArray[Any]) -> None:
        place = what.ctypes.data_as(ctypes.c_void_p)
        self._call("cuMemcpyHtoD_v2", to, place, ctypes.c_size_t(what.nbytes))

    def _memory(self, n_bytes: int) -> ctypes.c_uint64:
        place = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(n_bytes))
        self._call("cuMemsetD8_v2", place, 0, ctypes.c_size_t(n_bytes))
        return place

    def _read_properties(self) -> Properties:
        def attribute(number: int) -> int:
            value = ctypes.c_int()
            self._call("cuDeviceGetAttribute", ctypes.byref(value), number, self._device)
            return value.value

        name = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", name, 128, self._device)
        total = ctypes.c_size_t()
        self._call("cuDeviceTotalMem_v2", ctypes.byref(total), self._device)
        told: dict[str, Any] = {key: attribute(number) for key, number in _ATTRIBUTES.items()}
        told["max_clock_hz"] *= 1e3
        told["memory_clock_hz"] *= 1e3
        return Properties(
            name=name.value.decode(errors="replace"),
            capability=(attribute(_MAJOR), attribute(_MINOR)),
            memory_bytes=total.value,
            **told,
        )

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self._cuda.cuGetErrorString(status, ctypes.byref(text))
            said = (text.value or b"").decode(errors="replace")
            raise ArchError(f"calibrate gpu: {name} failed with {status}: {said}")


def compiled(text: str, to: str) -> bytes:
    """Compile CUDA C++ to machine code.

    Raises
    ------
    ArchError
        If there is no NVRTC, or it refuses.
    """
    nvrtc = _library(
        tuple(str(one) for one in _nvrtc_places()),
        "no NVRTC (libnvrtc.so), which CUDA builds of torch and the CUDA toolkit include",
    )
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    options = (ctypes.c_char_p * 2)(f"--gpu-architecture={to}".encode(), b"--std=c++17")

    def call(name: str, *arguments: Any) -> int:
        return int(getattr(nvrtc, name)(*arguments))

    failed = call(
        "nvrtcCreateProgram", ctypes.byref(program), text.encode(), b"k.cu", 0, None, None
    )
    failed = failed or call("nvrtcCompileProgram", program, 2, options)
    if failed:
        call("nvrtcGetProgramLogSize", program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value or 1)
        call("nvrtcGetProgramLog", program, log)
        said = log.value.decode(errors="replace").strip()[:2000]
        raise ArchError(f"calibrate gpu: NVRTC failed with {failed} for {to}: {said}")
    call("nvrtcGetCUBINSize", program, ctypes.byref(size))
    image = ctypes.create_string_buffer(size.value)
    call("nvrtcGetCUBIN", program, image)
    return image.raw


def _nvrtc_places() -> Iterator[Path]:
    """Where installed packages and the toolkit keep NVRTC, the newest first."""
    yield Path("libnvrtc.so")
    folders = [*(Path(one) / "nvidia" for one in sys.path if one), Path("/usr/local/cuda")]
    for folder in folders:
        for depth in ("lib64", "lib", "*/lib"):
            yield from sorted(
                folder.glob(f"{depth}/libnvrtc.so*"), key=lambda one: one.name, reverse=True
            )
    for version in ("13", "12", "11.2"):
        yield Path(f"libnvrtc.so.{version}")


def _library(names: tuple[str, ...], missing: str) -> ctypes.CDLL:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise ArchError(f"calibrate gpu: {missing}")
