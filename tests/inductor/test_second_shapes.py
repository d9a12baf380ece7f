"""A program that sees a second shape: PyTorch compiles it again with a symbol in its place, which is bound here to what
it is in that call.
"""

import pytest
import torch
from torch.nn import functional as f

LENGTHS = (12, 8, 9, 70)

PROGRAMS = {
    "pad to a multiple": lambda x: f.pad(x, (0, 0, 0, -x.shape[0] % 64)),
    "pad and cut": lambda x: f.pad(x, (1, -1, x.shape[0] - 3, 3 - x.shape[0])),
    "rows beside themselves": lambda x: torch.cat([x, x + 1]),
    "the second half": lambda x: x[x.shape[0] // 2 :] * 2,
    "heads": lambda x: x.view(x.shape[0], 2, 32).transpose(0, 1).contiguous(),
    "scores": lambda x: torch.softmax(x @ x.t(), -1),
    "counted": lambda x: x + torch.arange(x.shape[0], device=x.device, dtype=x.dtype)[:, None],
    "indexed by what counts": lambda x: (x @ x.t())[
        torch.arange(x.shape[0], device=x.device)[:, None], torch.arange(5, device=x.device)
    ],
    "a size from sizes": lambda x: f.pad(x, (0, 0, 0, 64))[: -x.shape[0] % 64 // 2 + 1],
    "counted by a product": lambda x: torch.arange(x.shape[0] * x.shape[0], device=x.device).float(),
    "a mean": lambda x: x.sum(0) / x.shape[0],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_other_lengths(name, on_the_card_only):
    torch._dynamo.reset()
    compiled = torch.compile(PROGRAMS[name])
    for length in LENGTHS:
        x = (torch.arange(length * 64).view(length, 64) % 7 / 8).half()
        expected = PROGRAMS[name](x.float())
        torch.testing.assert_close(compiled(x.to("spyre")).cpu().float(), expected, rtol=4e-3, atol=4e-3)
