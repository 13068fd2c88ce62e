"""Problems as Timeloop's ``problem`` section, and back."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from loopsched.base.arguments import Checker, is_text, show
from loopsched.base.errors import ProblemError, nearest
from loopsched.codegen.contraction import stored_shape
from loopsched.exchange.timeloop.notes import NOTE, note_text, read_note
from loopsched.problems.problem import Problem, Tensor
from loopsched.problems.projections import check_spans, parse_projection, projection_text, span

VERSION = 0.4
_STRIDED, _DILATED = ("P", "Q"), ("R", "S")


def letters(problem: Problem) -> dict[str, str]:
    """Give each dimension a letter: Timeloop's mappings know no longer names.

    A ProblemError refuses more dimensions than letters.

    Examples
    --------
    >>> from loopsched import affine
    >>> letters(affine({"K": 2, "Kin": 3, "x": 4}, {"a": "K Kin", "b": "K x"}))
    {'K': 'K', 'Kin': 'A', 'x': 'x'}
    """
    free = [letter for letter in string.ascii_letters.swapcase() if letter not in problem.dims]
    short = {dim: dim for dim in problem.dims if len(dim) == 1 and dim in string.ascii_letters}
    if len(problem.dims) - len(short) > len(free):
        raise ProblemError(
            f"problem '{problem.name}': {len(problem.dims)} dimensions; Timeloop has 52 letters"
        )
    return {dim: short[dim] if dim in short else free.pop(0) for dim in problem.dims}


def problem_section(
    problem: Problem, padded: Mapping[str, int] | None = None
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Write a problem as Timeloop's ``problem`` section; say what it leaves to its note.

    Parameters
    ----------
    problem : Problem
    padded : mapping of dimension to int, optional
        Sizes to write instead of the problem's own.

    Examples
    --------
    >>> from loopsched import gemm
    >>> section, lost = problem_section(gemm(m=4, n=3, k=2))
    >>> section["shape"]["dimensions"], section["instance"], lost
    (['M', 'N', 'K'], {'M': 4, 'N': 3, 'K': 2}, ())
    >>> section["shape"]["data_spaces"][0]
    {'name': 'A', 'projection': [[['M']], [['K']]]}
    """
    words = letters(problem)
    sizes = {**problem.size, **(padded or {})}
    factors: dict[str, int] = {}
    spaces = [_space(problem, tensor, words, factors) for tensor in problem.tensors]
    shape: dict[str, Any] = {
        "name": problem.name,
        "dimensions": [words[dim] for dim in problem.dims],
    }
    if factors:
        shape["coefficients"] = [{"name": name, "default": 1} for name in factors]
    shape["data_spaces"] = spaces
    section: dict[str, Any] = {
        "version": VERSION,
        "shape": shape,
        "instance": {words[dim]: sizes[dim] for dim in problem.dims} | factors,
    }
    section[NOTE] = note_text(section, _own_form(problem, words))
    enlarged = [
        f"dimension '{dim}' is enlarged from {size} to {sizes[dim]}: Timeloop's tiles are whole"
        for dim, size in problem.sizes
        if sizes[dim] != size
    ]
    return section, (*_lost(problem, words), *enlarged)


def _space(
    problem: Problem, tensor: Tensor, words: Mapping[str, str], factors: dict[str, int]
) -> dict[str, Any]:
    projection = []
    for axis in tensor.axes:
        products = []
        for dim, coefficient in axis.terms:
            product = [words[dim]]
            if coefficient != 1:
                product.append(_factor_name(problem, words[dim], coefficient, factors))
            products.append(product)
        projection.append(products)
    space: dict[str, Any] = {"name": tensor.name, "projection": projection}
    if tensor.name == problem.output:
        space["read_write"] = True
    return space


def _factor_name(problem: Problem, letter: str, value: int, factors: dict[str, int]) -> str:
    kind = "factor"
    if problem.kind == "conv2d":
        kind = "stride" if letter in _STRIDED else "dilation" if letter in _DILATED else kind
    name = f"{letter}{kind}"
    if factors.setdefault(name, value) != value:
        name = f"{name}{value}"
        factors[name] = value
    return name


def _lost(problem: Problem, words: Mapping[str, str]) -> list[str]:
    lost = [
        f"dimension '{dim}' is exported as '{word}'" for dim, word in words.items() if dim != word
    ]
    for tensor in problem.tensors:
        if any(axis.offset or axis.size is not None for axis in tensor.axes):
            unpadded = _with_stored_only(problem, tensor)
            if unpadded:
                lost.append(f"'{tensor.name}': {unpadded}")
    widths = {tensor.element_bytes for tensor in problem.tensors}
    if len(widths) > 1:
        lost.append(
            f"tensors have elements of {', '.join(map(str, sorted(widths)))} bytes; "
            f"Timeloop has one width for all, {max(widths)} bytes"
        )
    return lost


def _with_stored_only(problem: Problem, tensor: Tensor) -> str:
    """Say how many positions count as memory there that are padding or unused here."""
    reached = [span(axis, problem.size) for axis in tensor.axes]
    stored = stored_shape(problem, tensor)
    if list(stored) == reached and not any(axis.offset for axis in tensor.axes):
        return ""
    text = [" x ".join(map(str, sizes)) for sizes in (reached, stored)]
    return f"all {text[0]} positions reached are stored in Timeloop, here {text[1]}"


def _own_form(problem: Problem, words: Mapping[str, str]) -> dict[str, Any]:
    return {
        "dims": {word: dim for dim, word in words.items()},
        "name": problem.name,
        "sizes": problem.sizes,
        "tensors": [
            [tensor.name, projection_text(tensor), tensor.element_bytes]
            for tensor in problem.tensors
        ],
        "output": problem.output,
        "kind": problem.kind,
        "attributes": problem.attributes,
    }


def read_problem(
    section: object, where: str, *, element_bytes: int | None = None
) -> tuple[Problem, dict[str, str], list[str]]:
    """Read Timeloop's ``problem`` section.

    Parameters
    ----------
    section : object
        As parsed, every scalar text.
    where : str
        For messages.
    element_bytes : int, optional
        Size of an element, which the section does not tell; by default 4.

    Returns
    -------
    (Problem, dict, list of str)
        With loopsched's names of Timeloop's dimensions, and remarks on what
        was assumed.

    Raises
    ------
    ProblemError
        With every fault found.
    """
    note, is_stale = read_note(section)
    if note is not None:
        try:
            return _from_own_form(note), dict(note["dims"]), []
        except (KeyError, TypeError, ValueError, AttributeError):
            is_stale = True
    remarks = ["problem: edited since loopsched wrote it; its note is not used"] * is_stale
    problem = _from_section(section, where, element_bytes or 4)
    if element_bytes is None:
        remarks.append("problem: elements of 4 bytes are assumed; Timeloop's problems name no size")
    return problem, {dim: dim for dim in problem.dims}, remarks


def written_sizes(section: object, words: Mapping[str, str]) -> dict[str, int]:
    """Read the sizes that a section says, whatever its note does: whole tiles enlarge them.

    Examples
    --------
    >>> written_sizes({"instance": {"A": "63", "Kstride": "2"}}, {"A": "rows"})
    {'rows': 63}
    """
    instance = _part(section, "instance", [])
    return {dim: _whole(word, instance.get(word), []) for word, dim in words.items()}


def _from_own_form(note: Mapping[str, Any]) -> Problem:
    tensors = tuple(
        Tensor(name, parse_projection(axes) if axes else (), width)
        for name, axes, width in note["tensors"]
    )
    return Problem(
        note["name"],
        _tuples(note["sizes"]),
        tensors,
        note["output"],
        note["kind"],
        _tuples(note["attributes"]),
    )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _from_section(section: object, where: str, element_bytes: int) -> Problem:
    faults: list[str] = []
    shape, instance = _part(section, "shape", faults), _part(section, "instance", faults)
    dims = _words(shape, "dimensions", faults)
    values = {
        key: _whole(f"instance: '{key}'", value, faults)
        for key, value in instance.items()
        if key != "densities"
    }
    for entry in _list(shape, "coefficients", faults, optional=True):
        if isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
            values.setdefault(
                entry["name"],
                _whole(f"coefficient '{entry['name']}'", entry.get("default"), faults),
            )
    sizes = {}
    for dim in dims:
        if dim in values:
            sizes[dim] = values[dim]
        else:
            faults.append(f"instance: no size for '{dim}'; {nearest(dim, instance)}")
    factors = {key: value for key, value in values.items() if key not in dims}
    axes, written = _spaces(shape, dims, factors, faults)
    ProblemError.refuse(f"{where}: problem", faults)
    name = shape.get("name")
    title = name if is_text(name) else "timeloop"
    with ProblemError.at(f"{where}: problem"):
        # The output goes last, as everywhere in loopsched.
        order = sorted(axes, key=lambda one: one == written)
        tensors = tuple(Tensor(one, parse_projection(axes[one]), element_bytes) for one in order)
        found = Problem(str(title), tuple(sizes.items()), tensors, str(written))
    check = Checker(f"{where}: problem", ProblemError)
    check_spans(check, tensors, sizes)
    check.finish()
    return found


def _spaces(
    shape: Mapping[str, Any], dims: list[str], factors: Mapping[str, int], faults: list[str]
) -> tuple[dict[str, str], str | None]:
    axes: dict[str, str] = {}
    written = []
    for place, entry in enumerate(_list(shape, "data_spaces", faults)):
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            faults.append(f"data_spaces[{place}]: a mapping with 'name' and 'projection' is needed")
            continue
        name = entry["name"]
        projection = entry.get("projection")
        if not isinstance(projection, list):
            faults.append(f"data space '{name}': projection is {show(projection)}; a list of sums")
            continue
        texts = [_axis(f"data space '{name}'", one, dims, factors, faults) for one in projection]
        axes[name] = " ".join(texts)
        mark = entry.get("read_write", entry.get("read-write", "false"))
        if str(mark).lower() in ("true", "yes", "1"):
            written.append(name)
    if len(written) != 1 and not faults:
        faults.append(
            f"{len(written)} data spaces have 'read_write: true'; exactly one is needed, the output"
        )
    return axes, written[0] if written else None


def _axis(
    where: str, sum_: object, dims: list[str], factors: Mapping[str, int], faults: list[str]
) -> str:
    """Write a sum of products of one dimension and coefficients as loopsched does."""
    terms = []
    for product in sum_ if isinstance(sum_, list) else [sum_]:
        words = product if isinstance(product, list) else [product]
        moving = [word for word in words if word in dims]
        known = {*dims, *factors}
        unknown = [word for word in words if not isinstance(word, str) or word not in known]
        for word in unknown:
            faults.append(f"{where}: unknown {show(word)}; {nearest(str(word)[:40], dims)}")
        if len(moving) != 1 and not unknown:
            faults.append(
                f"{where}: product {show(words)} has {len(moving)} dimensions; loopsched has sums "
                "of one dimension times a coefficient each"
            )
        coefficient = 1
        for word in words:
            coefficient *= factors.get(str(word), 1)
        terms += [f"{coefficient}*{dim}" for dim in moving]
    return "+".join(terms)


def _part(section: object, key: str, faults: list[str]) -> Mapping[str, Any]:
    found = section.get(key) if isinstance(section, Mapping) else None
    if isinstance(found, Mapping):
        return {str(one).replace("-", "_") if key == "shape" else one: found[one] for one in found}
    known = section if isinstance(section, Mapping) else ()
    faults.append(f"'{key}' is {show(found)}; a mapping is needed; {nearest(key, map(str, known))}")
    return {}


def _list(
    part: Mapping[str, Any], key: str, faults: list[str], optional: bool = False
) -> list[Any]:
    found = part.get(key, [] if optional else None)
    if isinstance(found, list):
        return found
    if part:
        faults.append(f"shape: '{key}' is {show(found)}; a list is needed")
    return []


def _words(part: Mapping[str, Any], key: str, faults: list[str]) -> list[str]:
    found = _list(part, key, faults)
    for word in found:
        if not isinstance(word, str) or not word.isidentifier():
            faults.append(f"shape: {key}: {show(word)} is not a plain word")
    return [word for word in found if isinstance(word, str) and word.isidentifier()]


def _whole(what: str, value: object, faults: list[str]) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    faults.append(f"{what} is {show(value)}; a whole number is needed (no expressions)")
    return 1
