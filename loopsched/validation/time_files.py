"""Files of measured times: each row a problem, a GPU, a data type, and microseconds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from loopsched.base.arguments import DATA_TYPE_BYTES, is_count
from loopsched.base.csv_text import Sheet, Value, repeated
from loopsched.base.errors import gathered, nearest
from loopsched.base.resources import resource_names
from loopsched.gpu.kernel import Kernel
from loopsched.gpu.library.conv import ALGORITHMS
from loopsched.gpu.library.gemm import stored_as
from loopsched.gpu.library.tiled import Tiling
from loopsched.network.selection import problem_of
from loopsched.problems.builders import conv2d, gemm
from loopsched.problems.problem import Problem
from loopsched.validation.csv_files import Source, check, rows_read, sheet_of, shown
from loopsched.validation.kernels import kernel_of

# GPUs in published lists, as those write the names of architectures.
GPUS = (
    "V100", "P100", "T4", "1080Ti", "TitanXp", "TitanX_Pascal", "TitanX_Maxwell", "M40", "H200",
    "TitanV", "A100", "H100", "L40S", "B200",
)  # fmt: skip
# Precision as files call it: the data type of the operands.
# Report 003's sheet calls fp32 arithmetic on fp16 data "half (32)".
REPORT_PRECISION = "half (32)"
PRECISIONS = {
    "fp16_mixed": "fp16",
    REPORT_PRECISION: "fp16_as_fp32",
    **{name: name for name in DATA_TYPE_BYTES},
}
_ELEMENT_BYTES = {**DATA_TYPE_BYTES, PRECISIONS[REPORT_PRECISION]: 2}
PASSES = {
    "fwd": "forward",
    "bwd_inputs": "backward_data",
    "bwd_params": "backward_weights",
    "forward": "forward",
    "backward_data": "backward_data",
    "backward_weights": "backward_weights",
}

# A kernel of one's own: rows, columns and terms of a block's tile, rows of tiles in a group.
TILING = ("tile_m", "tile_n", "tile_k", "group_m")
_TILED_PRECISION = "tf32"  # as Triton multiplies fp32 by default
_IMAGE = ("w", "h", "c", "n", "k", "filter_w", "filter_h")
_GEMM = ("m", "n", "k")
# Report 003's letters.  DeepBench, which it ran, was told outputs, batch and inputs in its own
# order m, n, k; the report's model takes the same letters for inputs, batch and outputs.
_REPORT_GEMM = ("gemm_m", "gemm_n", "gemm_k")
_BORDERS = {"pad": 0, "stride": 1}  # the least of each
_LARGEST = 2**31 - 1
_LONGEST_US = 1e12
# The sheet of report 003 names its GPU in its title only.
_REPORT_COLUMN, _REPORT_GPU = "report_003_printed_us", "TitanV"
# Oddities that make a row's time, or what it is of, doubtful; the others are remarks.
_APART = ("kernel-size block", "unusable")


@dataclass(frozen=True, slots=True)
class TimeRow:
    """One measured time: what the file says of it.

    Parameters
    ----------
    place : str
        Where it stands, for messages.
    values : mapping of str to str, int, float or None
        The file's columns, in its order; None: nothing is known.
    problem : Problem
    arch : str or None
        Architecture that the row names; None: it names none.
    gpu : str
        The same in the file's word.
    precision : str
        The file's word; ``fp32`` where it has none.
    data_type : str
        Of the operands.
    pass_ : str
        The file's word, or ``fwd``; of products, nothing.
    algorithm : str or None
        Of a convolution; None: not known.
    a_transposed, b_transposed : bool
    time_us : float, microseconds
    apart : str
        Why the row is not to be counted with the others, if it is not.
    tiling : Tiling or None
        Of a tiled kernel; None: a library chose.
    kernel : Kernel or None
        A hand-written kernel; None: a library's, or a tiled one.
    """

    place: str
    values: Mapping[str, Value]
    problem: Problem
    arch: str | None
    gpu: str
    precision: str
    data_type: str
    pass_: str
    algorithm: str | None
    a_transposed: bool
    b_transposed: bool
    time_us: float
    apart: str
    tiling: Tiling | None = None
    kernel: Kernel | None = None

    @property
    def report_problem(self) -> Problem:
        """The problem as report 003's model takes it: of its own sheet, in its own letters."""
        if self.values.get("gemm_m") is None:
            return self.problem
        sizes: list[Any] = [self.values[name] for name in _REPORT_GEMM]
        return gemm(**dict(zip("mkn", sizes, strict=True)))

    @property
    def kind(self) -> str:
        """``conv`` or ``gemm``, of a library; ``tiled`` or ``kernel``: of one's own."""
        if self.kernel is not None:
            return "kernel"
        if self.tiling is not None:
            return "tiled"
        return "conv" if self.problem.kind == "conv2d" else "gemm"


def read_times(source: Source, skipped: list[str] | None = None) -> tuple[TimeRow, ...]:
    """Read measured times: a file, a shipped one by its name, or rows that are mappings.

    With ``skipped``, rows that cannot be read are told there, unless all are such rows;
    else an InputError has all faults.

    Examples
    --------
    >>> rows = read_times("titan_v_measured")
    >>> len(rows), rows[0].arch, rows[0].algorithm, rows[-1].problem.name
    (56, 'titan_v', 'GEMM', 'm32 n1 k32')
    >>> read_times([{"problem": "gemm:m=8,n=8,k=8", "time_us": "3", "gpu": "m40"}])[0].time_us
    3.0
    """
    return times_in(sheet_of(source, "measurements", "counters"), skipped)


def times_in(sheet: Sheet, skipped: list[str] | None = None) -> tuple[TimeRow, ...]:
    """Take the rows of a table as measured times; all else is that of `read_times`.

    Examples
    --------
    >>> from loopsched.base.csv_text import parsed
    >>> rows = times_in(parsed("gpu,m,n,k,time_us" + chr(10) + "V100,64,32,16,7", "my.csv"))
    >>> rows[0].problem.macs, rows[0].arch, rows[0].data_type
    (32768, 'v100', 'fp32')
    """
    check(sheet.where, repeated(sheet.names) if sheet.rows else ["no rows"])
    missing: dict[str, None] = {}  # a fault of the columns is told once, not for each row

    def read(place: str, values: Mapping[str, Value]) -> tuple[TimeRow | None, list[str]]:
        reader = _Reader(place, values)
        row = reader.row()
        missing.update(dict.fromkeys(reader.missing))
        return row, reader.faults

    return rows_read(sheet, read, missing, skipped)


class _Reader:
    """Reads one row, and collects all that is wrong with it."""

    def __init__(self, place: str, values: Mapping[str, Value]) -> None:
        self.place = place
        self.values = values
        self.faults: list[str] = []
        self.missing: list[str] = []
        self.report: list[int] = []

    def row(self) -> TimeRow | None:
        """Read the row; None if there are faults."""
        time_us = self._time()
        gpu, arch = self._gpu()
        is_tiled = any(name in self.values for name in TILING)
        usual = REPORT_PRECISION if _REPORT_COLUMN in self.values else "fp32"
        usual = _TILED_PRECISION if is_tiled else usual
        precision = self._word(self._either("precision", "data_type"), PRECISIONS, usual)
        data_type = PRECISIONS[precision]
        pass_ = self._word("pass", PASSES, "fwd")
        algorithm = self._word("algo", ALGORITHMS, "") or None
        is_report = any(self.values.get(name) is not None for name in _REPORT_GEMM)
        self.report = [self._count(name) for name in _REPORT_GEMM] if is_report else []
        kernel = self._kernel()
        problem = self._problem(data_type, pass_) if kernel is None else kernel.problem
        tiling = self._tiling() if is_tiled else None
        if problem is not None and tiling is not None and problem.kind != "gemm":
            self.faults.append(f"{problem.kind} with tiles; only GEMMs can have them here")
        if self.faults or self.missing or problem is None:
            return None
        is_conv = problem.kind == "conv2d"
        transposed = dict(problem.attributes) | {
            name: True for name in ("a_t", "b_t") if self.values.get(name)
        }
        return TimeRow(
            place=self.place,
            values=self.values,
            problem=problem,
            arch=arch,
            gpu=gpu,
            precision=precision,
            data_type=data_type,
            pass_=_pass_of(problem) if is_conv and kernel is None else "",
            algorithm=algorithm if is_conv and kernel is None else None,
            a_transposed=bool(transposed.get("transpose_a")),
            b_transposed=bool(transposed.get("transpose_b")),
            time_us=time_us,
            apart=_apart(self.values),
            tiling=tiling,
            kernel=kernel,
        )

    def _time(self) -> float:
        if self._lacks("time_us"):
            return 0.0
        value = self.values["time_us"]
        if isinstance(value, int | float) and 0 < value < _LONGEST_US:
            return float(value)
        self.faults.append(f"time_us is {shown(value)}; microseconds above 0 are needed")
        return 0.0

    def _gpu(self) -> tuple[str, str | None]:
        value = self.values.get("gpu")
        if value is None:
            if _REPORT_COLUMN not in self.values:
                return "", None
            value = _REPORT_GPU
        arch = _gpu_names().get(_folded(str(value)))
        if arch is None:
            self.faults.append(f"gpu is {shown(value)}; {nearest(str(value)[:80], GPUS)}")
        return str(value), arch

    def _word(self, name: str, allowed: Iterable[str], default: str) -> str:
        value = self.values.get(name)
        if value is None:
            return default
        for word in allowed:
            if word.casefold() == str(value).casefold():
                return word
        self.faults.append(f"{name} is {shown(value)}; {nearest(str(value)[:80], allowed)}")
        return next(iter(allowed))

    def _problem(self, data_type: str, pass_: str) -> Problem | None:
        element_bytes = _ELEMENT_BYTES[data_type]
        if self.values.get("case") is not None:  # of a kernel that could not be read
            return None
        with gathered(self.faults):
            if self.values.get("problem") is not None:
                return self._from_text(element_bytes)
            if self._is_conv():
                return self._conv(element_bytes, PASSES[pass_])
            return self._gemm(data_type)
        return None

    def _from_text(self, element_bytes: int) -> Problem | None:
        problem = problem_of(str(self.values["problem"]))
        if problem.kind not in ("conv2d", "gemm") or "G" in problem.dims:
            what = "grouped convolution" if "G" in problem.dims else problem.kind
            self.faults.append(f"problem is a {what}; a gemm or a conv2d without groups is needed")
            return None
        if self.values.get(self._either("precision", "data_type")) is not None:
            problem = problem.with_element_bytes(element_bytes)
        return problem

    def _is_conv(self) -> bool:
        kind = self.values.get("kind")
        if kind is not None:
            return self._word("kind", ("conv", "gemm"), "conv") == "conv"
        return any(name in self.values for name in ("filter_w", "filter_h", "w", "h"))

    def _conv(self, element_bytes: int, pass_: str) -> Problem | None:
        sizes: dict[str, Any] = {name: self._count(name) for name in _IMAGE}
        borders = {}
        for side in "hw":
            for name, least in _BORDERS.items():
                own = f"{name}_{side}"
                column = own if own in self.values or name not in self.values else name
                borders[own] = self._count(column, least)
        if self.faults or self.missing:
            return None
        sizes |= {"r": sizes.pop("filter_h"), "s": sizes.pop("filter_w")}
        return conv2d(
            **sizes,
            stride=(borders["stride_h"], borders["stride_w"]),
            padding=(borders["pad_h"], borders["pad_w"]),
            pass_=pass_,
            element_bytes=element_bytes,
        )

    def _gemm(self, data_type: str) -> Problem | None:
        if self.report:
            n, m, k = self.report
        else:
            m, n, k = (self._count(self._either(name, name.upper())) for name in _GEMM)
        flags = [self._flag(name) for name in ("a_t", "b_t")]
        if self.faults or self.missing:
            return None
        product = gemm(m=m, n=n, k=k, transpose_a=flags[0], transpose_b=flags[1])
        return stored_as(product, data_type)

    def _kernel(self) -> Kernel | None:
        case = self.values.get("case")
        if case is None:
            return None
        registers = self._count("registers") if self.values.get("registers") is not None else None
        with gathered(self.faults):
            return kernel_of(str(case), registers)
        return None

    def _tiling(self) -> Tiling:
        tile_m, tile_n, tile_k, group_m = (self._count(name) for name in TILING)
        optional = {
            name: self._count(column)
            for name, column in (
                ("split_k", "split_k"),
                ("stages", "stages"),
                ("threads", "block_threads"),
                ("registers", "registers"),
            )
            if self.values.get(column) is not None
        }
        return Tiling((tile_m, tile_n, tile_k), group_m, **optional)

    def _count(self, name: str, least: int = 1) -> int:
        if self._lacks(name):
            return least
        value = self.values[name]
        if is_count(value, least, _LARGEST):
            return value
        self.faults.append(
            f"{name} is {shown(value)}; a whole number from {least} to {_LARGEST} is needed"
        )
        return least

    def _flag(self, name: str) -> bool:
        value = self.values.get(name)
        if value not in (None, 0, 1):
            self.faults.append(f"{name} is {shown(value)}; 0 or 1 is needed")
        return value == 1

    def _either(self, name: str, other: str) -> str:
        return other if name not in self.values and other in self.values else name

    def _lacks(self, name: str) -> bool:
        if name in self.values:
            return False
        sizes = (*_IMAGE, *_GEMM)
        if name in sizes and not any(one in self.values for one in sizes):
            # Nothing at all: say what a row can be, once.
            self.missing.append(
                "no columns describe the rows; needed are: problem; or case; or "
                f"{' '.join(_IMAGE)} pad_w pad_h stride_w stride_h; or {' '.join(_GEMM)}"
            )
            return True
        self.missing.append(f"no column '{name}'; {nearest(name, self.values, 'there are')}")
        return True


@cache
def _gpu_names() -> Mapping[str, str]:
    known = {_folded(arch): arch for arch in resource_names("archs", ".yaml")}
    return known | {"1080ti": "gtx_1080ti"}


def _folded(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _pass_of(problem: Problem) -> str:
    which = dict(problem.attributes).get("pass", "forward")
    return next(short for short, long in PASSES.items() if long == which)


def _apart(values: Mapping[str, Value]) -> str:
    said = str(values.get("anomaly") or "")
    return next(
        (part.strip() for part in said.split(";") if any(word in part for word in _APART)), ""
    )
