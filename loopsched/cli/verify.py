"""``verify``: check the proofs that ``search --proof`` wrote."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import click

from loopsched.base.errors import ProofError
from loopsched.base.units import excess, scaled
from loopsched.cli import options, output
from loopsched.show.table import Column, words
from loopsched.verify import Verdict, read_proofs, verify_proof

_COLUMNS = (
    Column("line"),
    words("problem", shrinks="middle"),
    words("machine"),
    words("objective"),
    Column("best"),
    Column("bound"),
    Column("gap"),
    Column("boxes", spare=1),
    Column("checked in", spare=2),
)


_EPILOG = """\b
loopsched search resnet50 --proof proofs.jsonl    writes them
loopsched verify proofs.jsonl --arch titan_v      checks them
"""


@click.command(epilog=_EPILOG)
@click.argument("file")
@click.option("--arch", "-a", metavar="NAME|FILE", help="Reject proofs for any other machine.")
@options.jobs("Check N proofs in parallel.")
def verify(file: str, arch: str | None, jobs: int) -> None:
    """Check the proofs in FILE, one per line, without the search.

    A proof divides the schedules into boxes: ranges of tile sizes. It is accepted
    if the boxes cover all schedules, the bound of each box holds, and the best
    schedule has the claimed value.
    """
    from loopsched.base.pool import each_in_order

    lines = read_proofs(file)
    if lines and '"workload_digest"' in lines[0]:
        raise ProofError(f"{file}: saved results; 'loopsched search --proof FILE' writes proofs")
    if lines and not any('"format"' in line for line in lines):
        raise ProofError(f"{file}: not proofs; 'loopsched search --proof FILE' writes them")
    machine = None
    if arch is not None:
        from loopsched.machines.arch_file import load_arch
        from loopsched.scheduler.proof import plain_machine

        machine = plain_machine(load_arch(arch))
    accepted: list[tuple[int, Verdict, float]] = []
    faults = []
    with output.Progress(len(lines)) as progress:
        found = each_in_order(_checked, [(line,) for line in lines], jobs)
        for number, (verdict, seconds) in enumerate(found, 1):
            if isinstance(verdict, str):
                faults.append(f"line {number}: {verdict}")
            elif machine is not None and verdict.arch != machine:
                faults.append(f"line {number}: {_mistaken(verdict.arch.name, arch)}")
            else:
                accepted.append((number, verdict, seconds))
            progress.step(f"line {number}")
    if accepted:
        _print(accepted)
    ProofError.refuse(file, faults)


def _mistaken(found: str, wanted: str | None) -> str:
    return f"is about {'another ' if found == wanted else ''}'{found}', not '{wanted}'"


def _checked(line: str) -> tuple[Verdict | str, float]:
    start = perf_counter()
    try:
        verdict: Verdict | str = verify_proof(line)
    except ProofError as error:
        verdict = str(error)
    return verdict, perf_counter() - start


def _print(accepted: list[tuple[int, Verdict, float]]) -> None:
    cells = [
        [
            str(number), verdict.problem.name, verdict.arch.name, verdict.objective,
            _value(verdict, float(verdict.best)), _value(verdict, float(verdict.bound)),
            _gap(verdict),
            f"{verdict.boxes:,}", scaled(seconds, "s"),
        ]
        for number, verdict, seconds in accepted
    ]  # fmt: skip
    output.print_table(_COLUMNS, cells, [verdict.schedule for _, verdict, _ in accepted])
    proven = sum(verdict.proven for _, verdict, _ in accepted)
    first, *others = dict.fromkeys(_space(verdict) for _, verdict, _ in accepted)
    spaces = "; in others, ".join((f"in some problems, {first}" if others else first, *others))
    output.print_text(
        f"Accepted: {len(accepted)}; proven best: {proven}. No schedule of a problem, with any "
        f"loops and tile sizes, is below 'bound' ({spaces})."
    )
    outside = sum(not verdict.covered for _, verdict, _ in accepted)
    if outside:
        output.print_text(
            f"Not covered by its own bound: {outside}. The schedule places tiles one by one; that "
            "none is better rests on the search alone."
        )


def _value(verdict: Verdict, value: float) -> str:
    factor, unit = options.OBJECTIVE_UNITS[verdict.objective]
    return scaled(value * factor, unit)


def _gap(verdict: Verdict) -> str:
    if verdict.proven:
        return "0"
    has_gap = verdict.bound and verdict.covered
    return excess(float(verdict.best / verdict.bound - 1)) if has_gap else "-"


def _space(verdict: Verdict) -> str:
    shared = [
        f"loops over {_in_words(dims)} may be split across {unit}"
        for unit, dims in verdict.spatial.items()
    ]
    if verdict.together:
        shared.append(f"all tiles of {verdict.together} at one place")
    return ", ".join(shared) or "no units"


def _in_words(dims: Sequence[str]) -> str:
    *first, last = dims
    return f"{', '.join(first)} and {last}" if first else last
