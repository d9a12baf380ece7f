"""What spyre-plan says about a plan: text, JSON, comparisons, and the page as a person meets it in a browser."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

import tests.browser

ROOT = Path(__file__).resolve().parents[2]
SOFTMAX = ROOT / "tests/corpus/graphs/softmax_columns.ir"
LAYER = ROOT / "tests/corpus/layers/granite_layer.ir"
GRAPHS = sorted((ROOT / "tests/corpus").glob("*/*.ir"))


def find_tool() -> Path:
    """In the folder of SPYRE_TOOLS, else the newest under build/*/tools."""
    if "SPYRE_TOOLS" in os.environ:
        return Path(os.environ["SPYRE_TOOLS"]) / "spyre-plan"
    found = (ROOT / "build").glob("*/tools/spyre-plan")
    return max(found, key=lambda p: p.stat().st_mtime, default=Path("spyre-plan"))


def spyre_plan(*args, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([find_tool(), *map(str, args)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"spyre-plan ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def plan_of(*args) -> dict:
    return json.loads(spyre_plan(*args, "--json").stdout)


class TestFacts:
    def test_traffic_by_buffer_adds_up(self):
        plan = plan_of(LAYER)
        assert (
            sum(b["moves"] for b in plan["buffers"]) == plan["moved"] == plan["cost"]["read"] + plan["cost"]["written"]
        )
        assert sum(b["saves"] for b in plan["buffers"] if b["place"] == "lx") == plan["saved"]
        assert plan["saved"] <= plan["bound"] <= plan["at_stake"]
        assert plan["compulsory"] <= plan["moved"]

    @pytest.mark.parametrize("options", [(), ("--capacity", 65536), ("--cores", 1, "--no-clones")], ids=str)
    @pytest.mark.parametrize("path", GRAPHS, ids=lambda p: f"{p.parent.name}/{p.stem}")
    def test_no_plan_beats_its_bounds(self, path, options):
        plan = plan_of(path, *options)
        assert plan["compulsory"] <= plan["moved"]
        assert plan["saved"] <= plan["bound"] <= plan["at_stake"]
        assert not plan["optimal"] or plan["bound"] == plan["saved"]

    def test_a_hint_that_cannot_be_followed_is_part_of_the_plan(self, tmp_path):
        text = SOFTMAX.read_text()
        head = next(line for line in text.splitlines() if line.strip().startswith("node "))
        (tmp_path / "hinted.ir").write_text(text.replace(head, head.replace(" {", " hint={p1: 7} {"), 1))
        plan = plan_of(tmp_path / "hinted.ir")
        (refused,) = plan["refused_hints"]
        assert (refused["loop"], refused["split"]) == ("p1", 7) and "not a legal split" in refused["reason"]
        assert "refused  " in spyre_plan(tmp_path / "hinted.ir").stdout
        assert {**plan, "refused_hints": []} == plan_of(SOFTMAX)

    def test_whoever_is_not_in_lx_says_why_and_what_it_costs(self):
        off = [b for b in plan_of(LAYER)["buffers"] if b["place"] == "hbm"]
        assert off
        for buffer in off:
            assert buffer["reason"] and buffer["remark"] == buffer["reason"]
            assert buffer["moves"] > 0

    def test_text_has_a_line_per_buffer(self):
        text, plan = spyre_plan(SOFTMAX).stdout, plan_of(SOFTMAX)
        rows = [line.split() for line in text.splitlines()]
        for buffer in plan["buffers"]:
            (row,) = [r for r in rows if r and r[0] == buffer["buffer"]]
            assert row[1:3] == [f"{buffer['first']}..{buffer['last']}", str(buffer["bytes_per_core"])]
        assert f"avoided  {plan['saved']} of {plan['at_stake']} B" in text

    def test_alternatives_are_plans_of_every_solver(self):
        plan = plan_of(SOFTMAX, "--alternatives", "--capacity", 4096)
        by_solver = {row["solver"]: row for row in plan["alternatives"]}
        assert {"greedy", "firstfit", "bestfit", "exact", "portfolio"} <= by_solver.keys()
        for solver, row in by_solver.items():
            alone = plan_of(SOFTMAX, "--capacity", 4096, "--solver", solver)
            assert (row["saved"], row["moved"]) == (alone["saved"], alone["moved"])


class TestCompare:
    def test_a_plan_equals_its_saved_self(self, tmp_path):
        (tmp_path / "plan.json").write_text(spyre_plan(SOFTMAX, "--json").stdout)
        comparison = plan_of(SOFTMAX, "--compare", tmp_path / "plan.json")
        assert comparison["changes"] == [] and comparison["moved_address"] == 0

    def test_what_another_capacity_takes_away(self, tmp_path):
        wide, narrow = plan_of(SOFTMAX), plan_of(SOFTMAX, "--capacity", 256)
        (tmp_path / "wide.json").write_text(json.dumps(wide))
        (tmp_path / "narrow.json").write_text(json.dumps(narrow))
        comparison = plan_of(tmp_path / "wide.json", "--compare", tmp_path / "narrow.json")
        assert sum(row["saved"] for row in comparison["changes"]) == narrow["saved"] - wide["saved"] < 0
        lost = {row["buffer"] for row in comparison["changes"] if row["to"] == "device memory"}
        assert lost == {b["buffer"] for b in wide["buffers"] if b["place"] == "lx"} & {
            b["buffer"] for b in narrow["buffers"] if b["place"] == "hbm"
        }
        text = spyre_plan(tmp_path / "wide.json", "--compare", tmp_path / "narrow.json").stdout
        assert f"saved   {wide['saved']} -> {narrow['saved']} B" in text

    def test_json_that_is_no_plan_is_refused(self, tmp_path):
        (tmp_path / "old.json").write_text('{"graph": "x"}')
        assert "old.json: cores is missing" in spyre_plan(SOFTMAX, "--compare", tmp_path / "old.json", code=2).stderr


@pytest.fixture(scope="module")
def browser():
    driver = tests.browser.start()
    yield driver
    driver.quit()


class TestPage:
    def open(self, browser, tmp_path, *args) -> dict:
        spyre_plan(*args, "--html", tmp_path / "plan.html")
        browser.get((tmp_path / "plan.html").as_uri())
        assert browser.get_log("browser") == []
        return plan_of(*args)

    def said(self, browser) -> dict[str, str]:
        assert "shown" in browser.find_element(By.ID, "tip").get_attribute("class")
        return {
            e.get_attribute("data-fact"): e.text for e in browser.find_elements(By.CSS_SELECTOR, "#tip [data-fact]")
        }

    def test_hovering_a_buffer_tells_what_the_plan_says(self, browser, tmp_path):
        plan = self.open(browser, tmp_path, LAYER)
        ops = {node["name"]: node["op"] for node in plan["nodes"]}
        chosen = max((b for b in plan["buffers"] if b["place"] == "lx"), key=lambda b: b["saves"])
        drawn = browser.find_element(By.CSS_SELECTOR, f'#map [data-buffer="{chosen["buffer"]}"] .body')
        ActionChains(browser).move_to_element(drawn).perform()
        first, last = chosen["first"], chosen["last"]
        end = chosen["address"] + chosen["bytes_per_core"] - 1
        expected = {
            "title": chosen["buffer"],
            "place": "LX",
            "address": f"{chosen['address']:,} \u2013 {end:,}",
            "bytes_per_core": f"{chosen['bytes_per_core']:,} B",
            "first": f"node {first} ({plan['nodes'][first]['op']})",
            "last": f"node {last} ({plan['nodes'][last]['op']})",
            "saves": f"{chosen['saves']:,} B",
            "moves": f"{chosen['moves']:,} B",
            "made_by": ", ".join(f"{n} ({ops[n]})" for n in chosen["made_by"]),
            "read_by": ", ".join(f"{n} ({ops[n]})" for n in chosen["read_by"]),
            "remark": chosen["remark"],
        }
        assert self.said(browser) == {fact: text for fact, text in expected.items() if text}
        # Kept for the docs: SPYRE_SCREENSHOT=docs/images/lx-map.png
        browser.save_screenshot(os.environ.get("SPYRE_SCREENSHOT", str(tmp_path / "lx-map.png")))

    def test_every_placed_buffer_has_a_rectangle_and_no_two_of_them_collide(self, browser, tmp_path):
        plan = self.open(browser, tmp_path, LAYER)
        drawn = {e.get_attribute("data-buffer") for e in browser.find_elements(By.CSS_SELECTOR, "#map [data-buffer]")}
        placed = [b for b in plan["buffers"] if b["place"] == "lx"]
        assert drawn == {b["buffer"] for b in placed}
        for i, a in enumerate(placed):
            for b in placed[:i]:
                together = a["live"][0] < b["live"][1] and b["live"][0] < a["live"][1]
                apart = (
                    a["address"] >= b["address"] + b["bytes_per_core"]
                    or b["address"] >= a["address"] + a["bytes_per_core"]
                )
                assert not together or apart or b["buffer"] == a["in_place_of"] or a["buffer"] == b["in_place_of"]

    def test_the_table_lists_every_buffer_and_its_reason(self, browser, tmp_path):
        plan = self.open(browser, tmp_path, SOFTMAX)
        rows = browser.find_elements(By.CSS_SELECTOR, "#buffers tbody tr")
        assert len(rows) == len(plan["buffers"])
        for row, buffer in zip(rows, plan["buffers"], strict=True):
            cells = [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
            assert cells[0] == buffer["buffer"] and cells[-1] == buffer["remark"]
            assert cells[1] == ("LX" if buffer["place"] == "lx" else "device memory")

    def test_the_filter_leaves_what_is_off_chip(self, browser, tmp_path):
        plan = self.open(browser, tmp_path, SOFTMAX)
        browser.find_elements(By.CSS_SELECTOR, "#filters button")[2].click()
        shown = [r for r in browser.find_elements(By.CSS_SELECTOR, "#buffers tbody tr") if r.is_displayed()]
        assert [r.get_attribute("data-buffer") for r in shown] == [
            b["buffer"] for b in plan["buffers"] if b["place"] == "hbm"
        ]
