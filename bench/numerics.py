"""The errors that docs/numerics.md publishes, measured: `.venv/bin/python bench/numerics.py`.

Errors of norms are in half places of the format (2^-10 in 16 bits, 2^-24 in float32) of the larger of the exact value
and 1; those of float32 products in units of 2^-24 * sum |a| |b|.
"""

import torch
import torch.nn.functional as F

HALF_PLACE = {torch.float16: 2.0**-10, torch.bfloat16: 2.0**-10, torch.float32: 2.0**-24}


def exact(tensor):
    return tensor.float().cpu().double()


def norm_rows():
    """Layer norm, variance and batch norm of rows with a mean, in training."""
    for dtype, mean in ((d, m) for d in HALF_PLACE for m in (0, 10, 1000)):
        x = (torch.randn(64, 200) + mean).to(dtype).to("spyre")

        def error(run, x=x, dtype=dtype):
            expected = run(exact(x))
            off = (exact(run(x)) - expected).abs() / expected.abs().clamp_min(1)
            return (off.max() / HALF_PLACE[dtype]).item()

        layer = error(lambda t: F.layer_norm(t, (200,), eps=1e-12))
        variance = error(lambda t: t.var(-1))
        batch = error(lambda t: F.batch_norm(t, None, None, training=True))
        print(f"{dtype} mean {mean}: layer_norm {layer:.2f}, var {variance:.2f}, batch_norm {batch:.2f}")


def sums():
    for dtype in (torch.float16, torch.float32):
        x = torch.rand(4, 16384).to(dtype).to("spyre")
        off = (exact(x.sum(-1)) / exact(x).sum(-1) - 1).abs().max().item()
        print(f"sum of 16384 positive {dtype}: {off / HALF_PLACE[dtype]:.2f} half places")


def products():
    for name, a, b in (
        ("randn, k = 1024", torch.randn(64, 1024), torch.randn(1024, 64)),
        ("positive, k = 4096", torch.rand(64, 4096), torch.rand(4096, 64)),
    ):
        unit = 2.0**-24 * (a.double().abs() @ b.double().abs())
        found = {"CPU": a @ b}
        for precision in ("highest", "high", "medium"):
            torch.set_float32_matmul_precision(precision)
            found[precision] = (a.to("spyre") @ b.to("spyre")).cpu()
        torch.set_float32_matmul_precision("highest")
        off = {k: ((v.double() - a.double() @ b.double()).abs() / unit).max().item() for k, v in found.items()}
        print(f"product, {name}: " + ", ".join(f"{k} {v:.3g}" for k, v in off.items()))


def infinities_and_nan():
    def half(*numbers):
        return torch.tensor(numbers, dtype=torch.float16, device="spyre")

    print("0/0, 1/0, -1/0 in float16:", (half(0, 1, -1) / half(0, 0, 0)).cpu().tolist())
    print("log(-1), log(0) in float16:", half(-1, 0).log().cpu().tolist())
    print("exp(30) in float16, float32:", half(30).exp().item(), half(30).float().exp().item())
    a = torch.ones(2, 64)
    a[0, 3] = float("inf")
    print(
        "float32 product with one infinity:", (a.to("spyre") @ torch.ones(64, 1).to("spyre")).flatten().cpu().tolist()
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    norm_rows()
    sums()
    products()
    infinities_and_nan()
