"""Compiled graphs are found again, and never for another layout, setting or compiler."""

import os

import pytest
import torch
from torch._dynamo.utils import counters
from torch_spyre._inductor import config

H = torch.float16


@pytest.fixture
def run(compiled, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))

    def once(x):
        torch._dynamo.reset()
        counters.clear()
        torch.compile(lambda x: x * 2 + 1)(x)
        return counters["inductor"]["fxgraph_cache_hit"]

    return once


def test_the_second_compilation_finds_the_first(run):
    x = torch.ones(4, 64, dtype=H, device="spyre")
    assert run(x) == 0
    assert run(x) == 1


def test_another_layout_is_another_graph(run):
    restickified = torch_layout([64, 128])
    x = torch.ones(64, 128, dtype=H)
    assert run(x.to("spyre")) == 0
    assert run(x.to("spyre", device_layout=restickified)) == 0


def torch_layout(size):
    from torch_spyre._C import SpyreTensorLayout

    return SpyreTensorLayout(size, [size[1], 1], H, [1, 0])


def test_another_offset_is_another_graph(run):
    x = torch.ones(8, 64, dtype=H, device="spyre")
    assert run(x[0:4]) == 0
    assert run(x[4:8]) == 0


def test_a_setting_that_changes_code_changes_the_key(run):
    x = torch.ones(4, 64, dtype=H, device="spyre")
    assert run(x) == 0
    with config.patch(lx_planning=False):
        assert run(x) == 0
    assert run(x) == 1


def test_the_graph_text_is_left_where_a_person_can_look(run, tmp_path):
    run(torch.ones(4, 64, dtype=H, device="spyre"))
    (kernel,) = os.listdir(tmp_path / "inductor-spyre")
    text = (tmp_path / "inductor-spyre" / kernel / "graph.ir").read_text()
    assert text.startswith("graph ") and kernel.split("_", 1)[1].startswith("sdsc_fused")


def test_settings_have_upstreams_names_and_our_defaults():
    assert config.sencores == 32 and config.lx_planning and config.layout_solver == "portfolio"
    assert config.co_optimizing_lx_planning and config.dxp_lx_frac_avail == 0.2
