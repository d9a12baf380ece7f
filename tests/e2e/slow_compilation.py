"""For test_progress.py: compiles for more than a second, and writes meanwhile what must stay readable.

``python -m tests.e2e.slow_compilation card`` (or ``cpu``)
"""

import logging
import sys
import time
import warnings

import torch
from torch import nn

log = logging.getLogger("slow")
log.addHandler(logging.StreamHandler())  # holds on to stderr as it is now


class Block(nn.Module):
    def __init__(self, seconds: float):
        super().__init__()
        self.linear, self.seconds = nn.Linear(64, 64, bias=False), seconds

    def forward(self, x):
        wait(self.seconds)
        return x + torch.tanh(self.linear(x))


@torch._dynamo.assume_constant_result  # runs while Dynamo traces
def wait(seconds: float) -> int:
    warnings.warn("a warning", stacklevel=1)
    log.error("a message")
    print("half a line", end=" ")
    time.sleep(0.2)  # nothing is drawn into it
    print("and its end")
    time.sleep(seconds)
    return 0


class Blocks(nn.Module):
    def __init__(self, seconds: float):
        super().__init__()
        self.blocks = nn.ModuleList(Block(seconds) for _ in range(4))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def main() -> None:
    warnings.simplefilter("always")
    device = "cpu" if sys.argv[1] == "cpu" else "spyre"
    model = Blocks(0.8).half().to(device)
    x = torch.ones(2, 64, dtype=torch.float16, device=device)
    options = {"backend": "eager"} if device == "cpu" else {}
    with torch.no_grad():
        torch.compile(model, **options)(x)
    print("done", file=sys.stderr)


if __name__ == "__main__":
    main()
