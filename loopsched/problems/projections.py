"""Problems written as text: affine projections and einsum expressions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from loopsched.base.arguments import MAX_COUNT, MAX_SPAN, Checker, is_text, near, show
from loopsched.base.errors import ProblemError
from loopsched.problems.problem import Axis, Problem, Tensor

ElementBytes = int | str | Mapping[str, int | str]

_MAX_TEXT = 10_000
_TERM = re.compile(r"(?:(\d+)\s*\*\s*)?([^\W\d]\w*)(?:\s*\*\s*(\d+))?|(\d+)")
_SIGN = re.compile(r"\s*([+-])\s*")
_BOUND = re.compile(r"\s*<\s*(\d+)")
_GAP = re.compile(r"\s*,\s*|\s+")


def plain(*dims: str) -> tuple[Axis, ...]:
    """Build axes along which one dimension each moves in unit steps.

    Examples
    --------
    >>> plain("M", "K")[1].terms
    (('K', 1),)
    """
    return tuple(Axis(((dim, 1),)) for dim in dims)


def span(axis: Axis, sizes: Mapping[str, int]) -> int:
    """Count positions from the first to the last that an axis reaches.

    Examples
    --------
    >>> span(Axis((("P", 2), ("R", 1)), offset=-1), {"P": 4, "R": 3})
    9
    """
    return 1 + sum(c * (sizes.get(dim, 1) - 1) for dim, c in axis.terms)


def check_spans(check: Checker, tensors: Iterable[Tensor], sizes: Mapping[str, int]) -> None:
    """Refuse axes that are too long to count position by position."""
    for tensor in tensors:
        for axis in tensor.axes:
            is_counted = axis.is_compound or axis.size is not None
            if is_counted and span(axis, sizes) > MAX_SPAN:
                check.fault(
                    f"tensor '{tensor.name}': axis {axis_text(axis)} reaches "
                    f"{show(span(axis, sizes))} positions; at most {MAX_SPAN} "
                    "where dimensions share an axis or not all is stored"
                )


def axis_text(axis: Axis) -> str:
    """Write an axis as `parse_projection` reads it.

    Examples
    --------
    >>> axis_text(Axis((("P", 2), ("R", 1)), offset=-1, size=8))
    '2*P+R-1<8'
    """
    text = "+".join(dim if c == 1 else f"{c}*{dim}" for dim, c in axis.terms)
    text += f"{axis.offset:+d}" if axis.offset else ""
    return text + ("" if axis.size is None else f"<{axis.size}")


def projection_text(tensor: Tensor) -> str:
    """Write a tensor's projection, axes separated by blanks.

    Examples
    --------
    >>> from loopsched.problems.builders import conv2d
    >>> projection_text(conv2d(c=3, k=8, h=9, w=9, r=3, s=3, padding=1).tensor("input"))
    'N C P+R-1<9 Q+S-1<9'
    """
    return " ".join(axis_text(axis) for axis in tensor.axes)


def parse_projection(text: str) -> tuple[Axis, ...]:
    """Read a tensor's projection from text.

    Parameters
    ----------
    text : str
        Axes, slowest first, separated by blanks or commas.  An axis is a sum
        of dimensions with whole coefficients and offsets; ``<size`` says that
        only positions 0 to size - 1 are stored, the rest being padding.

    Raises
    ------
    ProblemError
        If the text does not follow that form.

    Examples
    --------
    >>> [axis.terms for axis in parse_projection("N 2*P+R-1<224")]
    [(('N', 1),), (('P', 2), ('R', 1))]
    """
    if len(text) > _MAX_TEXT:
        raise ProblemError(f"projection of {len(text)} characters; at most {_MAX_TEXT}")
    axes = []
    at, end = len(text) - len(text.lstrip()), len(text.rstrip())
    while at < end:
        axis, at = _parse_axis(text, at)
        axes.append(axis)
        gap = _GAP.match(text, at, end)
        if at < end and (gap is None or gap.end() == end):
            raise ProblemError(_unexpected(text, at, "',' or a blank between axes"))
        at = gap.end() if gap else at
    return tuple(axes)


def _unexpected(text: str, at: int, wanted: str) -> str:
    found = show(text[at : at + 12]) if at < len(text.rstrip()) else "the end"
    return f"projection {show(text)}: found {found} at character {at}, expected {wanted}"


def _parse_axis(text: str, at: int) -> tuple[Axis, int]:
    terms: list[tuple[str, int]] = []
    offset, sign, start = 0, "+", at
    while True:
        term = _TERM.match(text, at)
        if term is None:
            raise ProblemError(_unexpected(text, at, "a term such as P, 2*P or 3"))
        factor, dim, other, number = term.groups()
        if dim is None:
            offset += _whole(text, number) if sign == "+" else -_whole(text, number)
        elif sign == "-":
            raise ProblemError(
                f"projection {show(text)}: '-' before dimension '{dim}'; coefficients are >= 1"
            )
        elif factor is not None and other is not None:
            raise ProblemError(f"projection {show(text)}: '{dim}' has two coefficients, not one")
        else:
            terms.append((dim, _whole(text, factor or other or "1")))
        at = term.end()
        joint = _SIGN.match(text, at)
        if joint is None:
            break
        sign, at = joint.group(1), joint.end()
    if not terms:
        found = show(text[start:at])
        raise ProblemError(f"projection {show(text)}: axis {found} names no dimension")
    bound = _BOUND.match(text, at)
    if bound is None:
        return Axis(tuple(terms), offset), at
    return Axis(tuple(terms), offset, _whole(text, bound.group(1))), bound.end()


def _whole(text: str, digits: str) -> int:
    if not digits.isascii() or len(digits) > 18 or int(digits) >= MAX_COUNT:
        raise ProblemError(
            f"projection {show(text)}: number {show(digits)}; less than 2**60 is needed"
        )
    return int(digits)


def affine(
    sizes: Mapping[str, int],
    tensors: Mapping[str, str],
    *,
    output: str | None = None,
    element_bytes: ElementBytes = 4,
    name: str | None = None,
) -> Problem:
    """Build any problem whose tensors are indexed by sums of dimensions.

    Parameters
    ----------
    sizes : mapping of dimension name to int
        The iteration space.
    tensors : mapping of tensor name to projection
        In the order in which one point reads them; the form of a projection
        is that of `loopsched.problems.projections.parse_projection`.
    output : str, optional
        The tensor that is accumulated into; by default the last.
    element_bytes : int, data type or mapping of tensor name to either
        Stored size of an element: 4, ``"fp16"``, ``{"A": 2, "C": "fp32"}``.
    name : str, optional
        By default the sizes.

    Raises
    ------
    ProblemError
        With every fault found, such as dimensions that index no tensor, or one
        tensor twice.

    See Also
    --------
    einsum, gemm, conv2d

    Examples
    --------
    A convolution along one axis, 100 stored samples, one of padding a side:

    >>> problem = affine(
    ...     {"K": 4, "C": 2, "P": 100, "R": 3},
    ...     {"signal": "C P+R-1<100", "filter": "K C R", "result": "K P"},
    ... )
    >>> problem.macs, problem.output, problem.reduction_dims
    (2400, 'result', ('C', 'R'))
    """
    check = Checker("affine", ProblemError)
    checked = check.sizes(sizes)
    axes = _checked_projections(check, tensors)
    written = _checked_output(check, output, list(axes))
    widths = check.element_bytes(element_bytes, list(axes))
    _check_dims_used(check, checked, axes)
    built = [Tensor(tensor, found, widths[tensor]) for tensor, found in axes.items()]
    if not check.faults:
        check_spans(check, built, checked)
    title = check.name(name, _sizes_text(checked))
    check.finish()
    built.sort(key=lambda tensor: tensor.name == written)  # stable: the output goes last
    return Problem(title, tuple(checked.items()), tuple(built), written)


def _sizes_text(sizes: Mapping[str, int]) -> str:
    text = " ".join(f"{dim}{size}" for dim, size in sizes.items())
    return text if len(text) <= 100 else text[:97] + "..."


def _checked_projections(check: Checker, tensors: object) -> dict[str, tuple[Axis, ...]]:
    if not isinstance(tensors, Mapping) or not tensors:
        check.fault(f"tensors is {show(tensors)}; a mapping of names to projections is needed")
        return {}
    axes: dict[str, tuple[Axis, ...]] = {}
    for tensor, text in tensors.items():
        if not (isinstance(tensor, str) and tensor.isidentifier() and is_text(tensor)):
            check.fault(f"tensor name {show(tensor)} is not a plain word (letters, digits, _)")
        elif not isinstance(text, str):
            check.fault(f"tensor '{tensor}': projection is {show(text)}; text is needed")
        else:
            try:
                axes[tensor] = parse_projection(text)
            except ProblemError as error:
                check.fault(f"tensor '{tensor}': {error}")
    return axes


def _checked_output(check: Checker, output: object, names: list[str]) -> str:
    if output is None:
        return names[-1] if names else ""
    if output not in names:
        check.fault(f"output is {show(output)}; {near(output, names)}")
    return str(output)


def _check_dims_used(
    check: Checker, sizes: Mapping[str, int], axes: Mapping[str, tuple[Axis, ...]]
) -> None:
    if check.faults:
        return  # a tensor that could not be read may be the one that uses a dimension
    used = {dim for found in axes.values() for axis in found for dim in axis.dims}
    for tensor, found in axes.items():
        dims = [dim for axis in found for dim in axis.dims]
        for dim in dict.fromkeys(dims):
            if dim not in sizes:
                check.fault(f"tensor '{tensor}': unknown dim '{dim}'; {near(dim, sizes)}")
            if dims.count(dim) > 1:
                check.fault(f"tensor '{tensor}': '{dim}' occurs twice; it may index one axis, once")
        for axis in found:
            if axis.size == 0 or any(c == 0 for _, c in axis.terms):
                check.fault(f"tensor '{tensor}': axis {axis_text(axis)} holds a 0; >= 1 is needed")
    if used <= set(sizes):  # else the dimension that seems unused is likely the misspelt one
        for dim in sizes:
            if dim not in used:
                check.fault(f"dimension '{dim}' indexes no tensor; remove it or use it")


def einsum(
    expression: str,
    sizes: Mapping[str, int],
    *,
    element_bytes: ElementBytes = 4,
    name: str | None = None,
) -> Problem:
    """Build a problem from an einsum expression; errors are those of `affine`.

    Parameters
    ----------
    expression : str
        Operands as letters, commas between, then ``->`` and the result.
        Letters are dimensions as given: ``m`` and ``M`` differ.
    sizes : mapping of letter to int
    element_bytes : int, data type or mapping of tensor name to either
        Tensors are named A, B, C, ... in the order of the expression; the
        result is the last.
    name : str, optional
        By default the expression and its sizes.

    Returns
    -------
    Problem
        Dimensions of the result first, then those summed over.

    See Also
    --------
    affine, gemm

    Examples
    --------
    >>> problem = einsum("mk,kn->mn", {"m": 4, "n": 3, "k": 2})
    >>> problem.dims, problem.output, problem.macs
    (('m', 'n', 'k'), 'C', 24)
    """
    check = Checker("einsum", ProblemError)
    operands = _operands(check, expression)
    checked = check.sizes(sizes)
    letters = dict.fromkeys(operands[-1] + "".join(operands))
    for letter in letters:
        if letter not in checked and isinstance(sizes, Mapping) and letter not in sizes:
            what = near(letter, checked) if checked else f"give one, such as {letter}=64"
            check.fault(f"no size for '{letter}'; {what}")
    for letter in checked:
        if letter not in letters and not check.faults:
            check.fault(f"sizes: '{letter}' is not in the expression; {near(letter, letters)}")
    names = [chr(ord("A") + i) for i in range(len(operands))]
    widths = check.element_bytes(element_bytes, names)
    chosen = {letter: checked.get(letter, 1) for letter in letters}
    title = check.name(name, f"{','.join(operands[:-1])}->{operands[-1]} {_sizes_text(chosen)}")
    check.finish()
    built = tuple(
        Tensor(tensor, plain(*operand), widths[tensor])
        for tensor, operand in zip(names, operands, strict=True)
    )
    expression = f"{','.join(operands[:-1])}->{operands[-1]}"
    return Problem(
        title, tuple(chosen.items()), built, names[-1], "einsum", (("expression", expression),)
    )


def _operands(check: Checker, expression: object) -> list[str]:
    """Read the operands and the result; an empty result after a fault."""
    if not isinstance(expression, str) or len(expression) > 200 or expression.count("->") != 1:
        check.fault(f"expression is {show(expression)}; a form like 'mk,kn->mn' is needed")
        return [""]
    where = f"expression {show(expression)}"
    left, result = "".join(expression.split()).split("->")
    inputs = left.split(",")
    if len(inputs) > 25:
        check.fault(f"expression has {len(inputs)} operands; at most 25")
    for i, operand in enumerate([*inputs, result]):
        what = f"operand {i + 1}" if i < len(inputs) else "the result"
        if not operand and i < len(inputs):
            check.fault(f"{where}: {what} is empty")
        for letter in dict.fromkeys(operand):
            if not (letter.isascii() and letter.isalpha()):
                check.fault(f"{where}: {show(letter)} in {what}; letters only")
            elif operand.count(letter) > 1:
                check.fault(
                    f"{where}: '{letter}' occurs {operand.count(letter)} times in {what}; "
                    "a dimension may index one axis of a tensor, once"
                )
    for letter in dict.fromkeys(result):
        if letter.isalpha() and letter not in left:
            check.fault(f"{where}: '{letter}' of the result is in no operand")
    return [*inputs, result] if not check.faults else [""]
