"""The emulated card behind a pipe, and the one comparison that every test ends with."""

import json
import os
import pathlib
import subprocess

import numpy as np

from . import device, formats

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(
    os.environ.get("SPYRE_CASE_RUNNER", ROOT / "build" / "dev" / "tests" / "ops" / "spyre_case_runner")
)

# What memory holds where no data is: an op that lets it into a result gives NaN, or this number, and not the answer.
INPUT_FILL = {16: formats.SEN169_NAN, 32: 0x7FC00000, 8: 0x7F}
OUTPUT_FILL = {16: 0x5C5C, 32: 0x5C5C5C5C, 8: 0x5C}


class Card:
    """case_runner.cpp, started once and asked many times."""

    def __init__(self):
        self._process = subprocess.Popen([PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self):
        self._process.stdin.close()
        self._process.wait(timeout=30)

    def _ask(self, request, payload=()):
        self._process.stdin.write(json.dumps(request).encode() + b"\n" + b"".join(payload))
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the runner ended with {self._process.wait(timeout=30)}"
        return json.loads(line)

    def table(self):
        return self._ask({"table": True})["table"]

    def run(self, kernel, memories):
        """Runs a kernel on arrays of codes, one per launch argument; returns them as they are afterwards."""
        arguments = [{"index": i, "bytes": m.nbytes} for i, m in enumerate(memories)]
        reply = self._ask({"kernel": kernel, "arguments": arguments}, [m.tobytes() for m in memories])
        if "error" in reply:
            raise CardError(reply["error"] + "\n" + kernel)
        after = [self._process.stdout.read(m.nbytes) for m in memories]
        return [np.frombuffer(raw, m.dtype) for raw, m in zip(after, memories, strict=True)]


class CardError(Exception):
    pass


def check_op(
    card,
    op,
    space,
    inputs,
    output,
    expected,
    *,
    ulps=0,
    slack=None,
    zeros_alike=False,
    whole_stick=False,
    via=None,
    before=None,
    **how,
):
    """Runs one op and compares every element of memory.

    inputs: (tensor, codes of its logical elements). expected: codes of the output's. ulps: how many codes a result may
    be away. slack: absolute error allowed besides. zeros_alike: the sign of a zero does not matter. whole_stick: every
    lane of the output's sticks holds the result, or `expected` has a last axis for the lanes. via: builds the kernel,
    `in_lx` to go through the cores' scratchpads. before: codes that the output's memory holds at first.
    """
    memories = []
    for t, codes in inputs:
        memories.append(t.pack(codes, INPUT_FILL[formats.BITS[t.fmt]]))
    blank = output.blank(OUTPUT_FILL[formats.BITS[output.fmt]])
    if before is not None:
        blank[:] = before
    memories.append(blank)
    tensors = [t for t, _ in inputs] + [output]
    build = via or straight
    kernel = build(op, space, tensors[:-1], output, **how)
    after = card.run(kernel, memories)

    for t, was, now in zip(tensors[:-1], memories, after, strict=False):
        np.testing.assert_array_equal(was, now, err_msg=f"the op changed its input {t.name}\n{kernel}")
    elements = output.elements()
    untouched = np.ones(blank.size, bool)
    untouched[elements] = False
    untouched[output.padding()] = False
    if whole_stick:
        width = formats.lanes(output.fmt)
        rows = elements // width
        untouched[(rows[..., None] * width + np.arange(width)).ravel()] = False
        slack = slack[..., None] if np.ndim(slack) and np.ndim(slack) == rows.ndim else slack
        by_lane = expected if np.ndim(expected) > rows.ndim else np.asarray(expected)[..., None]
        compare(output.fmt, after[-1].reshape(-1, width)[rows], by_lane, kernel, ulps, slack, zeros_alike)
    else:
        compare(output.fmt, after[-1][elements], expected, kernel, ulps, slack, zeros_alike)
    np.testing.assert_array_equal(
        after[-1][untouched], blank[untouched], err_msg=f"bytes outside the result changed\n{kernel}"
    )
    return after[-1]


def compare(fmt, actual, expected, kernel, ulps=0, slack=None, zeros_alike=False):
    expected = np.broadcast_to(expected, actual.shape)
    if ulps == 0 and slack is None and not zeros_alike:
        wrong = actual != expected
    else:
        distance = np.abs(formats.ordered(fmt, actual) - formats.ordered(fmt, expected))
        wrong = distance > ulps
        if slack is not None:
            with np.errstate(invalid="ignore"):
                error = np.abs(formats.decode(fmt, actual).astype(np.float64) - formats.decode(fmt, expected))
            wrong &= ~(error <= slack)
        both_nan = formats.is_nan(fmt, actual) & formats.is_nan(fmt, expected)
        wrong = np.where(both_nan, actual != expected, wrong)
    if wrong.any():
        where = np.argwhere(wrong)
        lines = [
            f"  {tuple(int(x) for x in i)}: found {int(actual[tuple(i)]):#x} = {_shown(fmt, actual[tuple(i)])}, "
            f"expected {int(expected[tuple(i)]):#x} = {_shown(fmt, expected[tuple(i)])}"
            for i in where[:5]
        ]
        raise AssertionError(f"{wrong.sum()} of {wrong.size} elements differ\n" + "\n".join(lines) + "\n" + kernel)


def _shown(fmt, code):
    try:
        return formats.decode(fmt, np.array([code]))[0]
    except KeyError:
        return "bits"


def straight(op, space, inputs, output, **how):
    """Every tensor is a launch argument."""
    for i, t in enumerate([*inputs, output]):
        t.place = f"hbm={i}"
    arguments = [(t, "input") for t in inputs] + [(output, "output")]
    return device.kernel_text(arguments, [device.op_text(op, space, inputs, output, **how)])
