"""Settings are values: one table has them, one function reads the environment, and nothing writes it."""

import ast
import re
from pathlib import Path

import pytest
from torch_spyre import _C
from torch_spyre._inductor import accepted, config

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sorted((ROOT / "python").rglob("*.py"))
CPP = sorted(
    path
    for folder in ("spyre", "glue", "tools")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in (".h", ".cpp") and not re.search(r"_test\.cpp$|/test_\w+\.h$", path.as_posix())
)
CHANGES = ("setdefault", "update", "pop", "popitem", "clear")


def is_environ(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("environ", "environb")


def what_it_does_to_the_environment(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and is_environ(node.value) and not isinstance(node.ctx, ast.Load):
            found.add("writes")
        if isinstance(node, ast.Attribute) and is_environ(node.value) and node.attr in CHANGES:
            found.add("writes")
        if isinstance(node, ast.Attribute) and node.attr in ("putenv", "unsetenv"):
            found.add("writes")
        if is_environ(node) or (isinstance(node, ast.Attribute) and node.attr == "getenv"):
            found.add("reads")
    return found


@pytest.mark.parametrize(
    "text, does",
    [
        ("os.environ['A'] = '1'", {"writes", "reads"}),
        ("del os.environ['A']", {"writes", "reads"}),
        ("os.environ.setdefault('A', '1')", {"writes", "reads"}),
        ("os.putenv('A', '1')", {"writes"}),
        ("os.getenv('A')", {"reads"}),
        ("os.environ.get('A')", {"reads"}),
        ("config.environment", set()),
    ],
)
def test_the_look_at_sources_sees_what_it_should(text, does):
    assert what_it_does_to_the_environment(ast.parse(text)) == does


def test_python_writes_no_environment_and_reads_no_settings_there():
    does = {
        path.relative_to(ROOT).as_posix(): what_it_does_to_the_environment(ast.parse(path.read_text()))
        for path in PYTHON
    }
    # PyTorch's own variable, which asks for the logs of everybody.
    assert {name: found for name, found in does.items() if found} == {"python/torch_spyre/logging_config.py": {"reads"}}


def test_cpp_reads_the_environment_in_one_place_and_never_writes_it():
    calls = {}
    for path in CPP:
        for call in re.findall(
            r"^(?!\s*//).*\b(getenv|secure_getenv|setenv|unsetenv|putenv)\s*\(", path.read_text(), re.M
        ):
            calls.setdefault(path.relative_to(ROOT).as_posix(), set()).add(call)
    assert calls == {"spyre/base/settings.cpp": {"getenv"}}


def test_production_replaces_nothing_by_mocks():
    for path in PYTHON:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] in ("unittest", "mock") for name in names), path


def test_a_default_stands_once_in_the_table():
    of_the_table = {row["config"]: row for row in _C.settings() if row["config"]}
    assert {"sencores", "lx_planning", "layout_solver"} <= set(of_the_table)
    assert not set(of_the_table) & set(accepted.WITHOUT_EFFECT)
    assigned = {
        target.id
        for node in ast.parse((ROOT / "python/torch_spyre/_inductor/config.py").read_text()).body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    assert not assigned & set(of_the_table), "config.py takes these from the table in spyre/base/settings.cpp"
    assert config.values() == {name: row["value"] for name, row in of_the_table.items()}
