"""What an eager operator costs beside the work itself: the first call of a new shape, and every call after it.

    python bench/eager_bench.py [--rounds 41] [--shapes 15] [--cpu]

The yardstick of a repeated call is the same kernel with tensors that exist already (`kernel.run`), turn by turn with
the operator; the difference is dispatch, cache, allocation. A first call is one of a shape that was not seen before.
Each operator's result is compared with the CPU's first; a wrong one is no number. `--cpu` measures processor time, of
all threads together: for a machine that others use.

Goals: a first call of at most 10 ms, a repeated call of at most 100 us over execution; what misses one is marked.
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


def _call(operator, arguments, results, rows, width):
    """One operator as a whole, with the size and stride of each of its results."""
    buffers = "\n".join(f"  buffer {name} : float16[{size}] stride=[{stride}]" for name, size, stride in results)
    names = ", ".join(name for name, *_ in results)
    return (
        f"graph bench {{\n  input x0 : float16[{rows}, {width}] stride=[{width}, 1]\n{buffers}\n"
        f"  call {results[0][0]} aten.{operator}(x0, {arguments}) -> ({names})\n  return {names}\n}}"
    )


def _sum(rows, width):
    return _call("sum.dim_IntList", "[1], false, none", [("y", rows, 1)], rows, width)


def _softmax(rows, width):
    return _call("_softmax.default", "1, false", [("y", f"{rows}, {width}", f"{width}, 1")], rows, width)


def _layer_norm(rows, width):
    results = [("y", f"{rows}, {width}", f"{width}, 1"), ("m", f"{rows}, 1", "1, 1"), ("r", f"{rows}, 1", "1, 1")]
    return _call("native_layer_norm.default", f"[{width}], none, none, 1e-05", results, rows, width)


CASES = {
    # name: (operator, shapes of its tensors, the same as graph text)
    "add": (torch.add, lambda r, w: [(r, w), (r, w)], lambda r, w: _pointwise("add", 2, r, w)),
    "exp": (torch.exp, lambda r, w: [(r, w)], lambda r, w: _pointwise("exp", 1, r, w)),
    "mm": (torch.mm, lambda r, w: [(r, w), (w, 64)], _matmul),
    "gelu": (torch.nn.functional.gelu, lambda r, w: [(r, w)], lambda r, w: _pointwise("gelu", 1, r, w)),
    "sum": (lambda x: x.sum(1), lambda r, w: [(r, w)], _sum),
    "softmax": (lambda x: x.softmax(1), lambda r, w: [(r, w)], _softmax),
    "layer_norm": (
        lambda x: torch.native_layer_norm(x, x.shape[1:], None, None, 1e-5),
        lambda r, w: [(r, w)],
        _layer_norm,
    ),
}


def _tensors(shapes):
    return [(torch.rand(shape) - 0.5).half().to("spyre") for shape in shapes]


def _results(found) -> list:
    return list(found) if isinstance(found, tuple) else [found]


def _seconds(work, clock) -> float:
    start = clock()
    work()
    torch.spyre.synchronize()
    return clock() - start


def _check(op, tensors):
    want = _results(op(*(t.cpu().float() for t in tensors)))
    for have, wanted in zip(_results(op(*tensors)), want, strict=True):
        torch.testing.assert_close(have.cpu().float(), wanted, rtol=2e-2, atol=2e-2)


def first_calls(case, shapes: int, clock) -> list[float]:
    op, make, _ = CASES[case]
    times = []
    for i in range(shapes):
        tensors = _tensors(make(4 + i, 64 * (1 + i % 5)))
        times.append(_seconds(lambda op=op, tensors=tensors: op(*tensors), clock) * 1e3)
    return times[1:]  # the very first one also starts the runtime


def repeated_calls(case, rounds: int, clock):
    """(operator, yardstick) in microseconds."""
    op, make, text = CASES[case]
    tensors = _tensors(make(8, 256))
    _check(op, tensors)
    kernel = _C.compile_graph(text(8, 256))
    out = _results(op(*tensors))
    eager, bare = [], []
    for _ in range(rounds):
        eager.append(_seconds(lambda: op(*tensors), clock) * 1e6)
        bare.append(_seconds(lambda: kernel.run(tensors, out), clock) * 1e6)
    return eager, bare


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--shapes", type=int, default=15)
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall time")
    options = parser.parse_args()
    clock = time.process_time if options.cpu else time.perf_counter
    torch.spyre.set_fallback_mode("error")
    print(
        f"{'operator':<12}{'first call':>16}{'of goal':>9}{'repeated':>12}{'execution':>12}{'over it':>10}{'of goal':>9}"  # noqa: E501
    )
    for case in CASES:
        first = first_calls(case, options.shapes, clock)
        eager, bare = repeated_calls(case, options.rounds, clock)
        middle = statistics.median(first)
        spread = statistics.median(abs(t - middle) for t in first)
        over = statistics.median(e - b for e, b in zip(eager, bare, strict=True))
        missed = " missed" if middle > FIRST_GOAL_MS or over > REPEAT_GOAL_US else ""
        print(
            f"{case:<12}{middle:>8.2f} +-{spread:>4.2f}ms{middle / FIRST_GOAL_MS:>8.2f}x"
            f"{statistics.median(eager):>10.1f}us{statistics.median(bare):>10.1f}us{over:>8.1f}us"
            f"{over / REPEAT_GOAL_US:>8.2f}x{missed}"
        )


if __name__ == "__main__":
    main()
