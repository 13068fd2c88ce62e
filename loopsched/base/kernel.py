"""Kernels: functions that numba compiles for the kinds of arguments that they are called with."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, nullcontext
from functools import WRAPPER_ASSIGNMENTS, cached_property, lru_cache
from threading import RLock
from types import CodeType, ModuleType
from typing import Any, ClassVar
from zlib import crc32

from loopsched.base.machine_code import (
    Code,
    Kinds,
    Shelf,
    emitted,
    interrupts_wait,
    loaded,
    slot_types,
    spread,
)

_LOCK = RLock()
if hasattr(os, "register_at_fork"):  # a child forked while it is held would wait for ever
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )
# How LLVM names what `ctypes` has; numba hands truth values over as bytes.
_TYPES = {"c_void_p": "ptr", "c_long": "i64", "c_longlong": "i64", "c_double": "double"}
_TYPES["c_bool"] = "i8"
_MEMBERS = ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides")


class Step:
    """A function that numba compiles when a kernel that calls it is compiled."""

    def __init__(self, function: Callable[..., Any], **options: bool) -> None:
        self.__dict__ |= {name: getattr(function, name) for name in WRAPPER_ASSIGNMENTS}
        self.py_func, self._options = function, options

    @cached_property
    def dispatcher(self) -> Any:
        """What numba compiles; Python does not call it."""
        import numba

        njit: Any = numba.njit
        alone = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return njit(nogil=True, **alone, **self._options)(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_


class Part(Step):
    """A function that numba compiles once, for the types that it is annotated with."""

    made: ClassVar[list[Part]] = []

    @cached_property
    def dispatcher(self) -> Any:
        """What numba compiles; Python does not call it."""
        import numba

        types: Any = numba.types
        known = {"int": types.int64, "bool": types.boolean, "Ints": types.int64[:, ::1]}
        taken = [known[kind] for kind in [*self.py_func.__annotations__.values()][:-1]]
        njit: Any = numba.njit
        alone = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": self.has_arrays}
        self.made.append(self)
        return njit(tuple(taken), nogil=True, **alone)(self.py_func)

    @cached_property
    def has_arrays(self) -> bool:
        """Whether it makes arrays, or calls what may; else their uses need not be counted."""
        called = [self.py_func.__globals__.get(name) for name in self.py_func.__code__.co_names]
        return any(
            one.has_arrays if isinstance(one, Part) else isinstance(one, Kernel | ModuleType)
            for one in called
        )


class Kernel(Step):
    """A function that is loaded, or compiled, when it is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.n_compiled = 0
        self._known: dict[Kinds, Callable[[list[Any]], Any]] = {}
        self._plain: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code for such arguments."""
        kinds: list[Any] = []
        slots: list[Any] = []
        spread(arguments, kinds, slots)
        code = self._known.get(tuple(kinds)) or self._code(tuple(kinds), arguments)
        return code(slots) if code is not None else self._plain(*arguments)

    @cached_property
    def _shelf(self) -> Shelf:
        return Shelf(self.py_func, _digest(self.py_func))

    def is_loaded(self) -> bool:
        """Whether machine code for some arguments is known."""
        return bool(self._known or self._plain)

    def is_kept(self) -> bool:
        """Whether machine code for some arguments is known, or on disk."""
        return self.is_loaded() or not self._shelf.is_empty()

    def _code(self, kinds: Kinds, arguments: tuple[Any, ...]) -> Callable[[list[Any]], Any] | None:
        """Find machine code, or make it; None where only numba itself can run it."""
        with _LOCK:
            kept = None if self._plain else self._shelf.read(kinds)
            if kept is not None:
                try:
                    self._known[kinds] = loaded(kept, kinds)
                except Exception:  # something that it needs is no longer there
                    kept = None
            if kept is None and self._plain is None:
                self._make(kinds, arguments)
            return self._known.get(kinds)

    def _make(self, kinds: Kinds, arguments: tuple[Any, ...]) -> None:
        """Compile a kernel, and keep it."""
        import numba

        self.n_compiled += 1
        has_parts = any(isinstance(one, Part) for one in self.py_func.__globals__.values())
        try:
            with interrupts_wait(), _at_once() if has_parts else nullcontext():
                code = _compiled(self.dispatcher, kinds, arguments)
            self._known[kinds] = loaded(code, kinds)
        except numba.core.errors.NumbaError:
            raise
        except Exception as error:  # another numba than the ones that are known
            _say(f"kernels cannot be kept with numba {numba.__version__}: {error!r}")
            njit: Any = numba.njit
            while Part.made:
                del Part.made.pop().dispatcher
            self._plain = njit(nogil=True)(self.py_func)
            return
        try:
            self._shelf.write(kinds, code)
        except OSError as error:
            _say(f"kernels cannot be kept: {error.strerror}; set NUMBA_CACHE_DIR")


@lru_cache(maxsize=1)
def _say(message: str) -> None:
    """Say something, once."""
    import logging

    logging.getLogger("loopsched").warning("%s; they are compiled again each time", message)


@contextmanager
def _at_once() -> Iterator[None]:
    """Have numba leave functions as they are until the kernel that they make up is asked for."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    with global_compiler_lock:
        codegen: Any = cpu_target.target_context.codegen()
        codegen._library_class, codegen.set_env = _library(), lambda *_: None
        try:
            yield
        finally:
            del codegen._library_class, codegen.set_env


@lru_cache(maxsize=1)
def _library() -> Any:
    """Make a library of numba's that is optimised once, with all that it calls, and not loaded."""
    from numba.core.codegen import JITCodeLibrary

    base: Any = JITCodeLibrary

    class Library(base):  # type: ignore[misc]
        _final_module: Any
        _shared_module: Any

        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout

        def finalize(self) -> None:
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0

        def _get_module_for_linking(self) -> Any:
            if self._shared_module is None:
                self._shared_module = self._whole("linkonce_odr")
            return self._shared_module

        def _whole(self, linkage: str, kept: Container[str] = ()) -> Any:
            """Link it with all that it calls, once each; all but what is kept gets a linkage."""
            whole, seen, todo = self._final_module.clone(), {self}, [*self._linking_libraries]
            others: dict[Any, None] = {}
            while todo:
                one = todo.pop()
                if not isinstance(one, Library):
                    others[one] = None
                elif one not in seen:
                    seen.add(one)
                    todo += one._linking_libraries
                    whole.link_in(one._final_module, preserve=True)
            for one in others:  # last: of these, LLVM takes only what is called by then
                whole.link_in(one._get_module_for_linking(), preserve=True)
            for function in whole.functions:
                if not function.is_declaration and function.name not in kept:
                    function.linkage = linkage
            return whole

        def get_llvm_str(self) -> str:
            own = {one.name for one in self._final_module.functions if not one.is_declaration}
            if self._linking_libraries:
                self._final_module = self._whole("internal", own)
                self._linking_libraries.clear()
                self._optimize_final_module()
            return str(self._final_module)

    return Library


def _compiled(dispatcher: Any, kinds: Kinds, arguments: tuple[Any, ...]) -> Code:
    """Compile a kernel for such arguments.

    Raises
    ------
    NotImplementedError
        If its code takes other things than are handed to it.
    """
    import numba
    from numba.core import datamodel

    models: Any = datamodel
    types: Any = numba.types
    signature = tuple(map(numba.typeof, arguments))
    dispatcher.compile(signature)
    made, text = dispatcher.overloads[signature], dispatcher.inspect_llvm(signature)
    result = made.signature.return_type
    parts = result if isinstance(result, types.BaseTuple) else [result]
    letters = [_letter(part) for part in parts if part != types.none]
    code, taken = emitted(text, made.fndesc.llvm_func_name, letters)
    expected = ["ptr", "ptr", *(_TYPES[one.__name__] for one in slot_types(kinds))]
    is_same = expected == ["ptr" if one[-1] == "*" else one for one in taken]
    if not is_same or models.default_manager[types.int64[::1]]._fields != _MEMBERS:
        raise NotImplementedError("arguments are handed over in an unknown way")
    return code


def _letter(result: Any) -> str:
    """Write a number or an array of a result as `Code` does."""
    from numba import types
    from numba.np.numpy_support import as_dtype

    if isinstance(result, types.Array) and result.layout == "C":
        return f"{as_dtype(result.dtype).str}{result.ndim}"
    return {types.int64: "q", types.float64: "d", types.boolean: "?"}[result]


def _digest(function: Callable[..., Any]) -> int:
    """Sum up a kernel, the kernels that it calls, and their constants: all that is compiled."""
    digest, todo, seen = 0, [function], {function}
    while todo:
        one = todo.pop()
        code, around = one.__code__, one.__globals__
        spaces = [
            around,
            *(vars(x) for x in map(around.get, code.co_names) if isinstance(x, ModuleType)),
        ]
        known = [space[name] for name in code.co_names for space in spaces if name in space]
        called = [x.py_func for x in known if isinstance(x, Step)]
        constants = [x for x in known if isinstance(x, int | float | str | tuple)]
        parts = code.co_code, _constants(code), code.co_names, code.co_varnames, constants
        fields = [x._fields for x in known if hasattr(x, "_fields")]
        kinds = [(type(x).__name__, x._options) for x in known if isinstance(x, Step)]
        digest = crc32(repr((parts, fields, kinds)).encode(), digest)
        todo += [x for x in dict.fromkeys(called) if x not in seen]
        seen |= {*called}
    return digest


def _constants(code: CodeType) -> list[Any]:
    """List the constants of a function, and what functions within it do."""
    return [
        (x.co_code, x.co_names, _constants(x)) if isinstance(x, CodeType) else x
        for x in code.co_consts
    ]
