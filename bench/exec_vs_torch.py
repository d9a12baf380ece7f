"""The emulated card against PyTorch on the CPU: same work, same number of threads, turn by turn.

    python bench/exec_vs_torch.py --bench build/release/bench/exec_bench [--rounds 9] [case ...]

A ratio of 1 means as fast as PyTorch, 0.5 half as fast. PyTorch writes into tensors that exist already, as the
card does. Each line has the medians of both, the ratio of the best runs, and the median of the ratios of neighbouring
runs, which counts. On a machine that others use, `--threads 1 --cpu` compares processor time.
"""

import argparse
import json
import statistics
import subprocess
import time

import torch

GOALS = {
    "matmul": 0.7,
    "matmul_ksplit": 0.6,
    "matmul_batched": 0.6,
    "matmul_decode": 1.0,
    "add": 0.7,
    "exp": 0.7,
    "softmax": 1.0,
    "restickify": 0.5,
}


def matmul():
    x, w, out = torch.randn(1024, 4096), torch.randn(4096, 4096), torch.empty(1024, 4096)
    return [lambda: torch.matmul(x, w, out=out)]


def matmul_batched():
    x, w, out = torch.randn(32, 512, 128), torch.randn(32, 128, 512), torch.empty(32, 512, 512)
    return [lambda: torch.bmm(x, w, out=out)]


def matmul_decode():
    """Both 16-bit types, both orders of the weight: the fastest counts."""
    works = []
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.randn(1, 4096).to(dtype)
        w = torch.randn(4096, 12800).to(dtype)
        turned = w.t().contiguous()
        works.append(lambda x=x, w=w: torch.matmul(x, w))
        works.append(lambda x=x, w=turned: torch.nn.functional.linear(x, w))
    return works


def add():
    x, y = (torch.randn(4096, 8192).half() for _ in range(2))
    out = torch.empty_like(x)
    return [lambda: torch.add(x, y, out=out)]


def exp():
    x = torch.randn(4096, 8192).half()
    out = torch.empty_like(x)
    return [lambda: torch.exp(x, out=out)]


def softmax():
    x = torch.randn(4096, 4096).half()
    largest, total = (torch.empty(4096, 1).half() for _ in range(2))
    shifted, out = torch.empty_like(x), torch.empty_like(x)

    def run():
        torch.amax(x, -1, keepdim=True, out=largest)
        torch.sub(x, largest, out=shifted)
        torch.exp(shifted, out=shifted)
        torch.sum(shifted, -1, keepdim=True, out=total)
        torch.div(shifted, total, out=out)

    return [run]


def restickify():
    x = torch.randn(4096, 4096).half()
    out = torch.empty_like(x)
    return [lambda: out.copy_(x.t())]


# PyTorch's threads keep spinning for a while after their work, on the processors that the card is to use next.
SETTLE = 0.05

WORK = {
    "matmul": matmul,
    "matmul_ksplit": matmul,
    "matmul_batched": matmul_batched,
    "matmul_decode": matmul_decode,
    "add": add,
    "exp": exp,
    "softmax": softmax,
    "restickify": restickify,
}


def seconds(run, clock=time.perf_counter):
    begin = clock()
    run()
    return clock() - begin


class Card:
    """The C++ program, kept running: one timed run per request."""

    def __init__(self, path, threads, cpu):
        self.process = subprocess.Popen(
            [path, "--serve", "--threads", str(threads)] + ["--cpu"] * cpu,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, case):
        time.sleep(SETTLE)
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())["seconds"]


def compare(case, card, rounds, clock):
    works = WORK[case]()
    for run in works:
        seconds(run)
    best = min(works, key=lambda run: min(seconds(run) for _ in range(3)))
    card.seconds(case)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(card.seconds(case))
        theirs.append(seconds(best, clock))
    ratio = statistics.median(t / o for t, o in zip(theirs, ours, strict=True))
    goal = GOALS[case]
    print(
        f"{case:16} card {statistics.median(ours) * 1e3:9.2f} ms   torch {statistics.median(theirs) * 1e3:9.2f} ms   "
        f"best {min(theirs) / min(ours):5.2f}   ratio {ratio:5.2f}   goal {goal:.1f} "
        f"{'' if ratio >= goal else 'missed'}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/release/bench/exec_bench")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall time")
    parser.add_argument("cases", nargs="*", default=list(WORK))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    card = Card(args.bench, args.threads, args.cpu)
    for case in args.cases:
        compare(case, card, args.rounds, time.process_time if args.cpu else time.perf_counter)


if __name__ == "__main__":
    main()
