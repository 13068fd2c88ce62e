"""Files are read within limits, and written in full or not at all."""

from __future__ import annotations

import gzip
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from test_cli import call

from loopsched import gemm, load_arch, load_network, load_workload, read_timeloop, search
from loopsched.base.errors import InputError, WorkloadError
from loopsched.base.files import GrowingFile, read_bytes, read_text, whole_file, write_text
from loopsched.base.rows import ResultFile, read_rows
from loopsched.cli.inputs import schedule_from
from loopsched.gpu.choice.families import TRITON_GEMM
from loopsched.gpu.choice.space import read_space
from loopsched.nests.schedule_file import read_schedule_dict
from loopsched.sweeps.folder import read_manifest
from loopsched.sweeps.spec import read_spec
from loopsched.validation import read_counters, validate_times
from loopsched.validation.choices import validate_choices
from loopsched.verify import verify_proofs

PROBLEM = gemm(m=4, n=3, k=2)
READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "workload": (".json", load_workload),
    "model": (".onnx", load_network),
    "machine": (".yaml", load_arch),
    "sweep": (".yaml", read_spec),
    "timeloop": (".yaml", lambda path: read_timeloop([path])),
    "counters": (".csv", read_counters),
    "times": (".csv", lambda path: validate_times(path, "titan_v")),
    "space": (".csv", lambda path: read_space(path, TRITON_GEMM.names)),
    "measured space": (".csv", lambda path: validate_choices(path, "h100")),
    "rows": (".jsonl", lambda path: list(read_rows(path))),
    "columns": (".parquet", lambda path: list(read_rows(path))),
    "schedule": (".txt", lambda path: schedule_from(f"@{path}", PROBLEM)),
    "loops": (".json", lambda path: read_schedule_dict(path, PROBLEM)),
    "proofs": (".jsonl", lambda path: list(verify_proofs(path))),
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def circle(path: Path) -> None:
    path.symlink_to(path)


def blocked(*_: object) -> NoReturn:
    raise AssertionError("the reader waits")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**32)  # of zeros, which take no room on the disk


KINDS = {
    pipe: "is not a regular file",
    device: "is not a regular file",
    circle: "cannot be read: Too many levels of symbolic links",
    huge: "is larger than",
    Path.mkdir: "is a folder",
    Path.touch: "is empty",
}


@pytest.mark.parametrize(
    ("reader", "kind"),
    [  # folders of Timeloop's files are read
        pytest.param(reader, kind, id=f"{reader}-{kind.__name__}")
        for reader in READERS
        for kind in KINDS
        if (reader, kind) != ("timeloop", Path.mkdir)
    ],
)
def test_what_is_no_file_of_text_is_refused(
    reader: str, kind: Callable[[Path], None], tmp_path: Path
) -> None:
    suffix, read = READERS[reader]
    path = tmp_path / f"strange{suffix}"
    kind(path)
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGALRM, blocked)
    signal.alarm(20)
    try:
        with pytest.raises(InputError, match=KINDS[kind]) as caught:
            read(path)
    finally:
        signal.alarm(0)
    assert str(path) in str(caught.value)
    if kind is device:
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held < 2**17  # 128 MiB


@pytest.mark.parametrize("reader", READERS)
def test_bytes_that_mean_nothing_are_refused(reader: str, tmp_path: Path) -> None:
    suffix, read = READERS[reader]
    for number, content in enumerate([bytes(range(256)), b"\x1f\x8b\x08\x00" * 9, b"PAR1", b"["]):
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(content)
        with pytest.raises(InputError):
            read(path)


def test_errors_are_those_of_the_reader(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="'a\\\\x00b': cannot be read"):
        read_bytes("a\0b", error=WorkloadError)
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfgood")
    assert read_text(tmp_path / "x") == "good"
    with pytest.raises(InputError, match="is larger than 6 B, too large for a word"):
        read_text(tmp_path / "x", "a word", most_bytes=6)


def test_packed_text_is_unpacked_within_the_limit(tmp_path: Path) -> None:
    packed = gzip.compress("\ufeffgood".encode())
    (tmp_path / "x").write_bytes(packed)
    assert read_text(tmp_path / "x") == "good"
    (tmp_path / "x").write_bytes(packed + gzip.compress(b" indeed"))
    assert read_text(tmp_path / "x") == "good indeed"
    for broken in (packed[:-1], packed[:12], packed[:-8] + bytes(8), packed + b"more"):
        (tmp_path / "x").write_bytes(broken)
        with pytest.raises(InputError, match="x: cannot be unpacked: "):
            read_text(tmp_path / "x")
    (tmp_path / "x").write_bytes(gzip.compress(bytes(2**22)))
    with pytest.raises(InputError, match="x: unpacks to more than 1 MiB"):
        read_text(tmp_path / "x", most_bytes=2**20)


def test_a_file_that_fails_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), whole_file(path) as part:
        part.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x.txt"]


def test_what_is_written_follows_no_link_of_its_part(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "x.txt.part").symlink_to(tmp_path / "precious")
    write_text(tmp_path / "x.txt", "new")
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "x.txt").read_text() == "new"


def test_a_link_to_a_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "x.txt").symlink_to(tmp_path / "real")
    write_text(tmp_path / "x.txt", "new")
    assert (tmp_path / "x.txt").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


@pytest.mark.parametrize("name", ["folder", "pipe", "/dev/null", "none/x.txt"])
def test_only_files_are_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=r"cannot be written: (is|no such folder)"):
        write_text(tmp_path / name, "text")
    assert not os.path.isfile("/dev/null")


def full_after(n_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes so many more bytes."""
    left, write = n_bytes, os.write

    def some(handle: int, data: memoryview) -> int:
        nonlocal left
        if not left:
            raise OSError(28, "No space left on device")
        done = write(handle, data[:left])
        left -= done
        return done

    monkeypatch.setattr(os, "write", some)


@pytest.mark.parametrize("room", [0, 1, 10, 26, 27, 28, 40])
def test_a_full_disk_leaves_whole_rows(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    full_after(room, monkeypatch)
    with (
        pytest.raises(InputError, match=r"rows\.jsonl: cannot be written: No space left"),
        ResultFile(path) as file,
    ):
        for n in range(9):
            file.write({"n": n, "word": "abc"})  # 25 bytes and the end of the line
    monkeypatch.undo()
    assert path.read_bytes().rpartition(b"\n")[2] == b""
    rows = [] if room < 26 else [row["n"] for _, row in read_rows(path)]
    assert rows == list(range(room // 26))


def test_what_was_written_stays_if_more_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = GrowingFile(tmp_path / "x")
    file.append("one\n")
    full_after(2, monkeypatch)
    with pytest.raises(InputError):
        file.append("two\n")
    file.close()
    file.close()
    assert (tmp_path / "x").read_text() == "one\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_a_full_device_is_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.jsonl").symlink_to("/dev/full")
    out = str(tmp_path / "rows.jsonl")
    call(capsys, "search", "gemm:m=4,n=3,k=2", "--out", out, status=3)
    proof = search(PROBLEM, load_arch("titan_v")).proof
    with pytest.raises(InputError, match="cannot be written: is not a regular file"):
        GrowingFile(out).append(proof)


def test_a_manifest_of_countless_problems_is_refused(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"n_problems": 1000000000000, "archs": ["a"]}')
    with pytest.raises(InputError, match="not written by a sweep"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["report", "loop.jsonl"],
        ["search", "gemm:m=4,n=3,k=2", "--out", "loop.jsonl"],
        ["explore", "loop.jsonl", "--no-open", "-o", "page.html"],
    ],
)
def test_a_circle_of_links_is_one_message(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.jsonl").symlink_to("loop.jsonl")
    assert "loop.jsonl" in call(capsys, *words, status=3)
    assert [path.name for path in tmp_path.iterdir()] == ["loop.jsonl"]
