"""A child process that judges programs, and its parent's handle on it: a crash or a hang is an answer, not the end.

The parent writes one line of JSON for each program, the child answers with one. `python -m tests.programs.worker` is
the child.
"""

import faulthandler
import json
import os
import select
import subprocess
import sys
import tempfile
import time

from tests.programs.judges import Failure, Judgement
from tests.programs.program import Program, parse

ENVIRONMENT = {
    "TORCH_SPYRE_FALLBACK": "silent",
    "TORCH_SPYRE_DOWNCAST_WARN": "0",
    "OMP_NUM_THREADS": "1",
    "SPYRE_THREADS": "1",
    "MKL_CBWR": "COMPATIBLE",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
    "TORCHDYNAMO_VERBOSE": "0",
}


#: A child that waits for ever uses no processor: this many times the limit is its end.
_IDLE = 10


class Worker:
    """Starts a child when it is first asked, and again after a crash, a hang, or enough programs.

    Where eager and compiled are other bits, a second child says whether they are that with exact sums, too: what is
    left of the difference then is no order of additions, and a failure (ADR 0045).
    """

    def __init__(self, seconds: float = 60, programs_per_child: int = 100, **settings: str):
        self.seconds, self.programs_per_child = seconds, programs_per_child
        self.environment = {**ENVIRONMENT, **settings}
        self.child, self.asked, self.errors, self.cache = None, 0, None, None
        self.exact_sums, self.other_orders = None, 0

    def ask(self, program: Program, setting: str = "", judges=None) -> list[Failure]:
        failures = self._ask(program, setting, judges)
        if any(f.kind == "bits wrong" for f in failures) and self._differs_by_order(program):
            self.other_orders += 1
            return [f for f in failures if f.kind != "bits wrong"]
        return failures

    def _differs_by_order(self, program: Program) -> bool:
        self.exact_sums = self.exact_sums or Worker(self.seconds, SPYRE_EXECUTOR="exact-sums")
        return not self.exact_sums._ask(program, judges=("eager", "compiled", "bits"))

    def _ask(self, program: Program, setting: str = "", judges=None) -> list[Failure]:
        if self.child is None or self.asked >= self.programs_per_child:
            self._start()
        self.asked += 1
        request = {"program": str(program), "setting": setting} | ({"judges": list(judges)} if judges else {})
        try:
            self.child.stdin.write(json.dumps(request) + "\n")
            self.child.stdin.flush()
        except BrokenPipeError:
            return [Failure("crash", self._last_words())]
        busy, end = self._processor_seconds(), time.monotonic() + _IDLE * self.seconds
        while time.monotonic() < end and self._processor_seconds() - busy < self.seconds:
            if select.select([self.child.stdout], [], [], 0.5)[0]:
                line = self.child.stdout.readline()
                if not line:
                    return [Failure("crash", self._last_words())]
                if line.startswith("{"):
                    return [Failure(**f) for f in json.loads(line)["failures"]]
        self.child.send_signal(6)  # faulthandler says where it was
        time.sleep(0.5)
        return [Failure("hang", f"no answer in {self.seconds:.0f} s of the processor; {self._last_words()}")]

    def _processor_seconds(self) -> float:
        """What the child has used: on a busy machine a slow answer is not a hang."""
        try:
            with open(f"/proc/{self.child.pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _start(self) -> None:
        self.stop()
        self.errors = tempfile.TemporaryFile("w+")
        self.cache = tempfile.TemporaryDirectory(prefix="spyre-programs-")
        environment = {**os.environ, **self.environment, "TORCHINDUCTOR_CACHE_DIR": self.cache.name}
        self.child = subprocess.Popen(
            [sys.executable, "-m", "tests.programs.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment,
        )
        self.asked = 0

    def _last_words(self) -> str:
        """The end of a child that will not answer any more."""
        try:
            code = self.child.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            code = self.child.wait()
        self.errors.seek(0)
        lines = self.errors.read().splitlines()
        fatal = [i for i, line in enumerate(lines) if line.startswith(("Fatal Python error", "terminate called"))]
        said = lines[fatal[0] :][:20] if fatal else lines[-1:]
        self.child = None
        return f"exit {code}: " + "\n".join(said)

    def stop(self) -> None:
        if self.exact_sums is not None:
            self.exact_sums.stop()
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None
        if self.cache is not None:
            self.cache.cleanup()
            self.cache = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def main() -> None:
    import torch  # noqa: F401 - registers the device

    faulthandler.enable()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whoever prints does not disturb the answers
    for line in sys.stdin:
        request = json.loads(line)
        options = {"judges": tuple(request["judges"])} if "judges" in request else {}
        failures = Judgement(parse(request["program"]), request["setting"], **options).failures
        answers.write(json.dumps({"failures": [f.facts() for f in failures]}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
