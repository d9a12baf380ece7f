"""Which layer lost the digits: a norm written for float32, in 16 bits, found by comparing with the CPU.

python examples/which_layer.py [report.html]
"""

import sys

import torch
import torch_spyre
from torch import nn


class Norm(nn.Module):
    """The variance as mean of squares less square of the mean: two large numbers that are nearly equal."""

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x * x).mean(-1, keepdim=True) - mean * mean
        return (x - mean) * torch.rsqrt(variance + 1e-5)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 64), Norm(), nn.Linear(64, 64)).half()
with torch.no_grad():
    model[0].bias += 8  # far from zero, as activations are
report = torch_spyre.compare(model.to("spyre"), torch.randn(16, 64).half())
print(report)
if len(sys.argv) > 1:
    report.save(sys.argv[1])
