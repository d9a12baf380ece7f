#!/usr/bin/env python3
"""Runs the code that docs/journey.md talks about and rewrites the blocks of the page with what came out.

    regenerate_journey.py --bundle-tool build/dev/tools/spyre-bundle [--check]

A block lies between `<!-- begin:NAME -->` and `<!-- end:NAME -->`; each has one function here. One without text is an
error: what it showed is no longer printed. Nothing printed depends on time, addresses of this process or the number of
threads, so equal code gives an equal page. With --check nothing is written; the exit code is 1 when the page is out of
date. Needs a Python in which torch_spyre is installed.
"""

import argparse
import difflib
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import torch
from torch_spyre import _C

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "journey.md"
KERNEL = ROOT / "tests" / "corpus" / "opspec" / "softmax.opspec"
GRAPH = ROOT / "tests" / "corpus" / "graphs" / "softmax.ir"


def numbers(values: torch.Tensor) -> str:
    return "  ".join(f"{v:9.6f}" for v in values.float().tolist())


class Tensor:
    """One tensor on its way to the card and back."""

    def __init__(self):
        torch.manual_seed(0)
        self.x = torch.randn(1024, 256, dtype=torch.float16)
        before = torch.spyre.metrics()
        self.y = self.x.to("spyre")
        after = torch.spyre.metrics()
        self.counted = {k: after[k] - before[k] for k in sorted(after) if k != "fallbacks" and after[k] != before[k]}
        self.layout = self.y.device_tensor_layout()
        self.back = self.y.cpu()

    def device_order(self, tensor: torch.Tensor) -> torch.Tensor:
        """The elements as they lie in device memory, padding included: a layout that maps device order to itself."""
        layout = tensor.device_tensor_layout()
        size = list(layout.device_size)
        strides = [torch.Size(size[i + 1 :]).numel() for i in range(len(size))]
        straight = _C.SpyreTensorLayout(size, strides, layout.device_dtype)
        return _C.as_strided_with_layout(tensor, size, strides, 0, straight).cpu()

    def host(self) -> str:
        return f"x                {tuple(self.x.shape)} {self.x.dtype}, strides {self.x.stride()}\n" + (
            f"x[3, 64:68]      {numbers(self.x[3, 64:68])}"
        )

    def storage(self) -> str:
        block = torch.spyre.memory_snapshot()["segments"][0]["blocks"][0]
        return (
            f"storage          {self.y.untyped_storage().nbytes()} bytes\n"
            f"block            address {block['address']}, {block['size']} bytes, '{block['description']}'"
        )

    def layout_text(self) -> str:
        tile, lane = 64 // self.layout.device_size[-1], 64 % self.layout.device_size[-1]
        offset = (tile * self.layout.device_size[1] + 3) * self.layout.device_size[2] + lane
        return f"{self.layout}\nelement (3, 64)  tile {tile}, row 3, lane {lane}: element {offset} of device memory"

    def format(self) -> str:
        host, card = self.x[3, 64:68], self.back[3, 64:68]
        halves = [v & 0xFFFF for v in host.view(torch.int16).tolist()]
        codes = [_C.encode_constant(v, self.layout.device_dtype) for v in card.tolist()]
        return (
            f"on the host      {numbers(host)}\n"
            f"as fp16          {'  '.join(f'{v:>9X}' for v in halves)}\n"
            f"as SEN169        {'  '.join(f'{v:>9X}' for v in codes)}\n"
            f"which means      {numbers(card)}"
        )

    def counters(self) -> str:
        return "\n".join(f"{name:24}{value:>8}" for name, value in self.counted.items())

    def memory(self) -> str:
        stick = self.device_order(self.y)[1, 3]
        same = torch.equal(stick, self.back[3, 64:128])
        small = torch.full((2, 100), 7.0, dtype=torch.float16).to("spyre")
        tail = self.device_order(small)[1, 1]
        return (
            f"device [1, 3, :4]     {numbers(stick[:4])}\n"
            f"the stick is x[3, 64:128] as the card rounds it: {same}\n\n"
            f"f16[2, 100] of sevens {small.device_tensor_layout()}\n"
            f"its last stick        {int((tail == 7).sum())} sevens, then {int((tail == 0).sum())} zeros of padding"
        )

    def way_back(self) -> str:
        view = self.y[3:, 64:].t()
        x, back = self.x.double(), self.back.double()
        normal = x.abs() >= 2**-14
        error = ((back - x).abs() / x.abs())[normal].max().item()
        return (
            f"y[3:, 64:].t()   {tuple(view.shape)}, strides {view.stride()}, storage offset {view.storage_offset()}\n"
            f"same layout      {view.device_tensor_layout() == self.layout}\n"
            f"same values      {torch.equal(view.cpu(), self.back[3:, 64:].t())}\n"
            f"rounding         at most {error:.2e} of a value; 2^-10 is {2**-10:.2e}\n"
            f"subnormals       {int((~normal & (x != 0)).sum())} of {x.numel()} values lie below 2^-14"
        )

    def blocks(self) -> dict:
        return {
            "host": self.host(),
            "storage": self.storage(),
            "layout": self.layout_text(),
            "format": self.format(),
            "counters": self.counters(),
            "memory": self.memory(),
            "back": self.way_back(),
        }


def first_op(text: str) -> str:
    """The kernel up to the end of its first op; the rest as an ellipsis."""
    end = text.index("\n  }\n", text.index("  op ")) + len("\n  }\n")
    return text[:end] + "  ...\n}"


def sdsc_summary(path: Path) -> str:
    (name, top), *_ = json.loads(path.read_text()).items()
    (_, dsc), *_ = top["dscs_"][0].items()
    extents = ", ".join(f"{k.rstrip('_')} {v}" for k, v in dsc["N_"].items() if k != "name_")
    masks = ", ".join(f"{dim} from {start}, {n}" for dim, m in dsc["coordinateMasking_"].items() for start, n in m)
    places = [
        f"{node['component_']} {'/'.join(node['startAddressCoreCorelet_']['data_'].values())}"
        for node in dsc["scheduleTree_"]
        if node["nodeType_"] == "allocate"
    ]
    return f"{path.name:12} {name.split('_', 1)[1]:8} {extents:16} {masks or '-':18} {', '.join(places)}"


def run_table(printed: str) -> str:
    """What spyre-run prints, without the time it took."""
    return "\n".join(line for line in printed.splitlines() if "best" not in line)


def pass_texts(tools: Path) -> list[tuple[str, str | None]]:
    """The graph after every pass of the compiler, in order; None where a pass left it as it was."""
    command = [tools / "spyre-compile", GRAPH, "--cores", "2", "--print-after", "all"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pieces = re.split(r"^# after (\S+?)(: unchanged)?\n", printed, flags=re.MULTILINE)[1:]
    triples = zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
    return [(name, None if unchanged else text.strip("\n")) for name, unchanged, text in triples]


def changed_lines(before: str, after: str) -> str:
    """What a pass took away and what it wrote, line by line."""
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return "\n".join(line.rstrip() for line in lines if line.startswith(("- ", "+ ")))


def pass_block(passes: list[tuple[str, str | None]]) -> str:
    before = "\n".join(line for line in GRAPH.read_text().splitlines() if not line.startswith("#"))
    shown = []
    for name, after in passes:
        shown.append(f"{name}: unchanged" if after is None else f"{name}:\n{changed_lines(before, after)}")
        before = after or before
    return "\n".join(shown)


def compile_blocks(tools: Path) -> dict:
    """The same softmax as a compiler sees it: what each pass changes, and what running its bundle moved."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([tools / "spyre-compile", GRAPH, "--cores", "2", "-o", scratch + "/b"], check=True)
        ran = subprocess.run([tools / "spyre-run", scratch + "/b"], check=True, capture_output=True, text=True).stdout
    return {
        "graph": first_node(GRAPH.read_text()),
        "passes": pass_block(pass_texts(tools)),
        "compiled": run_table(ran),
    }


def first_node(text: str) -> str:
    """The graph up to the end of its first node; the rest as an ellipsis."""
    end = text.index("\n  }\n", text.index("  node ")) + len("\n  }\n")
    return text[:end] + "  ...\n}"


def bundle_blocks(tool: Path) -> dict:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "softmax"
        listing = subprocess.run([tool, KERNEL, "-o", out], check=True, capture_output=True, text=True).stdout
        program = (out / "bundle.mlir").read_text()
        head = f"{'file':12} {'op':8} {'extents':16} {'masked':18} start of each tensor, core 0/core 1"
        rows = [sdsc_summary(path) for path in sorted(out.glob("sdsc_*.json"))]
        launch = json.loads((out / "spyreCodeDir" / "launch_spec.json").read_text())
        ran = subprocess.run(
            [tool.parent / "spyre-run", out, "--check"], check=True, capture_output=True, text=True
        ).stdout
    symbols = "\n".join(json.dumps(symbol) for symbol in launch["symbols"])
    return {
        "opspec": first_op(KERNEL.read_text()),
        "files": listing.rstrip("\n"),
        "bundle": program.rstrip("\n"),
        "sdsc": "\n".join([head, *rows]),
        "symbols": symbols,
        "run": run_table(ran),
    }


def rewritten(page: str, blocks: dict) -> str:
    names = set(re.findall(r"<!-- begin:(\w+) -->", page))
    if names != set(blocks):
        raise SystemExit(f"docs/journey.md has blocks {sorted(names)}, this script makes {sorted(blocks)}")
    for name, text in blocks.items():
        if not text.strip():
            raise SystemExit(f"docs/journey.md: block '{name}' would be empty: what it shows is no longer printed")
        block = f"<!-- begin:{name} -->\n```text\n{text}\n```\n<!-- end:{name} -->"
        page = re.sub(rf"<!-- begin:{name} -->.*?<!-- end:{name} -->", lambda _, b=block: b, page, flags=re.DOTALL)
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description="Rewrites the blocks of docs/journey.md from the real code.")
    parser.add_argument("--bundle-tool", type=Path, default=ROOT / "build" / "dev" / "tools" / "spyre-bundle")
    parser.add_argument("--check", action="store_true", help="only say whether the page is out of date")
    options = parser.parse_args()
    if not options.bundle_tool.exists():
        print(f"{options.bundle_tool} does not exist: build the target spyre-bundle, or pass --bundle-tool")
        return 1
    warnings.simplefilter("ignore", UserWarning)
    old = PAGE.read_text()
    new = rewritten(
        old, {**Tensor().blocks(), **bundle_blocks(options.bundle_tool), **compile_blocks(options.bundle_tool.parent)}
    )
    if new == old:
        return 0
    if options.check:
        print("docs/journey.md is out of date: run scripts/regenerate_journey.py")
        return 1
    PAGE.write_text(new)
    print("wrote docs/journey.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
