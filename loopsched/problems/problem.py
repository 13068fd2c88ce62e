"""Problems: an iteration space and the tensors that its points touch.

A problem is a perfect loop nest over named dimensions and one multiply-accumulate
a point.  Each axis of a tensor is an affine sum of dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from loopsched.base.arguments import is_count, near, show
from loopsched.base.errors import ProblemError, nearest

# Exact integers stay exact inside compiled code below this; see `Problem`.
MAX_MACS = 2**62


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a tensor: the position that an iteration point touches on it.

    Parameters
    ----------
    terms : tuple of (str, int)
        Dimension name and coefficient (at least 1), each dimension once.
    offset : int, elements
        Added to the sum; negative where padding comes first.
    size : int or None, elements
        What is stored.  Positions outside ``[0, size)`` are padding, not
        memory.  None: everything that the dimensions reach is stored.

    Examples
    --------
    >>> Axis((("P", 2), ("R", 1)), offset=-1, size=8).is_compound
    True
    """

    terms: tuple[tuple[str, int], ...]
    offset: int = 0
    size: int | None = None
    dims: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Names of the dimensions that move along this axis."""
    is_compound: bool = field(init=False, repr=False, compare=False)
    """Whether more than one dimension moves along this axis."""
    is_plain: bool = field(init=False, repr=False, compare=False)
    """Whether one dimension maps one to one to stored positions."""

    def __post_init__(self) -> None:
        is_plain = len(self.terms) == 1 and self.offset == 0 and self.size is None
        object.__setattr__(self, "dims", tuple(name for name, _ in self.terms))
        object.__setattr__(self, "is_compound", len(self.terms) > 1)
        object.__setattr__(self, "is_plain", is_plain)

    def __hash__(self) -> int:
        return hash((self.terms, self.offset, self.size))


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor of a problem.

    Parameters
    ----------
    name : str
    axes : tuple of Axis
        In storage order, slowest first.
    element_bytes : int, bytes
        Stored size of one element: 4 for fp32, 2 for fp16 and bf16, 1 for
        int8 and fp8.
    """

    name: str
    axes: tuple[Axis, ...]
    element_bytes: int = 4
    dims: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Dimensions that index the tensor, in storage order."""
    sliding: frozenset[str] = field(init=False, repr=False, compare=False)
    """Dimensions along which its window slides: they share an axis with others."""

    def __post_init__(self) -> None:
        dims = dict.fromkeys(name for axis in self.axes for name in axis.dims)
        shared = frozenset(d for axis in self.axes if axis.is_compound for d in axis.dims)
        object.__setattr__(self, "dims", tuple(dims))
        object.__setattr__(self, "sliding", shared)

    def __hash__(self) -> int:  # the rest differs only where somebody counts other bytes
        return hash((self.name, self.dims))

    def is_indexed_by(self, dim: str) -> bool:
        """Whether ``dim`` is relevant, that is, moves over the tensor."""
        return dim in self.dims


@dataclass(frozen=True, slots=True)
class Problem:
    """An iteration space with tensors: what a schedule computes.

    Parameters
    ----------
    name : str
    sizes : tuple of (str, int)
        Dimensions in their customary order, with their sizes (at least 1).
    tensors : tuple of Tensor
        Inputs first, in the order in which one point reads them.
    output : str
        Name of the tensor that is accumulated into.
    kind : str
        ``conv2d``, ``gemm``, ``einsum`` or ``affine``.
    attributes : tuple of (str, value)
        What the kind needs beyond sizes (stride, transposes); kept for
        reports, with no effect on the model.

    Raises
    ------
    ProblemError
        If sizes, names or projections are not valid.

    See Also
    --------
    gemm, conv2d, affine, einsum

    Examples
    --------
    >>> from loopsched import gemm
    >>> gemm(m=4, n=3, k=2).macs
    24
    """

    name: str
    sizes: tuple[tuple[str, int], ...]
    tensors: tuple[Tensor, ...]
    output: str
    kind: str = "affine"
    attributes: tuple[tuple[str, object], ...] = field(default=())
    dims: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Dimension names in the problem's order."""
    size: Mapping[str, int] = field(init=False, repr=False, compare=False)
    """Size of each dimension by name."""
    macs: int = field(init=False, repr=False, compare=False)
    """Multiply-accumulates: points of the iteration space."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", tuple(name for name, _ in self.sizes))
        ProblemError.refuse(f"problem '{self.name}'", _faults(self))
        object.__setattr__(self, "size", MappingProxyType(dict(self.sizes)))
        object.__setattr__(self, "macs", math.prod(self.size.values()))

    def __reduce__(self) -> tuple[type[Problem], tuple[object, ...]]:  # views cannot be pickled
        given = self.name, self.sizes, self.tensors, self.output, self.kind, self.attributes
        return Problem, given

    def __hash__(self) -> int:  # quick; problems of one name and size are few
        return hash((self.name, self.sizes))

    @property
    def flops(self) -> int:
        """Floating-point operations: two for each multiply-accumulate."""
        return 2 * self.macs

    @property
    def output_tensor(self) -> Tensor:
        """The tensor that is written."""
        return self.tensor(self.output)

    @property
    def reduction_dims(self) -> tuple[str, ...]:
        """Dimensions that do not index the output: sums run over them."""
        written = self.output_tensor
        return tuple(dim for dim in self.dims if not written.is_indexed_by(dim))

    @property
    def parallel_dims(self) -> tuple[str, ...]:
        """Dimensions whose iterations write disjoint parts of the output.

        These may be spatial without a reduction between instances: they index
        the output on an axis of their own.
        """
        alone = {axis.dims[0] for axis in self.output_tensor.axes if len(axis.dims) == 1}
        shared = {dim for axis in self.output_tensor.axes if axis.is_compound for dim in axis.dims}
        return tuple(dim for dim in self.dims if dim in alone and dim not in shared)

    def tensor(self, name: str) -> Tensor:
        """Find a tensor by name."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        names = [tensor.name for tensor in self.tensors]
        raise ProblemError(f"no tensor '{name}'; {nearest(name, names)}")

    def with_element_bytes(self, element_bytes: int | Mapping[str, int]) -> Problem:
        """Return the problem with other element sizes.

        Parameters
        ----------
        element_bytes : int or mapping of tensor name to int, bytes
            One size for all tensors, or a size for some.

        Examples
        --------
        >>> from loopsched import gemm
        >>> half = gemm(m=4, n=4, k=4).with_element_bytes({"A": 2, "B": 2})
        >>> [tensor.element_bytes for tensor in half.tensors]
        [2, 2, 4]
        """
        if isinstance(element_bytes, Mapping):
            chosen = dict(element_bytes)
            names = [tensor.name for tensor in self.tensors]
            for name in chosen:
                if name not in names:
                    raise ProblemError(f"no tensor '{name}'; {near(name, names)}")
        else:
            chosen = {tensor.name: element_bytes for tensor in self.tensors}
        tensors = tuple(
            replace(tensor, element_bytes=chosen.get(tensor.name, tensor.element_bytes))
            for tensor in self.tensors
        )
        return replace(self, tensors=tensors)

    def renamed(self, name: str) -> Problem:
        """Return the same problem under another name."""
        return replace(self, name=name)


def _faults(problem: Problem) -> Iterable[str]:
    dims = [name for name, _ in problem.sizes]
    names = [tensor.name for tensor in problem.tensors]
    if not dims:
        yield "no dimensions; at least one is needed"
    for what, words in (("dimension", dims), ("tensor", names)):
        for word in dict.fromkeys(words):
            if not (isinstance(word, str) and word.isidentifier()):
                yield f"{what} name {show(word)} is not a plain word (letters, digits, _)"
            if words.count(word) > 1:
                yield f"{what} '{word}' is given {words.count(word)} times; names are unique"
    bad_sizes = [(name, size) for name, size in problem.sizes if not is_count(size)]
    for name, size in bad_sizes:
        yield f"size of dimension '{name}' is {show(size)}; a whole number >= 1 is needed"
    if not bad_sizes and math.prod(size for _, size in problem.sizes) >= MAX_MACS:
        yield "more than 2**62 multiply-accumulates; sizes must be smaller"
    if problem.output not in names:
        yield f"output '{problem.output}' is not a tensor; {near(problem.output, names)}"
    for tensor in problem.tensors:
        if not is_count(tensor.element_bytes):
            yield (
                f"tensor '{tensor.name}': element_bytes is {show(tensor.element_bytes)}; "
                "a whole number >= 1 is needed"
            )
        if len([name for axis in tensor.axes for name in axis.dims]) != len(tensor.dims):
            yield f"tensor '{tensor.name}': a dimension occurs twice; each may index one axis, once"
        for axis in tensor.axes:
            for name, coefficient in axis.terms:
                if name not in dims:
                    yield f"tensor '{tensor.name}': unknown dim '{name}'; {nearest(name, dims)}"
                if not is_count(coefficient):
                    yield (
                        f"tensor '{tensor.name}': coefficient of '{name}' is {show(coefficient)}; "
                        "a whole number >= 1 is needed"
                    )
            if axis.size is not None and not is_count(axis.size):
                yield f"tensor '{tensor.name}': axis size is {show(axis.size)}; >= 1 is needed"
