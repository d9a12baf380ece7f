"""What an eager operator costs beside the work itself: the first call of a new shape, and every call after it.

    python bench/eager_bench.py [--rounds 41] [--shapes 15]

The yardstick of a repeated call is the same kernel with tensors that exist already (`kernel.run`), turn by turn with
the operator; the difference is dispatch, cache, allocation. A first call is one of a shape that was not seen before.
Each operator's result is compared with the CPU's first; a wrong one is no number.

Goals: a first call below 10 ms, a repeated call less than 100 us over execution.
"""

import argparse
import statistics
import time

import torch
import torch_spyre._C as _C

F16 = torch.float16
FIRST_GOAL_MS, REPEAT_GOAL_US = 10.0, 100.0


def _graph(body: str, inputs: str, size: str, stride: str, loops: str) -> str:
    return f"graph bench {{\n{inputs}\n  buffer out : float16[{size}] stride=[{stride}]\n  node out ({loops}) {{\n{body}\n  }}\n  return out\n}}"  # noqa: E501


def _pointwise(op, count, rows, width):
    inputs = "\n".join(f"  input x{i} : float16[{rows}, {width}] stride=[{width}, 1]" for i in range(count))
    loads = "\n".join(f"    v{i} = load x{i}[{width}*p0 + p1]" for i in range(count))
    values = " ".join(f"v{i}" for i in range(count))
    body = f"{loads}\n    v{count} = {op} {values}\n    store out[{width}*p0 + p1] v{count}"
    return _graph(body, inputs, f"{rows}, {width}", f"{width}, 1", f"p0: {rows}, p1: {width}")


def _matmul(rows, width):
    inputs = (
        f"  input x0 : float16[{rows}, {width}] stride=[{width}, 1]\n  input x1 : float16[{width}, 64] stride=[64, 1]"
    )
    body = f"    v0 = load x0[{width}*p0 + r0]\n    v1 = load x1[64*r0 + p1]\n    v2 = reduce.dot v0 v1\n    store out[64*p0 + p1] v2"  # noqa: E501
    return _graph(body, inputs, f"{rows}, 64", "64, 1", f"p0: {rows}, p1: 64; r0: {width}")


CASES = {
    # name: (operator, shapes of its tensors, the same as graph text or None)
    "add": (torch.add, lambda r, w: [(r, w), (r, w)], lambda r, w: _pointwise("add", 2, r, w)),
    "exp": (torch.exp, lambda r, w: [(r, w)], lambda r, w: _pointwise("exp", 1, r, w)),
    "mm": (torch.mm, lambda r, w: [(r, w), (w, 64)], _matmul),
    "gelu": (torch.nn.functional.gelu, lambda r, w: [(r, w)], lambda r, w: _pointwise("gelu", 1, r, w)),
    "sum": (lambda x: x.sum(1), lambda r, w: [(r, w)], None),
    "softmax": (lambda x: x.softmax(1), lambda r, w: [(r, w)], None),
    "layer_norm": (lambda x: torch.nn.functional.layer_norm(x, x.shape[1:]), lambda r, w: [(r, w)], None),
}


def _tensors(shapes):
    return [(torch.rand(shape) - 0.5).half().to("spyre") for shape in shapes]


def _seconds(work) -> float:
    start = time.perf_counter()
    work()
    torch.spyre.synchronize()
    return time.perf_counter() - start


def _check(op, tensors):
    have, want = op(*tensors).cpu().float(), op(*(t.cpu().float() for t in tensors))
    torch.testing.assert_close(have, want, rtol=2e-2, atol=2e-2)


def first_calls(case, shapes: int) -> list[float]:
    op, make, _ = CASES[case]
    times = []
    for i in range(shapes):
        tensors = _tensors(make(4 + i, 64 * (1 + i % 5)))
        times.append(_seconds(lambda op=op, tensors=tensors: op(*tensors)) * 1e3)
    return times[1:]  # the very first one also starts the runtime


def repeated_calls(case, rounds: int):
    """(operator, yardstick) in microseconds; the yardstick is empty where there is no single-node graph."""
    op, make, text = CASES[case]
    tensors = _tensors(make(8, 256))
    _check(op, tensors)
    kernel = _C.compile_graph(text(8, 256)) if text else None
    out = op(*tensors)
    eager, bare = [], []
    for _ in range(rounds):
        eager.append(_seconds(lambda: op(*tensors)) * 1e6)
        if kernel:
            bare.append(_seconds(lambda: kernel.run(tensors, [out])) * 1e6)
    return eager, bare


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--shapes", type=int, default=15)
    options = parser.parse_args()
    torch.spyre.set_fallback_mode("error")
    print(
        f"{'operator':<12}{'first call':>16}{'of goal':>9}{'repeated':>12}{'execution':>12}{'over it':>10}{'of goal':>9}"  # noqa: E501
    )
    for case in CASES:
        first = first_calls(case, options.shapes)
        eager, bare = repeated_calls(case, options.rounds)
        middle = statistics.median(first)
        spread = statistics.median(abs(t - middle) for t in first)
        line = f"{case:<12}{middle:>8.2f} +-{spread:>4.2f}ms{middle / FIRST_GOAL_MS:>8.2f}x{statistics.median(eager):>10.1f}us"  # noqa: E501
        if bare:
            over = statistics.median(e - b for e, b in zip(eager, bare, strict=True))
            line += f"{statistics.median(bare):>10.1f}us{over:>8.1f}us{over / REPEAT_GOAL_US:>8.2f}x"
        print(line)


if __name__ == "__main__":
    main()
