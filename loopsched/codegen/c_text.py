"""Programs as C for gcc and clang, written statement by statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from loopsched.codegen.element import BF16, FP64, Element
from loopsched.codegen.memory import LINE
from loopsched.codegen.writer import Loop, Number, Writer

_SUFFIXES = {"fp32": "ps", "fp64": "pd", "int32": "epi32", "bf16": "epi16", "int8": "epi8"}
_WIDTHS = {16: "_mm", 32: "_mm256", 64: "_mm512"}
_LEAST_BYTES = 4
_QUIET = ("psabi", "unused-variable")
_INLINE = "static inline __attribute__((always_inline))"
"""Before functions of vectors: a CPU may lack registers for these, of which gcc warns."""

_OF_ELEMENTS = "{}_at", "vec_{}", "read_part_{}", "write_part_{}", "read_apart_{}"
WORDS = (
    *("byte", "num", "unum", "one", "vec", "vec_at", "bits", "ubits", "clamped", "lanes_inside"),
    *("mask_bits", "rounded", "rounded_one", "wide_one"),
    *(word.format(name) for word in _OF_ELEMENTS for name in _SUFFIXES),
)
"""Names that programs use beside those of their functions, tables and arguments."""


class CText(Writer):
    """A program in C with vector extensions; a mask is a number, a bit for each lane."""

    def __init__(self, element: Element, lanes: int) -> None:
        super().__init__(element, lanes)
        self._n_first: dict[str, int] = {}
        """Masks of first lanes: how many these are."""

    def text(self) -> str:
        needs_header = any("_mm" in one for one in self._declared.values())
        includes = [f'#pragma GCC diagnostic ignored "-W{one}"' for one in _QUIET]
        includes += ["#include <stdint.h>", "#include <string.h>"]
        if needs_header:
            includes += ["#ifdef __AVX2__", "#include <immintrin.h>", "#endif"]
        return "\n".join(
            [
                *includes,
                "",
                *self._kinds(),
                "",
                *self._declared.values(),
                *(
                    f"static const num {name}[{len(one)}] = {{{', '.join(map(str, one))}}};"
                    for name, one in self._tables.items()
                ),
                "",
                *self._lines,
            ]
        )

    def _kinds(self) -> list[str]:
        kind, size = self.element.c, self.element.n_bytes
        whole = "int64_t" if size == FP64.n_bytes else "int32_t"
        vector = f"vector_size({size * self.lanes})"
        return [
            "typedef unsigned char byte;",
            "typedef int64_t num;",
            "typedef uint64_t unum;",
            f"typedef {kind} one;",
            f"typedef {kind} vec __attribute__(({vector}));",
            f"typedef {kind} vec_at __attribute__(({vector}, aligned({size}), may_alias));",
            f"typedef {whole} bits __attribute__(({vector}));",
            f"typedef u{whole} ubits __attribute__(({vector}));",
        ]

    # Functions

    _end_of_function = "}", ""

    def _open_function(
        self, name: str, pointers: Sequence[str], numbers: Sequence[str], *, is_public: bool
    ) -> None:
        pairs = [f"byte *restrict {one}" for one in pointers] + [f"num {one}" for one in numbers]
        unused = [f"(void){one};" for one in (*pointers, *numbers)]
        kind = "" if is_public else "static __attribute__((noinline)) "
        self._lines += [f"{kind}void {name}({', '.join(pairs)})", "{", f"  {' '.join(unused)}"]

    def argument(self, name: str) -> str:
        return name

    def _call(self, name: str, pointers: Sequence[str], numbers: Sequence[Number]) -> None:
        self._lines.append(f"  {name}({', '.join(map(str, (*pointers, *numbers)))});")

    def _address(self, name: str) -> str:
        return name

    # Integers and addresses

    def _new(self, kind: str, text: str) -> str:
        name = self._named("v", kind)
        self._lines.append(f"  {kind}{'' if kind[-1] == '*' else ' '}{name} = {text};")
        return name

    def _arithmetic(self, sign: str, one: Number, other: Number) -> str:
        if sign in "/%":
            return self._new("num", f"(num)((unum){one} {sign} {other})")
        return self._new("num", f"{one} {sign} {other}")

    def choice(self, truth: str, one: Number, other: Number) -> Number:
        return self._new("num", f"{truth} ? {one} : {other}")

    def less(self, one: Number, other: Number) -> str:
        return self._new("int", f"{one} < {other}")

    def equal(self, one: Number, other: Number) -> str:
        return self._new("int", f"{one} == {other}")

    def inside(self, one: Number, size: int) -> str:
        return self._new("int", f"(unum)({one}) < {size}")

    def both(self, one: str, other: str) -> str:
        return self._new("int", f"{one} & {other}")

    def negated(self, truth: str) -> str:
        return self._new("int", f"!{truth}")

    def at(self, pointer: str, index: Number, element: Element) -> str:
        if index == 0:
            return pointer
        if isinstance(index, int):
            return self._new("byte *", f"{pointer} + {index * element.n_bytes}")
        return self._new("byte *", f"{pointer} + {index} * {element.n_bytes}")

    def entry(self, table: str, index: Number) -> Number:
        return self._new("num", f"{table}[{index}]")

    # Control

    @contextmanager
    def _loop(
        self, start: Number, stop: Number, step: int, values: Sequence[str]
    ) -> Iterator[Loop]:
        carried = [self._new(self._types[one], one) for one in values]
        self._count += 1
        index = f"i{self._count}"
        self._lines.append(f"  for (num {index} = {start}; {index} < {stop}; {index} += {step}) {{")
        loop = Loop(index, carried)
        yield loop
        self._set(carried, loop.next)
        self._lines.append("  }")
        loop.values = carried

    @contextmanager
    def when(self, truth: str, values: Sequence[str] = ()) -> Iterator[Loop]:
        carried = [self._new(self._types[one], one) for one in values]
        self._lines.append(f"  if ({truth}) {{")
        branch = Loop(0, carried)
        yield branch
        self._set(carried, branch.next)
        self._lines.append("  }")

    def _set(self, carried: Sequence[str], values: Sequence[str]) -> None:
        """Give new values to what is carried, all at once: one may be what another one was."""
        follow = [
            self._new(self._types[new], new) if new in carried and new != old else new
            for old, new in zip(carried, values, strict=True)
        ]
        self._lines += [
            f"  {old} = {new};" for old, new in zip(carried, follow, strict=True) if old != new
        ]

    # Vectors and masks

    def zero(self) -> str:
        return self._new("vec", "{0}")

    def number(self, value: int) -> str:
        return self._new("one", str(value))

    def first_lanes(self, n: int) -> str | None:
        if n >= self.lanes:
            return None
        mask = f"{(1 << n) - 1}u"
        self._n_first[mask] = n
        return mask

    def some_lanes(self, picks: Sequence[bool]) -> str | None:
        if all(picks):
            return None
        return f"{sum(1 << lane for lane, one in enumerate(picks) if one)}u"

    def mixed(self, one: str, other: str, picks: Iterable[int]) -> str:
        listed = ", ".join(map(str, picks))
        return self._new("vec", f"__builtin_shufflevector({one}, {other}, {listed})")

    def read_again(self) -> None:
        self._lines.append('  __asm__ volatile("" ::: "memory");')

    def lanes_inside(self, first: Number, step: int, size: Number) -> str:
        self._declare("lanes_inside", _LANES_INSIDE.replace("LANES", str(self.lanes)))
        return self._new("unsigned", f"lanes_inside({first}, {step}, {size})")

    def mask_and(self, mask: str | None, other: str | None) -> str | None:
        if mask is None or other is None:
            return mask or other
        return self._new("unsigned", f"{mask} & {other}")

    def mask_if(self, truth: str, mask: str | None) -> str:
        return self._new("unsigned", f"{truth} ? {mask or f'{(1 << self.lanes) - 1}u'} : 0u")

    def _declare(self, name: str, text: str) -> str:
        self._declared[name] = text
        return name

    def _all(self, text: str, lanes: int | None = None) -> str:
        """List a text for every lane, with its number in place of ``@``."""
        return ", ".join(text.replace("@", str(lane)) for lane in range(lanes or self.lanes))

    def _part(self, element: Element, *, is_write: bool) -> str:
        """Read or write the lanes of a mask: with instructions that have one, else one by one."""
        name = f"{'write' if is_write else 'read'}_part_{element.name}"
        lines = []
        n_bytes, suffix = self.lanes * element.n_bytes, _SUFFIXES[element.name]
        width = _WIDTHS.get(n_bytes)
        if width:
            needs = ["AVX512VL"] if n_bytes < max(_WIDTHS) else ["AVX512F"]
            needs += ["AVX512BW"] if element.n_bytes < _LEAST_BYTES else []
            kind = {"ps": "", "pd": "d"}.get(suffix, "i")
            cast = f"__m{n_bytes * 8}{kind}"
            write = f"{width}_mask_storeu_{suffix}(at, mask, ({cast})value)"
            read = f"return (RAW){width}_maskz_loadu_{suffix}(mask, at)"
            lines += [f"#if {' && '.join(f'defined(__{one}__)' for one in needs)}"]
            lines += [f"  {write if is_write else read};"]
            if n_bytes == 32 and element.n_bytes >= _LEAST_BYTES:  # AVX2 masks whole numbers
                place = "at" if kind != "i" else "(void *)at"
                place = f"({element.c} *){place}"
                among = "(__m256i)mask_bits(mask)"
                write = f"_mm256_maskstore_{suffix}({place}, {among}, ({cast})value)"
                read = f"return (RAW)_mm256_maskload_{suffix}({place}, {among})"
                lines += ["#elif defined(__AVX2__)", f"  {write if is_write else read};"]
                lane_bits = self._all("1 << @")
                self._declare(
                    "mask_bits",
                    f"{_INLINE} bits mask_bits(unsigned mask)\n{{\n"
                    f"  const bits lane = {{{lane_bits}}};\n"
                    f"  bits all = {{{self._all('mask')}}};\n"
                    "  return (all & lane) != 0;\n}\n",
                )
            lines += ["#else"]
        each = f"for (int lane = 0; lane < {self.lanes}; lane++)\n    if (mask >> lane & 1u) "
        place = f"at + lane * {element.n_bytes}"
        lines += (
            [f"  {each}{{ {element.c} x = value[lane]; memcpy({place}, &x, sizeof x); }}"]
            if is_write
            else [
                "  RAW found = {0};",
                f"  {each}{{ {element.c} x; memcpy(&x, {place}, sizeof x); found[lane] = x; }}",
                "  return found;",
            ]
        )
        lines += ["#endif"] if width else []
        head = f"void {name}(byte *at, unsigned mask, RAW value)"
        if not is_write:
            head = f"RAW {name}(const byte *at, unsigned mask)"
        body = "\n".join([f"{_INLINE} {head}", "{", *lines, "}", ""])
        return self._declare(name, body.replace("RAW", self._raw(element)))

    def _raw(self, element: Element) -> str:
        """Name the type of a vector as it is stored."""
        if element == self.element:
            return "vec"
        n_bytes = self.lanes * element.n_bytes
        self._declare(
            f"vec_{element.name}",
            f"typedef {element.c} vec_{element.name} __attribute__((vector_size({n_bytes})));\n"
            f"typedef {element.c} vec_{element.name}_at "
            f"__attribute__((vector_size({n_bytes}), aligned({element.n_bytes}), may_alias));",
        )
        return f"vec_{element.name}"

    def load(self, pointer: str, element: Element, mask: str | None = None, step: int = 1) -> str:
        raw = self._raw(element)
        if step != 1:
            found = f"{self._apart(element)}({pointer}, {step}, {mask or self._every()})"
        elif mask is None:
            found = f"*(const {raw}_at *){pointer}"
        else:
            found = f"{self._part(element, is_write=False)}({pointer}, {mask})"
        return self._widened(self._new(raw, found), element)

    def _every(self) -> str:
        return f"{(1 << self.lanes) - 1}u"

    def _apart(self, element: Element) -> str:
        """Read elements that do not lie side by side."""
        raw, name = self._raw(element), f"read_apart_{element.name}"
        place, kind = f"at + @ * step * {element.n_bytes}", self._alias(element)
        return self._declare(
            name,
            f"{_INLINE} {raw} {name}(const byte *at, num step, unsigned mask)\n{{\n"
            f"  if (mask == {self._every()})\n"
            f"    return ({raw}){{{self._all(f'*(const {kind} *)({place})')}}};\n"
            f"  {raw} found = {{0}};\n"
            f"  for (int lane = 0; lane < {self.lanes}; lane++)\n    if (mask >> lane & 1u) "
            f"found[lane] = *(const {kind} *)({place.replace('@', 'lane')});\n"
            "  return found;\n}\n",
        )

    def _alias(self, element: Element) -> str:
        """Name a type of one element that may be read through any pointer."""
        name = f"{element.name}_at"
        return self._declare(name, f"typedef {element.c} {name} __attribute__((may_alias));")

    def _widened(self, value: str, element: Element) -> str:
        """Convert what was read to what is computed with."""
        if element == self.element:
            return value
        if element == BF16:
            return self._new("vec", f"(vec)(__builtin_convertvector({value}, bits) << 16)")
        return self._new("vec", f"__builtin_convertvector({value}, vec)")

    def _narrowed(self, value: str, element: Element) -> str:
        """Convert what was computed to what is stored; bf16 is rounded to nearest even."""
        if element == self.element:
            return value
        raw = self._raw(element)
        if element == BF16:
            self._declare("rounded", _ROUNDED)
            value = self._new("bits", f"rounded({value})")
        return self._new(raw, f"__builtin_convertvector({value}, {raw})")

    def store(self, pointer: str, value: str, element: Element, mask: str | None = None) -> None:
        value = self._narrowed(value, element)
        if mask is None:
            self._lines.append(f"  *({self._raw(element)}_at *){pointer} = {value};")
        elif self._n_first.get(mask) and self.lanes * self.element.n_bytes < LINE:
            n_bytes = self._n_first[mask] * element.n_bytes  # AMD's cores take 20 cycles to mask
            self._lines.append(f"  memcpy({pointer}, &{value}, {n_bytes});")
        else:
            part = self._part(element, is_write=True)
            self._lines.append(f"  {part}({pointer}, {mask}, {value});")

    def load_one(self, pointer: str, element: Element, truth: str | None = None) -> str:
        raw = f"*(const {self._alias(element)} *){pointer}"
        if element == BF16 and element != self.element:
            self._declare("wide_one", _WIDE_ONE)
            raw = f"wide_one({raw})"
        return self._new("one", raw if truth is None else f"{truth} ? {raw} : 0")

    def store_one(self, pointer: str, value: str, element: Element) -> None:
        if element == BF16 and element != self.element:
            self._declare("rounded_one", _ROUNDED_ONE)
            value = f"rounded_one({value})"
        self._lines.append(f"  *({self._alias(element)} *){pointer} = {value};")

    def spread(self, value: str) -> str:
        return self._new("vec", f"(vec){{{self._all(value)}}}")

    def fma(self, one: str, other: str, total: str) -> str:
        one, other, total, kind = *map(self._wrapping, (one, other, total)), self._types[one]
        return self._new(kind, f"({kind})({one} * {other} + {total})")

    def _wrapping(self, value: str) -> str:
        """Let whole numbers wrap, as those in lanes that nobody asked for may."""
        if not self.element.is_integer:
            return value
        return f"({'ubits' if self._types[value] == 'vec' else 'uint32_t'}){value}"

    def plus(self, one: str, other: str) -> str:
        kind = self._types[other]
        return self._new(kind, f"({kind})({self._wrapping(one)} + {self._wrapping(other)})")

    def plus_if(self, truth: str, value: str, pointer: str, element: Element) -> str:
        return self.plus(value, self.load_one(pointer, element, truth))

    def room(self, n: int) -> str:
        self._count += 1
        name = f"r{self._count}"
        self._lines.append(f"  one {name}[{n}] __attribute__((aligned(64)));")
        return self._new("byte *", f"(byte *){name}")

    def positive(self, value: str) -> str:
        if self._types[value] == "one":
            return self._new("one", f"{value} < 0 ? 0 : {value}")
        return self._new("vec", f"(vec)((bits){value} & ~(bits)({value} < (vec){{0}}))")

    def fetch(self, pointer: str, *, writes: bool = False) -> None:
        self._lines.append(f"  __builtin_prefetch({pointer}, {'1, 3' if writes else '0, 2'});")


_LANES_INSIDE = """\
static inline num clamped(num lane)
{
  lane = lane < 0 ? 0 : lane;
  return lane > LANES ? LANES : lane;
}

static inline unsigned lanes_inside(num first, num step, num size)
{
  num by = step < 0 ? -step : step;
  first = step < 0 ? size - 1 - first : first;
  if (!step)
    return (unum)first < (unum)size ? (1u << LANES) - 1u : 0u;
  num from = by == 1 ? -first : first >= 0 ? 0 : (by - 1 - first) / by;
  num to = by == 1 ? size - first : first >= size ? 0 : (size - first + by - 1) / by;
  return ((1u << clamped(to)) - 1u) & ~((1u << clamped(from)) - 1u);
}
"""

_ROUNDED = f"""\
{_INLINE} bits rounded(vec value)
{{
  ubits raw = (ubits)value, is_nan = (ubits)(value != value);
  ubits raised = raw + 32767u + (raw >> 16 & 1u);
  return (bits)((raised & ~is_nan) | ((raw | 4194304u) & is_nan)) >> 16;
}}
"""

_ROUNDED_ONE = """\
static inline unsigned short rounded_one(float value)
{
  uint32_t raw;
  memcpy(&raw, &value, sizeof raw);
  raw = value != value ? raw | 4194304u : raw + 32767u + (raw >> 16 & 1u);
  return (unsigned short)(raw >> 16);
}
"""

_WIDE_ONE = """\
static inline float wide_one(unsigned short value)
{
  uint32_t raw = (uint32_t)value << 16;
  float found;
  memcpy(&found, &raw, sizeof found);
  return found;
}
"""
