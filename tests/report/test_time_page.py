"""Reports of time: the facts of a run of a bundle, their text, their comparison, and the page as people meet it."""

import json
import math
import os
import subprocess
from pathlib import Path

import jsonschema
import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import tests.browser

ROOT = Path(__file__).resolve().parents[2]
LAYER = ROOT / "tests/corpus/layers/granite_layer.ir"
SOFTMAX = ROOT / "tests/corpus/graphs/softmax_columns.ir"


def find_tool(name: str) -> Path:
    """In the folder of SPYRE_TOOLS, else the newest under build/*/tools."""
    if "SPYRE_TOOLS" in os.environ:
        return Path(os.environ["SPYRE_TOOLS"]) / name
    return max((ROOT / "build").glob(f"*/tools/{name}"), key=lambda p: p.stat().st_mtime, default=Path(name))


def tool(name: str, *args, code: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([find_tool(name), *map(str, args)], capture_output=True, text=True, timeout=240)
    assert done.returncode == code, f"{name} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


class Recorded:
    """What spyre-run leaves of one bundle."""

    def __init__(self, folder: Path, graph: Path, *options, **environment):
        self.bundle, self.facts_file = folder / "bundle", folder / "facts.json"
        self.page, self.trace = folder / "page.html", folder / "trace.json"
        subprocess.run([find_tool("spyre-compile"), graph, "-o", self.bundle], check=True, capture_output=True)
        self.run = json.loads(
            tool("spyre-run", self.bundle, "--json", "--facts", self.facts_file, "--report", self.page, *options).stdout
        )
        self.facts = json.loads(self.facts_file.read_text())


@pytest.fixture(scope="module")
def layer(tmp_path_factory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("layer"), LAYER)


@pytest.fixture(scope="module")
def softmax(tmp_path_factory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("softmax"), SOFTMAX)


class TestFacts:
    def test_they_follow_their_schema(self, layer, softmax):
        schema = json.loads((ROOT / "docs/spec/schema/time_facts.schema.json").read_text())
        for recorded in (layer, softmax):
            jsonschema.validate(recorded.facts, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**layer.facts, "totals": {}}, schema)

    def test_they_are_those_of_the_run(self, layer):
        run, totals = layer.run, layer.facts["totals"]
        assert totals["kernel_us"] == pytest.approx(run["time"]["kernel_us"])
        assert totals["launch_us"] == pytest.approx(run["time"]["launch_us"])
        assert (totals["read_bytes"], totals["written_bytes"]) == (run["time"]["read"], run["time"]["written"])
        assert totals["ring_bytes"] == run["total"]["ring_bytes"]
        assert (totals["macs"], totals["elements"]) == (run["total"]["macs"], run["total"]["vector_elements"])
        assert [i["file"] for i in layer.facts["items"]] == [op["file"] for op in run["ops"]]
        assert [i["count"] for i in layer.facts["items"]] == [op["executes"] for op in run["ops"]]

    def test_compulsory_bytes_are_the_arguments_once(self, layer):
        spec = json.loads((layer.bundle / "spyreCodeDir/launch_spec.json").read_text())
        least = 0
        for argument in spec["args"]:
            if argument["role"] == "constant":
                continue
            assert argument["layout"]["device_dtype"] == "SEN169_FP16"
            least += math.prod(argument["layout"]["device_size"]) * 2 * (1 + (argument["role"] == "input_output"))
        # Constants are read, too, and are small.
        assert least <= layer.facts["totals"]["compulsory_bytes"] <= 1.02 * least

    def test_values_in_lx_do_not_collide_on_a_core(self, layer):
        lives = [life for life in layer.facts["lx"] if life["cores"] == 32]
        assert lives
        for i, a in enumerate(lives):
            for b in lives[:i]:
                together = a["begin_ns"] < b["end_ns"] and b["begin_ns"] < a["end_ns"]
                apart = a["address"] >= b["address"] + b["bytes"] or b["address"] >= a["address"] + a["bytes"]
                # A result may take over the slot of an operand within one operation.
                handover = together and (
                    min(a["end_ns"], b["end_ns"]) - max(a["begin_ns"], b["begin_ns"])
                    <= max(i["us"] for i in layer.facts["items"]) * 1000 + 1
                )
                assert not together or apart or handover

    def test_what_is_no_report_is_refused(self, tmp_path):
        (tmp_path / "old.json").write_text('{"facts": "spyre-time"}')
        assert "old.json: version is missing" in tool("spyre-report", tmp_path / "old.json", code=2).stderr
        (tmp_path / "no.json").write_text("{")
        assert "not valid JSON" in tool("spyre-report", tmp_path / "no.json", code=2).stderr

    def test_text_has_the_answer_first(self, layer):
        lines = tool("spyre-report", layer.facts_file).stdout.splitlines()
        total = layer.facts["totals"]["total_us"]
        assert lines[0].startswith(f"{layer.facts['name']}: {total:.2f} us on")
        assert lines[0].endswith(f"bound by {layer.facts['bound']['by']}")

    def test_a_report_costs_nothing_that_is_not_asked_for(self, softmax):
        assert "time" not in json.loads(tool("spyre-run", softmax.bundle, "--json").stdout)


class TestCompare:
    def test_a_report_equals_itself(self, layer):
        comparison = json.loads(tool("spyre-report", layer.facts_file, "--compare", layer.facts_file, "--json").stdout)
        assert comparison["changes"] == []

    def test_machines(self, layer, tmp_path):
        machine = ROOT / "examples/machines/twice_the_memory.json"
        fast = tmp_path / "fast.json"
        tool("spyre-run", layer.bundle, "--machine", machine, "--facts", fast)
        comparison = json.loads(tool("spyre-report", layer.facts_file, "--compare", fast, "--json").stdout)
        faster = json.loads(fast.read_text())
        assert comparison["totals"]["kernel_us"]["to"] == faster["totals"]["kernel_us"]
        assert comparison["totals"]["kernel_us"]["to"] < comparison["totals"]["kernel_us"]["from"]
        sum_of = sum(change["us"] for change in comparison["changes"])
        assert sum_of == pytest.approx(faster["totals"]["kernel_us"] - layer.facts["totals"]["kernel_us"])
        differences = [abs(change["us"]) for change in comparison["changes"]]
        assert differences == sorted(differences, reverse=True)


@pytest.fixture(scope="module")
def browser():
    driver = tests.browser.start()
    yield driver
    driver.quit()


def text_of_time(us: float) -> str:
    if us >= 1000:
        return f"{us / 1000:.2f} ms"
    return f"{us:.2f} \u00b5s" if us < 10 else f"{us:.1f} \u00b5s"


class TestPage:
    @pytest.fixture(autouse=True)
    def no_messages(self, browser):
        tests.browser.look(browser)
        yield
        assert browser.get_log("browser") == []

    def open(self, browser, page: Path):
        browser.get(page.as_uri())

    def text(self, browser, selector: str) -> str:
        return browser.find_element(By.CSS_SELECTOR, selector).text

    def test_the_answer_is_on_the_first_screen(self, browser, layer):
        tests.browser.look(browser, width=1280, height=800)
        self.open(browser, layer.page)
        facts, total = layer.facts, layer.facts["totals"]["total_us"]
        assert self.text(browser, '[data-fact="total"]') == text_of_time(total)
        assert self.text(browser, '[data-fact="bound"]') == facts["bound"]["by"]
        longest = sorted(range(len(facts["items"])), key=lambda i: -facts["items"][i]["us"])[:3]
        cards = browser.find_elements(By.CSS_SELECTOR, "#first button")
        assert [int(card.get_attribute("data-item")) for card in cards] == longest
        for card, i in zip(cards, longest, strict=True):
            assert facts["items"][i]["name"] in card.text and text_of_time(facts["items"][i]["us"]) in card.text
            assert card.rect["y"] + card.rect["height"] <= 800

    def test_bounds_and_steps_show_the_facts(self, browser, layer):
        self.open(browser, layer.page)
        total = layer.facts["totals"]["total_us"]
        shares = layer.facts["bound"]["us"]
        drawn = {e.get_attribute("data-bound"): e for e in browser.find_elements(By.CSS_SELECTOR, "#bounds i")}
        assert drawn.keys() == {name for name, us in shares.items() if us > 0}
        width = browser.find_element(By.ID, "bounds").rect["width"]
        for name, element in drawn.items():
            assert element.rect["width"] == pytest.approx((width - 2) * shares[name] / total, abs=1.5)
        steps = [
            (e.get_attribute("data-step"), e.find_element(By.CSS_SELECTOR, ".value").text)
            for e in browser.find_elements(By.CSS_SELECTOR, "#waterfall .step")
        ]
        expected = [(s["step"], text_of_time(s["us"])) for s in layer.facts["waterfall"] if s["us"] >= 1e-6]
        assert steps == [*expected, ("total", text_of_time(total))]

    def test_the_table_lists_every_operation(self, browser, layer):
        self.open(browser, layer.page)
        rows = browser.find_elements(By.CSS_SELECTOR, "#items tbody tr")
        items = layer.facts["items"]
        order = sorted(range(len(items)), key=lambda i: (-items[i]["us"], i))
        assert [int(row.get_attribute("data-item")) for row in rows] == order
        for row, i in zip(rows[:10], order, strict=False):
            cells = [cell.text for cell in row.find_elements(By.TAG_NAME, "td")]
            assert cells[0].splitlines() == [items[i]["name"], items[i]["file"]]
            assert cells[3] == text_of_time(items[i]["us"])
            assert cells[9].startswith(items[i]["help"])

    def test_every_computing_operation_is_a_point_of_the_roofline(self, browser, layer):
        self.open(browser, layer.page)
        points = browser.find_elements(By.CSS_SELECTOR, "#roofline .point")
        computing = {i for i, item in enumerate(layer.facts["items"]) if item["macs"] + item["elements"] and item["us"]}
        assert {int(p.get_attribute("data-item")) for p in points} == computing
        # None is above the lines.
        over = browser.execute_script(
            """const m = shown.facts.machine, wrong = [];
            for (const item of shown.facts.items) {
              const ops = operations(item), speed = ops / ownTime(item) / 1000;
              const sloped = moved(item) ? ops / moved(item) * m.memory_gb_per_s : Infinity;
              const roof = Math.min(Math.max(m.macs_per_ns, m.elements_per_ns), sloped);
              if (ops && speed > roof * 1.0001) wrong.push([item.file, speed, roof]);
            }
            return wrong;"""
        )
        assert over == []

    def test_by_keyboard(self, browser, layer):
        self.open(browser, layer.page)
        keys = lambda *what: ActionChains(browser).send_keys(*what).perform()  # noqa: E731
        span = lambda: browser.execute_script("return [shown.span.from, shown.span.to]")  # noqa: E731
        whole = span()
        name = max(layer.facts["items"], key=lambda item: item["us"])["file"]
        keys("/")
        keys(name)
        assert self.text(browser, "#found").startswith("1 of ")
        assert len(browser.find_elements(By.CSS_SELECTOR, "#items tbody tr")) == 1
        keys(Keys.ENTER)
        assert name in self.text(browser, "#selected")
        keys(Keys.ESCAPE)
        assert len(browser.find_elements(By.CSS_SELECTOR, "#items tbody tr")) == len(layer.facts["items"])
        assert browser.switch_to.active_element.get_attribute("id") == "timeline"
        keys("0")
        keys("++")
        near = span()
        assert near[1] - near[0] == pytest.approx((whole[1] - whole[0]) * 0.36)
        keys(Keys.ARROW_RIGHT)
        assert span()[0] > near[0]
        keys("0")
        assert span() == whole
        before = self.text(browser, "#selected")
        keys("]")
        assert self.text(browser, "#selected") != before

    def test_pointing_at_a_slice_tells_what_it_is(self, browser, layer):
        self.open(browser, layer.page)
        longest = max(range(len(layer.facts["items"])), key=lambda i: layer.facts["items"][i]["us"])
        place = browser.execute_script(
            """const rows = shown.rows, canvas = rows.canvas, row = rows.rows.findIndex(r => r.name === 'operations');
            const i = [...rows.rows[row].item].indexOf(arguments[0]), {begin, end} = rows.sliceOf({row, i});
            const left = gutter(canvas), wide = canvas.clientWidth - left - 14, middle = (begin + end) / 2;
            return [left + middle / shown.span.total * wide, rows.top + 24 + 11];""",
            longest,
        )
        canvas = browser.find_element(By.ID, "timeline")
        browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
        box = canvas.rect
        ActionChains(browser).move_to_element_with_offset(
            canvas, place[0] - box["width"] / 2, place[1] - box["height"] / 2
        ).perform()
        assert self.text(browser, '#tip [data-fact="title"]') == layer.facts["items"][longest]["name"]
        assert self.text(browser, '#tip [data-fact="file"]') == layer.facts["items"][longest]["file"]

    def test_ten_thousand_slices_scroll_smoothly(self, browser, layer, tmp_path):
        """Frames are drawn within a fraction of a screen's 16.7 ms, so what else the machine does cannot show."""
        facts = json.loads(json.dumps(layer.facts))
        total = round(facts["totals"]["total_us"] * 1000)
        for row in facts["rows"]:
            if row["name"].startswith("core "):
                step = total // 400
                row["slices"] = [
                    v for i in range(400) for v in (i % 5, i % len(facts["items"]), i * step, step - (i % 3))
                ]
        assert sum(len(row["slices"]) // 4 for row in facts["rows"]) > 12_000
        (tmp_path / "many.json").write_text(json.dumps(facts))
        tool("spyre-report", tmp_path / "many.json", "--html", tmp_path / "many.html")
        self.open(browser, tmp_path / "many.html")
        browser.set_script_timeout(60)
        drawn, between = browser.execute_async_script(
            """const done = arguments[0], drawn = [], between = [];
            let last = 0;
            shown.span.zoom(0.3);
            const frame = now => {
              if (last) between.push(now - last);
              last = now;
              const begin = performance.now();
              shown.span.move(drawn.length % 40 < 20 ? 0.04 : -0.04);
              for (const draw of shown.span.changed) draw();
              drawn.push(performance.now() - begin);
              if (drawn.length < 80) requestAnimationFrame(frame); else done([drawn, between]);
            };
            requestAnimationFrame(frame);"""
        )
        median = sorted(drawn)[len(drawn) // 2]
        print(f"drawing {median:.1f} ms, between frames {sorted(between)[len(between) // 2]:.1f} ms (medians)")
        assert median < 12, drawn

    def test_dark_narrow_and_print(self, browser, layer, tmp_path):
        tests.browser.look(browser, dark=True)
        self.open(browser, layer.page)
        dark = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        tests.browser.look(browser, width=390, height=900)
        self.open(browser, layer.page)
        assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") != dark
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        pdf = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
        assert len(pdf) > 20_000

    def test_colours_are_those_of_the_plan(self, browser, layer):
        self.open(browser, layer.page)
        shown = browser.execute_script("return [palette['--lx'], palette['--hbm']]")
        subprocess.run([find_tool("spyre-plan"), SOFTMAX, "--html", layer.page.parent / "plan.html"], check=True)
        self.open(browser, layer.page.parent / "plan.html")
        style = "const s = getComputedStyle(document.documentElement); return s.getPropertyValue(arguments[0]).trim()"
        assert shown == [browser.execute_script(style, "--lx"), browser.execute_script(style, "--hbm")]

    def test_two_reports_beside_each_other(self, browser, layer, tmp_path):
        tool(
            "spyre-run",
            layer.bundle,
            "--machine",
            ROOT / "examples/machines/twice_the_memory.json",
            "--facts",
            tmp_path / "fast.json",
        )
        arguments = [layer.facts_file, "--compare", tmp_path / "fast.json"]
        tool("spyre-report", *arguments, "--html", tmp_path / "both.html")
        comparison = json.loads(tool("spyre-report", *arguments, "--json").stdout)
        self.open(browser, tmp_path / "both.html")
        rows = browser.find_elements(By.CSS_SELECTOR, "#changes tbody tr")
        assert [r.get_attribute("data-change") for r in rows] == [c["name"] for c in comparison["changes"][:200]]
        totals = comparison["totals"]["total_us"]
        expected = f"{text_of_time(totals['from'])} \u2192 {text_of_time(totals['to'])}"
        assert self.text(browser, '[data-fact="total"]') == expected

    def test_a_picture_for_the_docs(self, browser, layer, tmp_path):
        tests.browser.look(browser, width=1280, height=1180)
        self.open(browser, layer.page)
        # Kept for the docs: SPYRE_SCREENSHOT=docs/images/time-report.png
        assert browser.save_screenshot(os.environ.get("SPYRE_SCREENSHOT", str(tmp_path / "time-report.png")))
