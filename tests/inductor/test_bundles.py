"""Graphs cut into bundles, around CPU fallbacks and eager kernels, on a card of one's own and on a shared one.

On a shared card (``FLEX_DEVICE=VF``) every bundle that is not marked non-terminal is followed by a wipe of LX. The
checker looks at every launch, and takes LX for empty after such a bundle on every card.
"""

import itertools
import os
import subprocess
import sys

import pytest
import torch
from torch_spyre._inductor import config, kernels

H = torch.float16

PROGRAM = """
import sys
import torch
import torch_spyre

def softmax(x):
    e = torch.exp(x - x.amax(0, keepdim=True))
    return e / e.sum(0, keepdim=True)

def program(x, w):
    before = softmax(x @ w)
    on_the_cpu = torch.lgamma(before + 4)  # the card has no such operator: two device regions
    return softmax(on_the_cpu * before) + before

torch.manual_seed(3)
x, w = torch.randn(96, 128, dtype=torch.float16).to("spyre"), torch.randn(128, 192, dtype=torch.float16).to("spyre")
compiled = torch.compile(program, fullgraph=True)
for first in (x, torch.softmax(x.abs() + 1, dim=0)):
    compiled(first, w)
torch.spyre.synchronize()
torch.spyre.reset_metrics()  # compiling looks at tensors, too
results = []
for _ in range(2):
    results.append(compiled(x, w).cpu())
    between = torch.softmax(x.abs() + 1, dim=0)  # eager kernels use LX too
    results.append((compiled(between, w) * 2).cpu())
metrics = torch.spyre.metrics()
assert set(metrics["fallbacks"]) == {"aten::lgamma.out"}, metrics["fallbacks"]
torch.save({"results": results, "launches": metrics["launches"]}, sys.argv[1])
"""


def _run(path, **settings):
    environment = os.environ | {"SPYRE_CHECKER": "1", "TORCH_SPYRE_FALLBACK": "silent", "SENCORES": "4"} | settings
    done = subprocess.run([sys.executable, "-c", PROGRAM, path], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return torch.load(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return _run(tmp_path_factory.mktemp("whole") / "result", FLEX_DEVICE="PF")


_WAYS = list(itertools.product(["PF", "VF"], "10", ["0", "2"]))
_QUICK = [("VF", "1", "0"), ("PF", "1", "2"), ("VF", "0", "2")]


@pytest.mark.parametrize(
    ("device", "marks", "operations"),
    [way if way in _QUICK else pytest.param(*way, marks=pytest.mark.full) for way in _WAYS],
)
def test_every_bit_stays_around_fallbacks_and_eager_kernels(device, marks, operations, whole, tmp_path):
    found = _run(tmp_path / "result", FLEX_DEVICE=device, SPYRE_NON_TERMINAL=marks, SPYRE_BUNDLE_OPS=operations)
    for here, there in zip(found["results"], whole["results"], strict=True):
        assert torch.equal(here.view(torch.int16), there.view(torch.int16))
    if operations == "0":
        assert found["launches"] == whole["launches"]
    else:
        assert found["launches"] > whole["launches"]


def test_a_region_is_one_launch_by_default(whole):
    # Two regions, four times; an eager softmax of a sum of absolute values and a doubling, twice: at most one
    # launch for each of the four operators.
    assert 8 < whole["launches"] <= 16


def test_what_crosses_bundles_is_explained():
    torch._dynamo.reset()
    x = torch.randn(128, 192, dtype=H).to("spyre")
    with config.patch(bundle_ops=2, non_terminal=False, sencores=1):
        compiled = torch.compile(lambda x: torch.softmax(x, 0), fullgraph=True)
        compiled(x)
    facts = kernels.explain()[-1]
    assert len(facts["bundles"]) > 1 and not any(b["non_terminal"] for b in facts["bundles"])
    assert any("read in another bundle by" in row["remark"] for row in facts["buffers"])
