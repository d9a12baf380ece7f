"""Looks for programs that the card gets wrong: `make fuzz MINUTES=10`.

    python -m tests.programs.search --minutes 10 --seed 1

Seeds count up from the first; one seed is one program. Each failure is shrunk and put into a bucket by what failed; the
first of a bucket is written into the corpus, where `test_corpus.py` judges it from then on. Buckets that the corpus
already has are counted, not written again.
"""

import argparse
import collections
import pathlib
import re
import sys
import time

from tests.programs import generator, shrink
from tests.programs.judges import SETTINGS, Failure, bucket_of
from tests.programs.program import Program
from tests.programs.worker import Worker

CORPUS = pathlib.Path(__file__).parent.parent / "corpus" / "programs"


#: The checker looks at one program in so many: it needs a process of its own, and runs everything again.
_CHECKED = 4


class Search:
    def __init__(self, worker: Worker, checked: Worker, out: pathlib.Path, shrink_seconds: float):
        self.worker, self.checked, self.out, self.shrink_seconds = worker, checked, out, shrink_seconds
        self.tried = 0
        self.kinds: collections.Counter[str] = collections.Counter()
        self.buckets: collections.Counter[str] = collections.Counter()
        self.known = {line for p in out.glob("**/*.py") for line in re.findall(r"^bucket: (.*)$", p.read_text(), re.M)}

    def try_seed(self, seed: int) -> None:
        program = generator.generate(seed)
        setting = list(SETTINGS)[seed % len(SETTINGS)]
        self.tried += 1
        failures = self.worker.ask(program, setting)
        if seed % _CHECKED == 0:
            failures += self.checked.ask(program, judges=["checked"])
        for failure in failures:
            self.kinds[failure.kind] += 1
            self._file(seed, program, failure, setting)

    def _file(self, seed: int, program: Program, failure: Failure, setting: str) -> None:
        bucket = bucket_of(failure, program)
        if not failure.kind.endswith("wrong") and (bucket in self.buckets or bucket in self.known):
            self.buckets[bucket] += 1  # an error is known by its message alone
            return
        small, again = self._shrunk(program, failure, setting)
        bucket = bucket_of(again or failure, small) + ("" if again else " (not alone: after other programs)")
        self.buckets[bucket] += 1
        if bucket in self.known or self.buckets[bucket] > 1:
            return
        failure = again or failure
        _say(f"-- seed {seed}: {bucket}\n   {failure.message.splitlines()[0][:300]}\n")
        name = re.sub(r"[^a-z0-9]+", "_", bucket.lower()).strip("_")[:60]
        about = f"{failure.message.splitlines()[0][:300]}\n\nbucket: {bucket}\nseed: {seed} {failure.setting}\n"
        self.out.mkdir(parents=True, exist_ok=True)
        path = self.out / f"{name}_{seed}.py"
        path.write_text(str(small.but(about=about.replace('"""', "'''").replace("\\", "/"))))

    def _shrunk(self, program: Program, failure: Failure, setting: str) -> tuple[Program, Failure | None]:
        judge = failure.kind.split()[0]
        worker = self.checked if judge == "checked" else self.worker
        judges = {
            "eager": ["eager"],
            "compiled": ["compiled"],
            "bits": ["eager", "compiled", "bits"],
            "replay": ["compiled", "replay"],
            "settings": ["compiled", "settings"],
            "checked": ["checked"],
        }.get(judge)
        last = None

        def fails(candidate: Program) -> bool:
            nonlocal last
            for found in worker.ask(candidate, setting, judges):
                if found.kind == failure.kind and (found.kind.endswith("wrong") or _alike(found, failure, candidate)):
                    last = found
                    return True
            return False

        worker.stop()  # in a process of its own: what earlier programs left behind does not count
        if not fails(program):
            return program, None
        return shrink.shrink(program, fails, self.shrink_seconds), last

    def line(self) -> str:
        return (
            f"{self.tried} programs, {sum(self.kinds.values())} failures in {len(self.buckets)} buckets, "
            f"{self.worker.other_orders} with sums in other orders"
        )

    def report(self) -> str:
        lines = [self.line()]
        lines += [f"{n:6}  {kind}" for kind, n in self.kinds.most_common()]
        lines += [f"{n:6}  {b}{'  (known)' if b in self.known else ''}" for b, n in self.buckets.most_common()]
        return "\n".join(lines)


def _alike(a: Failure, b: Failure, program: Program) -> bool:
    return bucket_of(a, program) == bucket_of(b, program)


def _say(line: str) -> None:
    """The one line of progress; at a terminal it replaces itself."""
    print(f"\r\033[K{line}" if sys.stdout.isatty() else line, end="" if sys.stdout.isatty() else "\n", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--programs", type=int, help="stop after so many")
    parser.add_argument("--seconds", type=float, default=60, help="a program that takes longer hangs")
    parser.add_argument("--shrink-seconds", type=float, default=60)
    parser.add_argument("--out", type=pathlib.Path, default=CORPUS, help="where failing programs are written")
    options = parser.parse_args()
    end = time.monotonic() + options.minutes * 60
    with Worker(options.seconds) as worker, Worker(options.seconds, SPYRE_CHECKER="1") as checked:
        search = Search(worker, checked, options.out, options.shrink_seconds)
        said = 0.0
        while time.monotonic() < end and search.tried != options.programs:
            search.try_seed(options.seed + search.tried)
            if time.monotonic() > said + (2 if sys.stdout.isatty() else 60):
                said = time.monotonic()
                _say(f"{search.line()}, {max(0, end - said) / 60:.1f} min left")
    print(f"\nseeds {options.seed} to {options.seed + search.tried - 1}: {search.report()}")
    return 1 if any(b not in search.known for b in search.buckets) else 0


if __name__ == "__main__":
    sys.exit(main())
