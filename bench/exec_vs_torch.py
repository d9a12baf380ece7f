"""The emulated card against PyTorch on the CPU: same work, same number of threads, turn by turn.

    python bench/exec_vs_torch.py --bench build/release/bench/exec_bench [--rounds 9] [case ...]

A ratio of 1 means as fast as PyTorch, 0.5 half as fast. PyTorch writes into tensors that exist already, as the
card does. Each line has the medians of both, the ratio of the best runs, and the median of the ratios of neighbouring
runs, which counts. On a machine that others use, `--threads 1 --cpu` compares processor time.

Both run in processes of their own. There are machines whose PyTorch dies of SIGILL in products of 16-bit numbers: its
process is then started again with kernels of AVX2 alone, and the line says so.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import torch

GOAL = 1.0  # of every case


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

# PyTorch's threads keep spinning for a while after their work, on the processors that the card is to use next.
SETTLE = 0.05

# What PyTorch, oneDNN and MKL read to keep away from instructions that the processor has not.
AVX2_ALONE = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def seconds(run, clock=time.perf_counter):
    begin = clock()
    run()
    return clock() - begin


class Contender:
    """A process that is kept running: it reads names of cases and answers each with one timed run, a line of JSON."""

    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})}
        )

    def seconds(self, case):
        """Nothing if the process died."""
        try:
            self.process.stdin.write(case + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        answer = self.process.stdout.readline()
        return json.loads(answer)["seconds"] if answer else None

    def exit_status(self):
        return self.process.wait()


class Yardstick:
    """PyTorch. Where it dies of an instruction that the processor has not, it goes on with kernels of AVX2."""

    def __init__(self, command):
        self.command, self.limited = command, False
        self.process = Contender(command)

    def seconds(self, case):
        answer = self.process.seconds(case)
        if answer is None and self.process.exit_status() == -signal.SIGILL and not self.limited:
            self.limited = True
            self.process = Contender(self.command, AVX2_ALONE)
            answer = self.process.seconds(case)
        if answer is None:
            raise SystemExit(f"PyTorch's process ended with {self.process.exit_status()} in {case}")
        return answer


class Card:
    def __init__(self, command):
        self.process = Contender(command)

    def seconds(self, case):
        time.sleep(SETTLE)
        answer = self.process.seconds(case)
        if answer is None:
            raise SystemExit(f"{self.process.process.args[0]} ended with {self.process.exit_status()} in {case}")
        return answer


def serve(threads, clock, works_of=lambda case: WORK[case]()):
    """PyTorch's side of `Contender`: of several ways to do the same work, the fastest counts."""
    torch.set_num_threads(threads)
    best = {}
    for line in sys.stdin:
        case = line.strip()
        if case not in best:
            best.clear()  # one case's memory at a time
            works = works_of(case)
            for run in works:
                seconds(run)
            best[case] = min(works, key=lambda run: min(seconds(run) for _ in range(3)))
        print(json.dumps({"seconds": seconds(best[case], clock)}), flush=True)


def compare(case, card, yardstick, rounds):
    card.seconds(case), yardstick.seconds(case)  # they prepare what the case needs
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(card.seconds(case))
        theirs.append(yardstick.seconds(case))
    ratio = statistics.median(t / o for t, o in zip(theirs, ours, strict=True))
    print(
        f"{case:16} card {statistics.median(ours) * 1e3:9.2f} ms   torch {statistics.median(theirs) * 1e3:9.2f} ms   "
        f"best {min(theirs) / min(ours):5.2f}   ratio {ratio:5.2f}   goal {GOAL:.1f}"
        f"{'' if ratio >= GOAL else ' missed'}"
        f"{'   PyTorch with AVX2 alone: it died of SIGILL' if yardstick.limited else ''}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default="build/release/bench/exec_bench")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--cpu", action="store_true", help="processor time instead of wall time")
    parser.add_argument("--serve", action="store_true", help="be PyTorch's process: cases on stdin, seconds on stdout")
    parser.add_argument("cases", nargs="*", default=list(WORK))
    args = parser.parse_args()
    if args.serve:
        return serve(args.threads, time.process_time if args.cpu else time.perf_counter)
    settings = ["--serve", "--threads", str(args.threads)] + ["--cpu"] * args.cpu
    card, yardstick = Card([args.bench, *settings]), Yardstick([sys.executable, __file__, *settings])
    for case in args.cases:
        compare(case, card, yardstick, args.rounds)


if __name__ == "__main__":
    main()
