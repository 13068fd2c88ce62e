"""Machine code of kernels: kept in files, loaded with LLVM, called with addresses and numbers.

To import numba, which compiled it, takes longer than most searches; to load it takes
some milliseconds.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from loopsched.base.arrays import Array
from loopsched.base.files import cache_folder

Kinds = tuple[Any, ...]

# Flags of an array that its type depends on: in C's order, in Fortran's, aligned, writeable.
_FLAGS = 0x1 | 0x2 | 0x100 | 0x400
_NUMBERS = {int: ctypes.c_int64, float: ctypes.c_double, bool: ctypes.c_bool}
# What numba hands over of an array, before its shape and its strides, and in a result.
_ARRAY = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
_ARRAY_LETTERS = "PPqqP"
# What numba's code returns if all went well: something, or nothing.
_FINE = (0, -2)


class Code(NamedTuple):
    """Machine code of a function: its name, what it returns, what it calls, an object file.

    ``result`` lists numbers as `struct` has them, and arrays by their dtype and dimensions.
    """

    name: str
    result: list[str]
    needs: list[str]
    binary: bytes


def spread(values: Sequence[Any], kinds: list[Any], slots: list[Any]) -> None:
    """List the kinds of arguments, and what machine code takes for them.

    Examples
    --------
    >>> kinds, slots = [], []
    >>> spread((5, 2.0, True), kinds, slots)
    >>> kinds, slots
    ([<class 'int'>, <class 'float'>, <class 'bool'>], [5, 2.0, True])
    """
    for value in values:
        kind = type(value)
        if kind is np.ndarray:
            kinds.append((value.dtype.str, value.ndim, value.flags.num & _FLAGS))
            place = address(value)
            slots += (None, None, value.size, value.itemsize, place, *value.shape, *value.strides)
        elif kind is int or kind is np.int64:
            if not -(2**63) <= value < 2**63:
                raise OverflowError(f"{value} is too large for a kernel")
            kinds.append(int)
            slots.append(int(value))
        elif kind in (bool, np.bool_, float, np.float64):
            kinds.append(bool if kind in (bool, np.bool_) else float)
            slots.append(kinds[-1](value))
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            kinds.append(kind)
            spread(value, kinds, slots)
        else:
            raise TypeError(f"a kernel takes no {kind.__name__}")


def slot_types(kinds: Kinds) -> list[Any]:
    """List the types of what machine code takes, as `ctypes` has them."""
    types: list[Any] = []
    for kind in kinds:
        if isinstance(kind, tuple):
            types += (*_ARRAY, *[ctypes.c_int64] * (2 * kind[1]))
        elif kind in _NUMBERS:
            types.append(_NUMBERS[kind])
    return types


def _described(kind: Any) -> str:
    """Name a kind the same way in every process; arrays by the first order that is theirs."""
    if not isinstance(kind, tuple):
        return f"{kind.__module__}.{kind.__name__}{getattr(kind, '_fields', '')}"
    dtype, n_dims, flags = kind
    return f"{dtype}{n_dims}{'ACFC'[flags & 3]}{flags >> 8}"


@lru_cache(maxsize=1)
def _llvm() -> Any:
    import llvmlite.binding

    llvmlite.binding.initialize_native_target()
    llvmlite.binding.initialize_native_asmprinter()
    return llvmlite.binding


_HELD: list[Any] = []


def _hold_llvm() -> None:
    """Take the lock that is held while LLVM works: a child forked then would wait for ever."""
    lock = getattr(_llvm().ffi.lib, "_lock", None) if _llvm.cache_info().currsize else None
    _HELD.append(lock or nullcontext())
    _HELD[-1].__enter__()


def _let_llvm_go() -> None:
    _HELD.pop().__exit__(None, None, None)


# Those registered first are called last: whoever compiles takes the locks in that order.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_hold_llvm, after_in_parent=_let_llvm_go, after_in_child=_let_llvm_go
    )


def _target(*, is_wide: bool = False) -> Any:
    """Describe this CPU to LLVM; ``is_wide``: vectors as wide as they are written."""
    llvm = _llvm()
    cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    if is_wide:
        features += ",-prefer-256-bit"
    of = llvm.Target.from_default_triple()
    return of.create_target_machine(cpu, features, 3, codemodel="jitdefault", jit=True)


def widest_vector() -> int | None:
    """Count the bytes of this CPU's widest vectors; None if LLVM does not tell.

    LLVM 22 splits wider masked loads wrongly on x86-64: it gives up, or reads what is masked.

    Examples
    --------
    >>> widest_vector() in (16, 32, 64, None)
    True
    """
    has = _llvm().get_host_cpu_features()
    widths = (("avx512f", 64), ("avx", 32), ("sse2", 16))
    return next((width for name, width in widths if has.get(name)), None)


def object_code(text: str, *, waits: bool = True) -> bytes:
    """Turn a module of LLVM's text, as it stands, into an object file for this CPU.

    ``waits``: for all else that LLVM is asked in this process, as llvmlite has it. It need not:
    modules of different contexts share nothing; but then no process may be forked meanwhile.
    """
    llvm = _llvm()
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()
    library = llvm.ffi.lib
    emit = library.LLVMPY_TargetMachineEmitToMemory
    with llvm.ffi.OutputString() as fault:
        made = (emit if waits else getattr(emit, "_cfn", emit))(
            _target(is_wide=True), module, 1, fault
        )
        if not made:
            raise RuntimeError(str(fault))
    code = ctypes.string_at(library.LLVMPY_GetBufferStart(made), library.LLVMPY_GetBufferSize(made))
    library.LLVMPY_DisposeMemoryBuffer(made)
    return code


def linked(
    binaries: Sequence[bytes], names: Sequence[str], types: Sequence[Any]
) -> list[Callable[..., Any]]:
    r"""Load object files; return functions of them that let other threads run.

    They stay loaded as long as one of these is there.

    Parameters
    ----------
    binaries : sequence of bytes
    names : sequence of str
        Functions that take, and return, the same types.
    types : sequence
        Of `ctypes`: of the result, then of what they take.

    Examples
    --------
    >>> text = "define i64 @twice(i64 %n) { %m = add i64 %n, %n\n ret i64 %m }"
    >>> (twice,) = linked([object_code(text)], ["twice"], [ctypes.c_int64, ctypes.c_int64])
    >>> twice(21)
    42
    """
    engine = _llvm().create_mcjit_compiler(_llvm().parse_assembly(""), _target())
    for binary in binaries:
        engine.add_object_file(_llvm().ObjectFileRef.from_data(binary))
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(*types)
    functions: list[Any] = [kind(engine.get_function_address(name)) for name in names]
    for one in functions:
        one.engine = engine
    return functions


def emitted(text: str, name: str, result: list[str]) -> tuple[Code, list[str]]:
    """Turn LLVM's text into machine code of one of its functions; list the types that it takes."""
    module = _llvm().parse_assembly(text)
    taken = [str(one.type) for one in module.get_function(name).arguments]
    used = [*module.functions, *module.global_variables]
    needs = [one.name for one in used if one.is_declaration and one.name[:5] != "llvm."]
    return Code(name, result, needs, _target().emit_object(module)), taken


def called(text: str, name: str, *types: Any) -> Callable[..., Any]:
    r"""Compile a function of LLVM's text, as it stands, into what lets other threads run.

    Parameters
    ----------
    text : str
        A module.
    name : str
    *types
        Of `ctypes`: of the result, then of what the function takes.

    Examples
    --------
    >>> text = "define i64 @twice(i64 %n) { %m = add i64 %n, %n\n ret i64 %m }"
    >>> called(text, "twice", ctypes.c_int64, ctypes.c_int64)(21)
    42
    """
    return linked([object_code(text)], [name], types)[0]


def _numba_file() -> Path:
    """Find numba without importing it."""
    found = importlib.util.find_spec("numba")
    return Path(found.origin if found and found.origin else os.devnull)


def _add_runtime() -> None:
    """Add what compiled code calls for its arrays: a part of numba that loads without the rest."""
    runtime: Any = sys.modules.get("numba.core.runtime._nrt_python")
    if runtime is None:
        file = f"_nrt_python{importlib.machinery.EXTENSION_SUFFIXES[0]}"
        path = str(_numba_file().parent / "core" / "runtime" / file)
        loader = importlib.machinery.ExtensionFileLoader("_nrt_python", path)
        spec = importlib.machinery.ModuleSpec("_nrt_python", loader, origin=path)
        runtime = importlib.util.module_from_spec(spec)
        loader.exec_module(runtime)
    for known, address in runtime.c_helpers.items():
        _llvm().add_symbol(known if known.startswith("_") else f"NRT_{known}", address)


def _add_numba() -> None:
    """Add all that compiled code may call."""
    from numba.core.registry import cpu_target
    from numba.core.runtime.nrt import rtsys

    with interrupts_wait():
        rtsys.initialize(cpu_target.target_context)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Answer interrupts that come while LLVM calls Python afterwards: what is raised there is lost.

    Others end what is done at once.
    """
    before, late = signal.getsignal(signal.SIGINT), list[int]()

    def answer(number: int, frame: FrameType | None) -> None:
        at = frame
        while at and not at.f_code.co_name.startswith("_raw_object_cache"):  # llvmlite's
            at = at.f_back
        if at:
            late.append(number)
        elif callable(before):
            signal.signal(signal.SIGINT, before)
            before(number, frame)

    try:
        with suppress(ValueError):  # another thread than the main one, which answers them
            if callable(before):
                signal.signal(signal.SIGINT, answer)
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is answer:
            signal.signal(signal.SIGINT, before)
        now = signal.getsignal(signal.SIGINT)
        if late and callable(now):
            now(late[0], None)


_ENGINES: list[Any] = []  # code lives as long as what loaded it


def loaded(code: Code, kinds: Kinds) -> Callable[[list[Any]], Any]:
    """Load machine code; return what calls it.

    Raises
    ------
    LookupError
        If something that it needs is not there.
    """
    llvm = _llvm()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target())  # knows Python, too
    for add in (_add_runtime, _add_numba):
        if not all(map(llvm.address_of_symbol, code.needs)):
            with suppress(Exception):  # another numba: then all of it
                add()
    if not all(map(llvm.address_of_symbol, code.needs)):  # LLVM would end the process
        raise LookupError(f"{code.name} needs {code.needs}")
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.binary))
    engine.finalize_object()
    _ENGINES.append(engine)
    types = (ctypes.c_void_p, ctypes.c_void_p, *slot_types(kinds))
    function = ctypes.CFUNCTYPE(ctypes.c_int32, *types)(engine.get_function_address(code.name))
    letters = [_ARRAY_LETTERS + int(one[3:]) * "qq" if one[1:] else one for one in code.result]
    layout = struct.Struct("".join(letters))

    def call(slots: list[Any]) -> Any:
        out, fault = ctypes.create_string_buffer(layout.size + 8), ctypes.c_void_p()
        if function(out, ctypes.byref(fault), *slots) not in _FINE:
            raise RuntimeError(f"the kernel {code.name} failed")
        parts = iter(layout.unpack_from(out))
        found = tuple(_array(one, parts) if one[1:] else next(parts) for one in code.result)
        return found if len(found) > 1 else found[0] if found else None

    return call


def _array(kind: str, parts: Iterator[Any]) -> Any:
    """Copy an array that a kernel returned, and give its room back."""
    owner, _, size, item_bytes, place = islice(parts, 5)
    shape, _ = tuple(islice(parts, int(kind[3:]))), tuple(islice(parts, int(kind[3:])))
    content = bytearray(ctypes.string_at(place, size * item_bytes))
    if owner:
        release = _llvm().address_of_symbol("NRT_MemInfo_release")
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(release)(owner)
    return np.frombuffer(content, kind[:3]).reshape(shape)


_HEAD = object.__basicsize__
"""Bytes of any object of CPython, before its own: those of an array begin with its address."""


_at = ctypes.c_void_p.from_address


def _seen(array: Array) -> int:
    return _at(id(array) + _HEAD).value or 0


def _asked(array: Array) -> int:
    return int(array.ctypes.data)


def _is_seen() -> bool:
    one = np.zeros(2)[1:]
    return sys.implementation.name == "cpython" and _seen(one) == _asked(one)


address: Callable[[Array], int] = _seen if _is_seen() else _asked
"""Where the first element of an array lies; to be asked by NumPy's means takes a microsecond."""


@lru_cache(maxsize=1)
def host_name() -> str:
    """Name what machine code depends on, besides its source."""
    llvm, changed = _llvm(), _numba_file().stat().st_mtime_ns
    known = llvm.llvm_version_info, llvm.get_host_cpu_name(), changed
    features = llvm.get_host_cpu_features().flatten()
    return f"{sys.implementation.cache_tag}-{crc32(f'{known} {features}'.encode()):08x}"


class Shelf:
    """The files that keep the machine code of a function; ``digest`` is of all that is compiled."""

    def __init__(self, function: Callable[..., Any], digest: int) -> None:
        source = Path(function.__code__.co_filename)
        own = f"{source.parent.name}-{crc32(str(source.parent).encode()):08x}"
        self._folders = [source.parent / "__pycache__"]  # the first that takes a file has it
        cache = cache_folder()
        if cache is not None:
            self._folders.append(cache / own)
        if os.environ.get("NUMBA_CACHE_DIR"):
            self._folders = [Path(os.environ["NUMBA_CACHE_DIR"], own)]
        self._all = f"{source.stem}.{function.__name__}.{host_name()}"
        self._own = f"{self._all}.{digest:08x}"

    def _of(self, kinds: Kinds) -> str:
        return f"{self._own}.{crc32(' '.join(map(_described, kinds)).encode()):08x}.code"

    def is_empty(self) -> bool:
        """Whether nothing of the function, as it is, is kept."""
        return not any(any(folder.glob(f"{self._own}.*.code")) for folder in self._folders)

    def read(self, kinds: Kinds) -> Code | None:
        """Find what was kept for such arguments, unless it is broken."""
        for folder in self._folders:
            with suppress(OSError):
                total, _, rest = (folder / self._of(kinds)).read_bytes().partition(b"\n")
                if total == b"%08x" % crc32(rest):
                    head, _, binary = rest.partition(b"\n")
                    name, result, needs = json.loads(head)
                    return Code(name, result, needs, binary)
        return None

    def write(self, kinds: Kinds, code: Code) -> None:
        """Keep code, and no more what was compiled of the function as it was.

        Raises
        ------
        OSError
            If no folder takes it.
        """
        rest = json.dumps(code[:3]).encode() + b"\n" + code.binary
        faults: list[OSError] = []
        for folder in self._folders:
            part = folder / f"{self._own}.{os.getpid()}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                part.write_bytes(b"%08x\n" % crc32(rest) + rest)
                part.replace(folder / self._of(kinds))
                for old in folder.glob(f"{self._all}.*.code"):
                    if not old.name.startswith(self._own):
                        old.unlink(missing_ok=True)
                return
            except OSError as error:
                faults.append(error)
                with suppress(OSError):
                    part.unlink()
        raise faults[0]
