"""A tensor goes to the emulated card, is looked at there, and comes back."""

import time
import warnings

import torch

warnings.filterwarnings("ignore", category=UserWarning)


def main() -> None:
    print(torch.spyre.get_device_properties())
    torch.manual_seed(0)
    x = torch.randn(1024, 256, dtype=torch.float16)

    y = x.to("spyre")
    print("\nx.to('spyre'):", tuple(y.shape), y.dtype, "on", y.device)
    print("layout:       ", y.device_tensor_layout())
    back = y.cpu()
    error = (back.float() - x.float()).abs().max().item()
    print(f"comes back with at most {error:.2e} of rounding: the card's 16-bit float has 9 fraction bits, not 10")
    print("a view reads the same bytes:", torch.equal(y[3:, 64:].t().cpu(), back[3:, 64:].t()))

    z = (y * 2 + 1).relu().mean()
    print(f"\n(y * 2 + 1).relu().mean() = {z.item():.4f}, on the CPU {(back * 2 + 1).relu().mean().item():.4f}")

    start = time.perf_counter()
    big = torch.empty(16 * 2**30 // 2, dtype=torch.float16, device="spyre")
    del big
    print(f"a 16 GiB tensor was allocated and freed in {(time.perf_counter() - start) * 1e3:.2f} ms")
    print("\n" + torch.spyre.memory_summary())
    print("\n" + torch.spyre.metrics_report())


if __name__ == "__main__":
    main()
