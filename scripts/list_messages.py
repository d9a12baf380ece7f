#!/usr/bin/env python3
"""Lists the refusal messages of the compiler and the glue, and which of them no test shows.

    list_messages.py                  every message without a test: file, line, message; exits 1 if there is one
    list_messages.py --all            every message, untested ones marked
    list_messages.py spyre/graph ...  of these folders only

A message is the text given to `Error(...)`, `refuse(...)`, `unsupported(...)`, `error_here(...)` or `TORCH_CHECK(...)`;
each arm of a choice is one. It counts as tested when a test expects to read it: the `# ERROR:` line of an input under
tests/errors; a string in a `*_test.cpp` of its layer, for what no text can say; a string in a Python test, for the
glue. Expected texts hold what stands between the placeholders, in order. What our own code alone can break is no
message but a SPYRE_CHECK, which is not listed.
"""

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("spyre/graph", "spyre/forms", "spyre/lx", "spyre/passes", "spyre/opspec", "spyre/codegen", "glue")
TESTS = ROOT / "tests"

CALL = re.compile(r"\b(Error(?:\s+\w+)?|refuse|refused|unsupported|error_here|unexpected|TORCH_CHECK\w*)\s*\(")
TOKEN = re.compile(r'"((?:[^"\\\n]|\\.)*)"|\'(?:[^\'\\\n]|\\.)\'|//[^\n]*|/\*.*?\*/|[()]', re.DOTALL)
PLACEHOLDER = re.compile(r"\{[^{}]*\}")


class Message(NamedTuple):
    path: str
    line: int
    text: str  # placeholders as {}

    @property
    def layer(self) -> str:
        return "/".join(self.path.split("/")[: 2 if self.path.startswith("spyre/") else 1])

    def pattern(self) -> re.Pattern:
        parts = PLACEHOLDER.split(self.text.removeprefix("{}:{}: ").strip().replace("{{", "\0").replace("}}", "\1"))
        return re.compile(".*".join(re.escape(p.replace("\0", "{").replace("\1", "}")) for p in parts), re.DOTALL)


def literals(text: str, start: int = 0):
    """The string literals of a text, or of the parenthesis that opens before `start`; neighbours joined."""
    depth, end_of_last, found = 1 if start else 1 << 30, None, []
    for token in TOKEN.finditer(text, start):
        if token[0] == "(":
            depth += 1
        elif token[0] == ")":
            depth -= 1
            if depth == 0:
                break
        elif token[0].startswith('"'):
            value = ast.literal_eval(token[0])
            if end_of_last is not None and not text[end_of_last : token.start()].strip():
                found[-1][1] += value
            else:
                found.append([token.start(), value])
            end_of_last = token.end()
    return found


def first_comma(text: str, start: int) -> int:
    """Where the first argument of the call that opens before `start` ends."""
    depth = 0
    for token in re.finditer(r'"(?:[^"\\\n]|\\.)*"|[(){}\[\],]', text[start:]):
        if token[0] == "," and depth == 0:
            return start + token.start()
        depth += (token[0] in "({[") - (token[0] in ")}]")
        if depth < 0:
            break
    return start


def is_message(text: str) -> bool:
    """Sentences, not the names and separators that are put into them, and not the `node '{}': {}` put before them."""
    words = PLACEHOLDER.sub("", text)
    return not text.endswith(": {}") and len(re.findall(r"[A-Za-z]{2,}", words)) >= 2


def messages_of(path: Path) -> list[Message]:
    text = path.read_text()
    found = {}
    for call in CALL.finditer(text):
        line_start = text.rfind("\n", 0, call.start()) + 1
        if "//" in text[line_start : call.start()]:
            continue
        parts = literals(text, call.end())
        if call[1].startswith("TORCH_CHECK"):
            # All that follows the condition is one message; what has no quotes stands for something. A note or what to
            # try begins a line of its own.
            after = first_comma(text, call.end())
            parts = [part for part in parts if part[0] > after]
            parts = [[parts[0][0], "{}".join(p for _, p in parts).split("\n")[0]]] if parts else []
        for position, literal in parts:
            if is_message(literal):
                found[position] = Message(str(path.relative_to(ROOT)), text.count("\n", 0, position) + 1, literal)
    return [found[position] for position in sorted(found)]


def all_messages(folders=FOLDERS) -> list[Message]:
    files = (p for folder in folders for p in sorted((ROOT / folder).rglob("*")) if p.suffix in (".cpp", ".h"))
    return [m for path in files if not path.name.endswith("_test.cpp") for m in messages_of(path)]


def unescaped(text: str) -> str:
    """A pattern for `pytest.raises(match=...)` as the text it matches."""
    return re.sub(r"\\(.)", r"\1", text)


def expected_in_inputs() -> list[str]:
    files = (p for p in sorted((TESTS / "errors").rglob("*")) if p.suffix in (".ir", ".opspec"))
    return [text for path in files for text in re.findall(r"#\s*(?:ERROR|NOTE):\s*(.*\S)", path.read_text())]


def expected_in_unit_tests(layer: str) -> list[str]:
    files = sorted((ROOT / layer).rglob("*_test.cpp"))
    return [literal for path in files for _, literal in literals(path.read_text())]


def expected_in_python() -> list[str]:
    trees = (ast.parse(path.read_text()) for path in sorted(TESTS.rglob("*.py")))
    constants = (n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant))
    return [unescaped(value) for value in constants if isinstance(value, str)]


def untested(messages: list[Message]) -> list[Message]:
    expected = {}
    for layer in {m.layer for m in messages}:
        if layer == "glue":
            expected[layer] = expected_in_python()
        else:
            expected[layer] = expected_in_inputs() + expected_in_unit_tests(layer)
    return [m for m in messages if not any(m.pattern().search(text) for text in expected[m.layer])]


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Refusal messages, and which of them no test under tests/errors shows."
    )
    parser.add_argument("folders", nargs="*", default=FOLDERS, help="default: " + " ".join(FOLDERS))
    parser.add_argument("--all", action="store_true", help="tested ones, too")
    options = parser.parse_args()
    messages = all_messages(options.folders)
    missing = set(untested(messages))
    for message in messages:
        if options.all or message in missing:
            mark = "" if not options.all else "- " if message in missing else "  "
            print(f"{mark}{message.path}:{message.line}: {message.text}")
    print(f"{len(messages)} messages, {len(missing)} without a test", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
