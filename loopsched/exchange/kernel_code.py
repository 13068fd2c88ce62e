"""Kernels as programs that build alone: C with its own harness, LLVM's text."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from loopsched.base.errors import ArchError, ProblemError
from loopsched.codegen.c_text import WORDS, CText
from loopsched.codegen.choose import core_of
from loopsched.codegen.contraction import row_major, stored_shape
from loopsched.codegen.element import BF16, DATA_TYPES, FP32, Element, Types, type_of
from loopsched.codegen.llvm_text import LlvmText
from loopsched.codegen.stages import General, Stage, order_of, write_chosen
from loopsched.codegen.writer import Writer
from loopsched.exchange.accesses import Access, accesses
from loopsched.exchange.exported import Exported
from loopsched.exchange.names import checked_name, safe_names
from loopsched.machines.arch import Arch
from loopsched.nests.loops_text import loop_spans
from loopsched.nests.nest import Loop, Schedule
from loopsched.problems.problem import Problem, Tensor

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """auto break case char const continue default do double else enum extern float for goto if
    inline int long register restrict return short signed sizeof static struct switch typedef
    union unsigned void volatile while asm bool true false nullptr alignas alignof thread_local
    constexpr typeof main linux unix i386 NULL EOF stdin stdout stderr printf malloc calloc free
    abort exit aligned_alloc memcpy memset fabs timespec timespec_get work round job int64_t int32_t
    uint32_t uint64_t state_ sums_ seen_ point_ at_ took_ least_ n_ start_ each_ small_ now_ wide_
    narrow_""",
    )
).union(WORDS)
_AVX2_BYTES, _AVX2_REGISTERS = 32, 16
_PAGE = 4096


def to_c(
    problem: Problem,
    schedule: Schedule | None = None,
    arch: Arch | None = None,
    *,
    name: str = "compute",
) -> Exported:
    """Write a C program that computes a problem, with OpenMP, vectors, and a harness.

    ``cc -O3 -march=native -fopenmp compute.c && ./a.out`` fills the tensors
    with random numbers, checks the output against plain loops, and prints the
    time that the function takes.

    Parameters
    ----------
    problem : Problem
    schedule : Schedule, optional
        Its loops are kept, and a register tile is put inside. Where
        the innermost tile touches at most 128 KiB, loops of the sum run innermost in it.
        Threads share its outermost spatial loops if their iterations write disjoint parts
        of the output.  Without a schedule, the model of kernels chooses one for ``arch``.
    arch : Arch, optional
        A CPU, for its vectors and its number of cores. By default, 16 registers of 256
        bits.
    name : str
        Of the function, which takes the tensors that are read, in the problem's order, then
        the output, all row-major.

    Returns
    -------
    Exported
        One file, ``<name>.c``; ``lost`` names element sizes that are computed
        in another type.

    Raises
    ------
    ScheduleError
        If the schedule does not cover the problem.
    ArchError
        If neither a schedule is given nor a CPU.

    See Also
    --------
    to_llvm, compile

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=6, n=2, k=2)
    >>> made = to_c(problem, parse_schedule("M:6@SM N:2@SM K:2 M:4", problem))
    >>> for line in made.text().splitlines()[:4]:
    ...     print(line)
    /* Made by loopsched: C = A * B, m6 n2 k2
       from the schedule M:6@SM N:2@SM K:2 M:4
       Build and run: cc -O3 -march=native -fopenmp compute.c && ./a.out
       With -DNO_MAIN only the function is built. */
    """
    checked_name(name, _KEYWORDS)
    types, lost = _types(problem)
    program, stages, source = _program(CText, problem, schedule, arch, types, f"{name}_run")
    reserved = {*_KEYWORDS, name, *(stage.name for stage in stages)}
    words = safe_names((tensor.name for tensor in problem.tensors), reserved)
    lines = [
        f"/* Made by loopsched: {_formula(problem)}, {_comment(problem.name)}",
        f"   {source}",
        f"   Build and run: cc -O3 -march=native -fopenmp {name}.c && ./a.out",
        "   With -DNO_MAIN only the function is built. */",
        "#include <stdio.h>",
        "#include <stdlib.h>",
        program.text(),
        *_function(problem, stages, types, words, name),
        "",
        *_Harness(problem, types, words, name).lines(),
        "",
    ]
    return Exported(((f"{name}.c", "\n".join(lines)),), lost)


def to_llvm(
    problem: Problem,
    schedule: Schedule | None = None,
    arch: Arch | None = None,
    *,
    name: str = "compute",
) -> Exported:
    """Write the LLVM IR of a function that computes a problem on one thread.

    Parameters
    ----------
    problem, schedule, arch
        As for `to_c`.
    name : str
        Of the function, which takes the tensors as that of `to_c` does, and work space; the
        first lines of the file say how much.

    Returns
    -------
    Exported
        One file, ``<name>.ll``.

    Raises
    ------
    ScheduleError, ArchError
        As for `to_c`.

    See Also
    --------
    to_c, compile

    Examples
    --------
    >>> from loopsched import gemm, parse_schedule
    >>> problem = gemm(m=6, n=2, k=2)
    >>> made = to_llvm(problem, parse_schedule("M:6 N:2 K:2 M:4", problem))
    >>> for line in made.text().splitlines()[:4]:
    ...     print(line)
    ; Made by loopsched: C = A * B, m6 n2 k2
    ; from the schedule M:6 N:2 K:2 M:4
    ; compute(A[6][2], B[2][2], C[6][2], work): work leads to 4096 zero bytes, page-aligned
    ; Build: clang -O3 -march=native -c compute.ll (LLVM 15 or later)
    """
    checked_name(name, _KEYWORDS)
    types, lost = _types(problem)
    program, stages, source = _program(LlvmText, problem, schedule, arch, types, f"{name}_run")
    order = _order(problem)
    words = {one.name: f"tensor{number}" for number, one in enumerate(order)}
    with program.function(name, [*words.values(), "work"], [], is_public=True):
        for stage in stages:
            given = [program.argument(words[one]) for one in stage.tensors]
            program.call(stage.name, [*given, program.argument("work")], [0, stage.n_jobs])
    shapes = ", ".join(_shaped(problem, one, one.name) for one in order)
    lines = [
        f"; Made by loopsched: {_formula(problem)}, {problem.name}".replace("\n", " "),
        f"; {source}",
        f"; {name}({shapes}, work): work leads to {_room(stages, types)} zero bytes, page-aligned",
        f"; Build: clang -O3 -march=native -c {name}.ll (LLVM 15 or later)",
        program.text(),
    ]
    return Exported(((f"{name}.ll", "\n".join(lines)),), lost)


def _types(problem: Problem) -> tuple[Types, tuple[str, ...]]:
    """Choose types, and say what is computed in another than its element size names."""
    try:
        types = DATA_TYPES[type_of(problem)]
    except ProblemError:
        types = DATA_TYPES["fp32"]
    lost = []
    for tensor in problem.tensors:
        element = types.out if tensor.name == problem.output else types.read
        if element.n_bytes != tensor.element_bytes:
            lost.append(
                f"'{tensor.name}': elements of {tensor.element_bytes} bytes are stored as "
                f"{element.name}"
            )
    return types, tuple(lost)


def _program(
    kind: type[Writer],
    problem: Problem,
    schedule: Schedule | None,
    arch: Arch | None,
    types: Types,
    name: str,
) -> tuple[Writer, list[Stage], str]:
    """Write a problem; give the program, its stages, and a sentence of where it comes from."""
    size = types.compute.n_bytes
    lanes, registers = _AVX2_BYTES // size, _AVX2_REGISTERS
    is_cpu = arch is not None and arch.cpu is not None
    if arch is not None and arch.cpu is not None:
        lanes, registers = arch.cpu.lanes(size), arch.cpu.vector_registers
    text = kind(types.compute, lanes)
    elements = {one.name: types.read for one in problem.tensors}
    elements[problem.output] = types.out
    if schedule is not None:
        order = order_of(problem, schedule)
        stages = General(text, problem, elements, {}, registers).write(name, order)
        return text, stages, f"from the schedule {schedule}"
    if arch is None or not is_cpu:
        raise ArchError("without a schedule a CPU is needed, such as 'host'")
    core, cores = core_of(arch, size)
    stages = write_chosen(text, problem, elements, core, cores, name)
    return text, stages, f"as chosen for {_comment(arch.name)}, {cores} cores"


def _order(problem: Problem) -> list[Tensor]:
    read = [tensor for tensor in problem.tensors if tensor.name != problem.output]
    return [*read, problem.output_tensor]


def _formula(problem: Problem) -> str:
    read = [tensor.name for tensor in problem.tensors if tensor.name != problem.output]
    return f"{problem.output} = {' * '.join(read) or '1'}"


def _comment(text: str) -> str:
    return " ".join(text.replace("*/", "* /").split())


def _shaped(problem: Problem, tensor: Tensor, word: str) -> str:
    return word + "".join(f"[{size}]" for size in stored_shape(problem, tensor))


def _room(stages: Sequence[Stage], types: Types) -> int:
    """Bytes of a thread's room: whole pages."""
    most = max(stage.room for stage in stages) * types.compute.n_bytes
    return -(-most // _PAGE) * _PAGE + _PAGE


def _function(
    problem: Problem, stages: Sequence[Stage], types: Types, words: Mapping[str, str], name: str
) -> list[str]:
    """Write the function that users call: its stages, one after the other, on all threads."""
    parameters = []
    for tensor in _order(problem):
        is_out = tensor.name == problem.output
        kind = types.out.c if is_out else f"const {types.read.c}"
        parameters.append(f"{kind} *restrict {words[tensor.name]}")
    shapes = ", ".join(_shaped(problem, one, words[one.name]) for one in _order(problem))
    lines = [
        f"/* {shapes} */",
        f"void {name}({', '.join(parameters)})",
        "{",
        "  #pragma omp parallel",
        "  {",
        f"    byte *work = aligned_alloc({_PAGE}, {_room(stages, types)});",
        "    if (!work)",
        "      abort();",
        f"    memset(work, 0, {_room(stages, types)});  /* unused lanes are multiplied, too */",
    ]
    for stage in stages:
        each = stage.n_jobs // stage.n_rounds
        given = ", ".join(f"(byte *){words[one]}" for one in stage.tensors)
        margin, start, stop = "    ", "0", str(each)
        if stage.n_rounds > 1:
            lines.append(f"    for (num round = 0; round < {stage.n_rounds}; round++)")
            margin, start, stop = "      ", f"round * {each}", f"(round + 1) * {each}"
        lines += [
            f"{margin}#pragma omp for schedule(static)",
            f"{margin}for (num job = {start}; job < {stop}; job++)",
            f"{margin}  {stage.name}({given}, work, job, job + 1);",
        ]
    return [*lines, "    free(work);", "  }", "}"]


class _Harness:
    """Writes a program that checks and times a function; names of its own end in ``_``."""

    def __init__(self, problem: Problem, types: Types, words: Mapping[str, str], name: str) -> None:
        self.problem, self.types, self.words, self.name = problem, types, words, name
        self.tensors = _order(problem)

    def lines(self) -> list[str]:
        """Give its lines."""
        problem, types = self.problem, self.types
        sizes = {one.name: math.prod(stored_shape(problem, one)) for one in self.tensors}
        given = ", ".join(self.words[one.name] for one in self.tensors)
        declared = []
        for one in self.tensors:
            kind = self._element(one).c
            word = self.words[one.name]
            declared.append(f"  {kind} *{word} = malloc({sizes[one.name]} * sizeof *{word});")
        n_out = sizes[problem.output]
        filled = [
            f"  for (num at_ = 0; at_ < {sizes[one.name]}; at_++)\n"
            f"    {self.words[one.name]}[at_] = {self._stored('small_(&state_)', types.read)};"
            for one in self.tensors[:-1]
        ]
        out = self.words[problem.output]
        found = self._number(f"{out}[at_]", types.out)
        # Products of small whole numbers: sums are exact as long as they are short.
        most = problem.macs * 3 ** (len(self.tensors) - 1)
        tolerance = "0" if most < 2**24 or types.compute != FP32 else f"{most}e-7"
        if types.out == BF16:
            tolerance = f"fabs(sums_[at_]) / 128 + {tolerance}"
        return [
            "#ifndef NO_MAIN",
            "#include <math.h>",
            "#include <time.h>",
            "",
            *(_BF16.splitlines() if types.read == BF16 else []),
            *_HARNESS.splitlines(),
            "",
            "int main(void)",
            "{",
            "  unsigned state_ = 1;",
            *declared,
            f"  double *sums_ = calloc({n_out}, sizeof *sums_);",
            *filled,
            f"  {self.name}({given});",
            *self._check(),
            f"  for (num at_ = 0; at_ < {n_out}; at_++)",
            f"    if (seen_[at_] && !(fabs({found} - sums_[at_]) <= {tolerance})) {{",
            f'      printf("wrong: {_quoted(problem.output)}[%lld] is %g, not %g\\n", '
            f"(long long)at_, (double){found}, sums_[at_]);",
            "      return 1;",
            "    }",
            "  double took_ = 0, least_ = 1e30;",
            "  int n_ = 0;",
            "  for (; n_ < 5 || (took_ < 0.5 && n_ < 10000); n_++) {",
            "    double start_ = now_();",
            f"    {self.name}({given});",
            "    double each_ = now_() - start_;",
            "    took_ += each_;",
            "    least_ = each_ < least_ ? each_ : least_;",
            "  }",
            f'  printf("correct; best %g ms, mean %g ms, %.1f GFLOP/s\\n", '
            f"1e3 * least_, 1e3 * took_ / n_, {problem.flops}e-9 / least_);",
            "  return 0;",
            "}",
            "#endif",
        ]

    def _element(self, tensor: Tensor) -> Element:
        return self.types.out if tensor.name == self.problem.output else self.types.read

    @staticmethod
    def _number(text: str, element: Element) -> str:
        return f"wide_({text})" if element == BF16 else text

    @staticmethod
    def _stored(text: str, element: Element) -> str:
        return f"narrow_({text})" if element == BF16 else text

    def _check(self) -> list[str]:
        """Write plain loops: of the output, all or every so many of its elements; of sums."""
        problem = self.problem
        inside = [dim for dim in problem.dims if problem.output_tensor.is_indexed_by(dim)]
        plain = all(len(axis.dims) <= 1 for axis in problem.output_tensor.axes)
        every = max(1, problem.macs // _MOST_CHECKED) if plain else 1
        order = [*inside, *(dim for dim in problem.dims if dim not in inside)]
        schedule = Schedule(tuple(Loop(dim, problem.size[dim]) for dim in order))
        taken = (*_KEYWORDS, self.name, *self.words.values())
        spans = loop_spans(problem, schedule, taken)
        touched = accesses(problem, schedule, spans, self.words)
        n_out = math.prod(stored_shape(problem, problem.output_tensor))
        lines = [
            f"  unsigned char *seen_ = calloc({n_out}, 1);",
            "  num point_ = 0;",
            f"  memset(seen_, {int(every == 1)}, {n_out});",
        ]
        for depth, span in enumerate(spans, 1):
            word = span.variable
            if depth == len(inside) + 1 and every > 1:
                lines.append(f"{'  ' * depth}if (point_++ % {every} == 0)")
            head = f"for (num {word} = 0; {word} < {span.ends[0]}; {word}++)"
            lines.append(f"{'  ' * depth}{head}")
        margin = "  " * (len(spans) + 1)
        tests = [test for one in touched for guard in one.guards for test in guard.tests]
        values = [
            f"(double){self._number(f'{one.word}[{self._flat(one)}]', self.types.read)}"
            for one in touched[1:]
        ]
        place = self._flat(touched[0])
        if every > 1 and len(inside) == len(spans):
            tests.insert(0, f"point_++ % {every} == 0")
        body = f"{{ sums_[{place}] += {' * '.join(values) or '1'}; seen_[{place}] = 1; }}"
        lines.append(f"{margin}if ({' && '.join(tests) or '1'}) {body}")
        return [*lines, "  (void)point_;"]

    def _flat(self, access: Access) -> str:
        steps = row_major(stored_shape(self.problem, access.tensor))
        terms = [f"({one}) * {step}" for one, step in zip(access.indices, steps, strict=True)]
        return " + ".join(terms) or "0"


def _quoted(text: str) -> str:
    return text.replace("%", "%%")


_MOST_CHECKED = 2**28
_BF16 = """\
static float wide_(unsigned short value)
{
  uint32_t raw = (uint32_t)value << 16;
  float found;
  memcpy(&found, &raw, sizeof found);
  return found;
}

static unsigned short narrow_(float value)
{
  uint32_t raw;
  memcpy(&raw, &value, sizeof raw);
  return (unsigned short)(raw >> 16);
}
"""
_HARNESS = """\
static int small_(unsigned *state)
{
  *state = *state * 1664525u + 1013904223u;
  return (int)(*state >> 16) % 7 - 3;
}

static double now_(void)
{
  static time_t began;
  struct timespec at;
  timespec_get(&at, TIME_UTC);
  if (!began)
    began = at.tv_sec;
  return (at.tv_sec - began) + 1e-9 * at.tv_nsec;
}
"""
