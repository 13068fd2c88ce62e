"""Programs as LLVM's text, written statement by statement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from loopsched.codegen.element import Element
from loopsched.codegen.memory import LINE
from loopsched.codegen.writer import Loop, Number, Writer

_PIECE_LINES = 250
"""LLVM takes some 20 ms for so many: pieces of a program that are compiled side by side."""
_CALL = "  call void @"
_SIGNS = {"+": "add", "*": "mul", "/": "udiv", "%": "urem"}


class LlvmText(Writer):
    """A program as a module of LLVM's text; arguments are used with a ``%`` before their names."""

    def __init__(self, element: Element, lanes: int) -> None:
        super().__init__(element, lanes)
        self._label = "entry"
        self._n_given = 0
        self._given: dict[str, str] = {}
        """Heads of functions by their names, of modules that were given already."""

    def text(self) -> str:
        return self._module(self._lines, self._tables)

    def pieces(self, *, is_whole: bool, least: int = _PIECE_LINES) -> Iterator[str]:
        """Give what is written and was not given yet, as modules that call each other's functions.

        Until the program is whole, functions wait until they have the ``least`` lines of one.
        """
        lines, start = self._lines, self._n_given
        for end in range(start + 1, len(lines) + 1):
            is_last = is_whole and end == len(lines)
            if is_last or (end - start >= least and not lines[end - 1]):
                yield self._piece(lines[start:end])
                start = self._n_given = end

    def _piece(self, lines: Sequence[str]) -> str:
        """Write functions as a module, and declare others that they call."""
        lines = [line.replace("define internal", "define dso_local", 1) for line in lines]
        called = {line[len(_CALL) :].partition("(")[0] for line in lines if line.startswith(_CALL)}
        declared = [
            line.replace("define dso_local", "declare")[:-2]
            for name, line in self._given.items()
            if name in called
        ]
        heads = [line for line in lines if line.startswith("define")]
        self._given |= {line.partition("@")[2].partition("(")[0]: line for line in heads}
        body = "\n".join(lines)
        used = [name for name in self._tables if f"@{name}" in body]
        self._whole.update(used)
        return self._module([*declared, body], used)

    def _module(self, lines: Iterable[str], tables: Iterable[str]) -> str:
        listed = [
            f"@{name} = internal constant [{len(self._tables[name])} x i64] "
            f"[{', '.join(f'i64 {value}' for value in self._tables[name])}]"
            for name in tables
        ]
        return "\n".join([*listed, *lines, *self._declared.values(), ""])

    # Functions

    _end_of_function = "  ret void", "}", ""

    def _open_function(
        self, name: str, pointers: Sequence[str], numbers: Sequence[str], *, is_public: bool
    ) -> None:
        pairs = [f"ptr noalias %{one}" for one in pointers] + [f"i64 %{one}" for one in numbers]
        kind = "dso_local" if is_public else "internal"
        self._lines.append(f"define {kind} void @{name}({', '.join(pairs)}) nounwind {{")
        self._lines.append("entry:")
        self._label = "entry"

    def argument(self, name: str) -> str:
        return f"%{name}"

    def _call(self, name: str, pointers: Sequence[str], numbers: Sequence[Number]) -> None:
        pairs = [f"ptr {one}" for one in pointers] + [f"i64 {one}" for one in numbers]
        self._lines.append(f"{_CALL}{name}({', '.join(pairs)})")

    def _address(self, name: str) -> str:
        return f"@{name}"

    # Integers and addresses

    def _new(self, text: str, kind: str) -> str:
        name = self._named("%v", kind)
        self._lines.append(f"  {name} = {text}")
        return name

    def _arithmetic(self, sign: str, one: Number, other: Number) -> str:
        return self._new(f"{_SIGNS[sign]} i64 {one}, {other}", "i64")

    def choice(self, truth: str, one: Number, other: Number) -> Number:
        return self._new(f"select i1 {truth}, i64 {one}, i64 {other}", "i64")

    def less(self, one: Number, other: Number) -> str:
        return self._new(f"icmp slt i64 {one}, {other}", "i1")

    def equal(self, one: Number, other: Number) -> str:
        return self._new(f"icmp eq i64 {one}, {other}", "i1")

    def inside(self, one: Number, size: int) -> str:
        return self._new(f"icmp ult i64 {one}, {size}", "i1")

    def both(self, one: str, other: str) -> str:
        return self._new(f"and i1 {one}, {other}", "i1")

    def at(self, pointer: str, index: Number, element: Element) -> str:
        if index == 0:
            return pointer
        kind = f"i{8 * element.n_bytes}"
        return self._new(f"getelementptr {kind}, ptr {pointer}, i64 {index}", "ptr")

    def settled(self, pointer: str) -> str:
        # LLVM would make a pointer of its own for each of many places around one: in vain, and
        # it takes longer than all else.
        return self._new(f"freeze ptr {pointer}", "ptr")

    def entry(self, table: str, index: Number) -> Number:
        place = self._new(f"getelementptr i64, ptr {table}, i64 {index}", "ptr")
        return self._new(f"load i64, ptr {place}", "i64")

    # Control

    def _open(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._label = label

    @contextmanager
    def _loop(
        self, start: Number, stop: Number, step: int, values: Sequence[str]
    ) -> Iterator[Loop]:
        self._count += 1
        number, before = self._count, self._label
        index = f"%i{number}"
        head, body, after = f"head{number}", f"body{number}", f"after{number}"
        phis = [f"%c{number}.{place}" for place in range(len(values))]
        self._types.update({phi: self._types[one] for phi, one in zip(phis, values, strict=True)})
        self._lines.append(f"  br label %{head}")
        self._lines.append(f"{head}:")
        mark = len(self._lines)
        is_sure = isinstance(start, int) and isinstance(stop, int) and start < stop
        if not is_sure:
            self._lines.append(f"  %t{number} = icmp slt i64 {index}, {stop}")
            self._lines.append(f"  br i1 %t{number}, label %{body}, label %{after}")
        else:
            self._lines.append(f"  br label %{body}")
        self._open(body)
        loop = Loop(index, phis)
        yield loop
        self._lines.append(f"  %n{number} = add nsw i64 {index}, {step}")
        back = self._label
        heads = [f"  {index} = phi i64 [ {start}, %{before} ], [ %n{number}, %{back} ]"]
        for phi, first, follow in zip(phis, values, loop.next, strict=True):
            kind = self._types[first]
            heads.append(f"  {phi} = phi {kind} [ {first}, %{before} ], [ {follow}, %{back} ]")
        self._lines[mark:mark] = heads
        if is_sure:
            self._lines.append(f"  %t{number} = icmp slt i64 %n{number}, {stop}")
            self._lines.append(f"  br i1 %t{number}, label %{head}, label %{after}")
        else:
            self._lines.append(f"  br label %{head}")
        self._open(after)
        loop.values = list(loop.next) if is_sure else phis

    @contextmanager
    def when(self, truth: str, values: Sequence[str] = ()) -> Iterator[Loop]:
        self._count += 1
        then, after, before = f"then{self._count}", f"end{self._count}", self._label
        self._lines.append(f"  br i1 {truth}, label %{then}, label %{after}")
        self._open(then)
        branch = Loop(0, values)
        yield branch
        last = self._label
        self._lines.append(f"  br label %{after}")
        self._open(after)
        for place, (old, new) in enumerate(zip(values, branch.next, strict=True)):
            kind = self._types[old]
            phi = f"phi {kind} [ {new}, %{last} ], [ {old}, %{before} ]"
            branch.values[place] = self._new(phi, kind)

    def negated(self, truth: str) -> str:
        return self._new(f"xor i1 {truth}, true", "i1")

    # Vectors; of one lane they are plain numbers

    def _kind(self, lanes: int, element: Element | None = None) -> str:
        name = (element or self.element).llvm
        return f"<{lanes} x {name}>" if lanes > 1 else name

    def zero(self) -> str:
        name = "zeroinitializer"
        self._types[name] = self._kind(self.lanes)
        return name

    def number(self, value: int) -> str:
        name = str(value) if self.element.is_integer else f"{value}.0"
        self._types[name] = self.element.llvm
        return name

    def first_lanes(self, n: int) -> str | None:
        if n >= self.lanes:
            return None
        return self.some_lanes([lane < n for lane in range(self.lanes)])

    def some_lanes(self, picks: Sequence[bool]) -> str | None:
        if all(picks):
            return None
        return f"<{', '.join(f'i1 {int(one)}' for one in picks)}>"

    def mixed(self, one: str, other: str, picks: Iterable[int]) -> str:
        kind = self._kind(self.lanes)
        listed = ", ".join(f"i32 {lane}" for lane in picks)
        return self._new(
            f"shufflevector {kind} {one}, {kind} {other}, <{self.lanes} x i32> <{listed}>", kind
        )

    def lanes_inside(self, first: Number, step: int, size: Number) -> str:
        lanes = self.lanes
        start = self._new(f"insertelement <{lanes} x i64> poison, i64 {first}, i64 0", "")
        zeros = f"<{lanes} x i32> zeroinitializer"
        spread = self._new(
            f"shufflevector <{lanes} x i64> {start}, <{lanes} x i64> poison, {zeros}", ""
        )
        steps = ", ".join(f"i64 {lane * step}" for lane in range(lanes))
        places = self._new(f"add <{lanes} x i64> {spread}, <{steps}>", "")
        if isinstance(size, int):
            sizes = "<" + ", ".join([f"i64 {size}"] * lanes) + ">"
        else:
            start = self._new(f"insertelement <{lanes} x i64> poison, i64 {size}, i64 0", "")
            sizes = self._new(
                f"shufflevector <{lanes} x i64> {start}, <{lanes} x i64> poison, {zeros}", ""
            )
        mask = self._new(f"icmp ult <{lanes} x i64> {places}, {sizes}", "")
        # LLVM would compare anew wherever a mask is used, in the innermost loop too.
        return self._new(f"freeze <{lanes} x i1> {mask}", "")

    def mask_and(self, mask: str | None, other: str | None) -> str | None:
        if mask is None or other is None:
            return mask or other
        return self._new(f"and <{self.lanes} x i1> {mask}, {other}", "")

    def mask_if(self, truth: str, mask: str | None) -> str:
        lanes = self.lanes
        every = mask or "<" + ", ".join(["i1 1"] * lanes) + ">"
        return self._new(
            f"select i1 {truth}, <{lanes} x i1> {every}, <{lanes} x i1> zeroinitializer", ""
        )

    def _declare(self, name: str, line: str) -> str:
        self._declared[name] = f"declare {line}"
        return f"@{name}"

    def load(self, pointer: str, element: Element, mask: str | None = None, step: int = 1) -> str:
        lanes, kind = self.lanes, self._kind(self.lanes, element)
        if step != 1:
            return self._gathered(pointer, element, mask, step)
        if mask is None:
            raw = self._new(f"load {kind}, ptr {pointer}, align {element.n_bytes}", kind)
        else:
            suffix = f"v{lanes}{element.llvm_short}"
            name = self._declare(
                f"llvm.masked.load.{suffix}.p0",
                f"{kind} @llvm.masked.load.{suffix}.p0(ptr, i32, <{lanes} x i1>, {kind})",
            )
            raw = self._new(
                f"call {kind} {name}(ptr {pointer}, i32 {element.n_bytes}, "
                f"<{lanes} x i1> {mask}, {kind} zeroinitializer)",
                kind,
            )
        return self._widened(raw, element, lanes)

    def _gathered(self, pointer: str, element: Element, mask: str | None, step: int) -> str:
        lanes, kind = self.lanes, self._kind(self.lanes, element)
        steps = ", ".join(f"i64 {lane * step}" for lane in range(lanes))
        places = self._new(
            f"getelementptr i{8 * element.n_bytes}, ptr {pointer}, <{lanes} x i64> <{steps}>", ""
        )
        suffix = f"v{lanes}{element.llvm_short}"
        name = self._declare(
            f"llvm.masked.gather.{suffix}.v{lanes}p0",
            f"{kind} @llvm.masked.gather.{suffix}.v{lanes}p0"
            f"(<{lanes} x ptr>, i32, <{lanes} x i1>, {kind})",
        )
        every = mask or "<" + ", ".join(["i1 1"] * lanes) + ">"
        raw = self._new(
            f"call {kind} {name}(<{lanes} x ptr> {places}, i32 {element.n_bytes}, "
            f"<{lanes} x i1> {every}, {kind} zeroinitializer)",
            kind,
        )
        return self._widened(raw, element, lanes)

    def _widened(self, raw: str, element: Element, lanes: int) -> str:
        """Convert what was read to what is computed with."""
        kind = self._kind(lanes)
        if element == self.element:
            return raw
        source = self._types[raw]
        whole = f"<{lanes} x i32>" if lanes > 1 else "i32"
        if element.llvm == "i8":
            return self._new(f"sext {source} {raw} to {kind}", kind)
        bits = self._new(f"zext {source} {raw} to {whole}", whole)
        high = self._new(f"shl {whole} {bits}, {self._all('i32', 16, lanes)}", whole)
        return self._new(f"bitcast {whole} {high} to {kind}", kind)

    @staticmethod
    def _all(kind: str, value: int, lanes: int) -> str:
        listed = ", ".join([f"{kind} {value}"] * lanes)
        return f"<{listed}>" if lanes > 1 else str(value)

    def _narrowed(self, value: str, element: Element, lanes: int) -> str:
        """Convert what was computed to what is stored; bf16 is rounded to nearest even."""
        if element == self.element:
            return value
        kind = self._kind(lanes, element)
        whole = f"<{lanes} x i32>" if lanes > 1 else "i32"
        if element.llvm == "i8":
            return self._new(f"trunc {whole} {value} to {kind}", kind)
        bits = self._new(f"bitcast {self._types[value]} {value} to {whole}", whole)
        shifted = self._new(f"lshr {whole} {bits}, {self._all('i32', 16, lanes)}", whole)
        odd = self._new(f"and {whole} {shifted}, {self._all('i32', 1, lanes)}", whole)
        half = self._new(f"add {whole} {odd}, {self._all('i32', 32767, lanes)}", whole)
        raised = self._new(f"add {whole} {bits}, {half}", whole)
        truth = f"<{lanes} x i1>" if lanes > 1 else "i1"
        is_nan = self._new(f"fcmp uno {self._types[value]} {value}, {value}", truth)
        quiet = self._new(f"or {whole} {bits}, {self._all('i32', 4194304, lanes)}", whole)
        chosen = self._new(f"select {truth} {is_nan}, {whole} {quiet}, {whole} {raised}", whole)
        high = self._new(f"lshr {whole} {chosen}, {self._all('i32', 16, lanes)}", whole)
        return self._new(f"trunc {whole} {high} to {kind}", kind)

    def store(self, pointer: str, value: str, element: Element, mask: str | None = None) -> None:
        lanes, kind = self.lanes, self._kind(self.lanes, element)
        value = self._narrowed(value, element, lanes)
        if mask is not None and mask[0] == "<":
            picks = [one == "i1 1" for one in mask.strip("<>").split(", ")]
            # A line's length is written with a mask.  LLVM 22 writes four bytes in place of a
            # lane of two or one; what AVX2 has for masks takes AMD's cores 20 cycles.
            if lanes * self.element.n_bytes < LINE or picks.count(True) == 1:
                self._store_runs(pointer, value, element, picks)
                return
        if mask is None:
            self._lines.append(f"  store {kind} {value}, ptr {pointer}, align {element.n_bytes}")
            return
        suffix = f"v{lanes}{element.llvm_short}"
        name = self._declare(
            f"llvm.masked.store.{suffix}.p0",
            f"void @llvm.masked.store.{suffix}.p0({kind}, ptr, i32, <{lanes} x i1>)",
        )
        self._lines.append(
            f"  call void {name}({kind} {value}, ptr {pointer}, i32 {element.n_bytes}, "
            f"<{lanes} x i1> {mask})"
        )

    def _store_runs(
        self, pointer: str, value: str, element: Element, picks: Sequence[bool]
    ) -> None:
        """Write known lanes: as few vectors of two, four, ... as they fill, and single ones."""
        kind, at = self._kind(len(picks), element), 0
        while True in picks[at:]:
            at = picks.index(True, at)
            n = self.lanes
            while not all(picks[at : at + n]) or at + n > len(picks):
                n //= 2
            if n > 1:
                listed = ", ".join(f"i32 {lane}" for lane in range(at, at + n))
                part = self._new(
                    f"shufflevector {kind} {value}, {kind} poison, <{n} x i32> <{listed}>", ""
                )
            else:
                part = self._new(f"extractelement {kind} {value}, i64 {at}", "")
            place = self.at(pointer, at, element)
            of = self._kind(n, element)
            self._lines.append(f"  store {of} {part}, ptr {place}, align {element.n_bytes}")
            at += n

    def load_one(self, pointer: str, element: Element, truth: str | None = None) -> str:
        if truth is None:
            kind = element.llvm
            raw = self._new(f"load {kind}, ptr {pointer}, align {element.n_bytes}", kind)
            return self._widened(raw, element, 1)
        zero = self.number(0)
        with self.when(truth, [zero]) as branch:
            branch.carry([self.load_one(pointer, element)])
        return branch.values[0]

    def store_one(self, pointer: str, value: str, element: Element) -> None:
        value = self._narrowed(value, element, 1)
        self._lines.append(
            f"  store {element.llvm} {value}, ptr {pointer}, align {element.n_bytes}"
        )

    def spread(self, value: str) -> str:
        if self.lanes == 1:
            return value
        lanes, kind = self.lanes, self._kind(self.lanes)
        start = self._new(f"insertelement {kind} poison, {self.element.llvm} {value}, i64 0", kind)
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self._new(f"shufflevector {kind} {start}, {kind} poison, {zeros}", kind)

    def fma(self, one: str, other: str, total: str) -> str:
        kind = self._types[one]
        if self.element.is_integer:
            product = self._new(f"mul {kind} {one}, {other}", kind)
            return self._new(f"add {kind} {product}, {total}", kind)
        short = self.element.llvm_short
        suffix = f"v{self.lanes}{short}" if kind[0] == "<" else short
        name = self._declare(
            f"llvm.fma.{suffix}", f"{kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})"
        )
        return self._new(f"call {kind} {name}({kind} {one}, {kind} {other}, {kind} {total})", kind)

    def plus(self, one: str, other: str) -> str:
        kind = self._types[other]
        return self._new(f"{'' if self.element.is_integer else 'f'}add {kind} {one}, {other}", kind)

    def plus_if(self, truth: str, value: str, pointer: str, element: Element) -> str:
        zero = "0" if self.element.is_integer else "0.0"
        found = self.load_one(pointer, element)
        kind = self.element.llvm
        more = self._new(f"select i1 {truth}, {kind} {found}, {kind} {zero}", kind)
        return self.plus(value, more)

    def room(self, n: int) -> str:
        kind = f"[{n} x {self.element.llvm}]"
        return self._new(f"alloca {kind}, align 64", "ptr")

    def fenced(self, value: str) -> str:
        # It takes long to join many shuffles in vain; what has a fraction alone can be fenced.
        kind, lanes = self._types[value], self.lanes
        of, short = self._kind(lanes), self.element.llvm_short
        if self.element.is_integer:
            of, short = f"<{lanes} x float>", "f32"
            value = self._new(f"bitcast {kind} {value} to {of}", of)
        name = f"llvm.arithmetic.fence.v{lanes}{short}"
        declared = self._declare(name, f"{of} @{name}({of})")
        value = self._new(f"call {of} {declared}({of} {value})", of)
        return self._new(f"bitcast {of} {value} to {kind}", kind) if of != kind else value

    def positive(self, value: str) -> str:
        kind = self._types[value]
        truth = f"<{self.lanes} x i1>" if kind[0] == "<" else "i1"
        zero = "zeroinitializer" if kind[0] == "<" else "0" if self.element.is_integer else "0.0"
        compare = "icmp slt" if self.element.is_integer else "fcmp olt"
        is_less = self._new(f"{compare} {kind} {value}, {zero}", truth)
        return self._new(f"select {truth} {is_less}, {kind} {zero}, {kind} {value}", kind)

    def read_again(self) -> None:
        self._lines.append('  fence syncscope("singlethread") acq_rel')

    def fetch(self, pointer: str, *, writes: bool = False) -> None:
        name = self._declare("llvm.prefetch.p0", "void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        how = "i32 1, i32 3" if writes else "i32 0, i32 2"
        self._lines.append(f"  call void {name}(ptr {pointer}, {how}, i32 1)")
