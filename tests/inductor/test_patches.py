"""Private places of Dynamo and Inductor that torch_spyre changes or leans on: these fail when one moves under us."""

import contextlib
import inspect
import re
import subprocess
import sys

import torch
import torch._inductor.compile_fx as compile_fx_module
from torch._inductor import codecache, config, graph, ir, ops_handler, scheduler
from torch._inductor.fx_passes import joint_graph


def test_importing_torch_imports_neither_dynamo_nor_inductor():
    code = "import torch, sys; print([m for m in ('torch._dynamo', 'torch._inductor.compile_fx') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_every_route_into_inductor_goes_through_compile_fx():
    assert "compile_fx(" in inspect.getsource(torch._TorchCompileInductorWrapper.__call__)
    names = list(inspect.signature(compile_fx_module.compile_fx).parameters)
    assert names[:3] == ["model_", "example_inputs_", "inner_compile"] and "decompositions" in names
    assert compile_fx_module.compile_fx.__wrapped__ is not None


def test_the_inner_compile_takes_a_function_for_decompositions():
    assert "get_decomp_fn=get_decomp_fn" in inspect.getsource(compile_fx_module._compile_fx_main)


def test_settings_of_a_compilation_exist():
    from torch_spyre._inductor import patches

    for name in patches._inductor_settings():
        assert hasattr(config, name), name


def test_loops_are_realized_by_asking_has_large_inner_fn():
    assert "has_large_inner_fn(" in inspect.getsource(graph.GraphLowering.run_node)
    assert list(inspect.signature(ir.Loops.has_large_inner_fn).parameters) == ["self", "threshold"]


def test_a_forced_fallback_is_asked_for_each_node():
    assert "fallback_node_due_to_unsupported_type(n)" in inspect.getsource(graph.GraphLowering.run_node)


def test_statistics_of_norms_have_the_type_of_the_input():
    from torch._subclasses import FakeTensorMode
    from torch_spyre._patches import sixteen_bits_stay

    for context in (contextlib.nullcontext(), sixteen_bits_stay()):
        with context, FakeTensorMode():
            x = torch.empty(4, 64, dtype=torch.float16, device="spyre")
            assert {t.dtype for t in torch.native_layer_norm(x, [64], None, None, 1e-5)} == {torch.float16}
            assert {t.dtype for t in torch.ops.aten._fused_rms_norm(x, [64], None, None)} == {torch.float16}


def test_joint_patterns_are_a_list_that_can_be_emptied():
    assert isinstance(joint_graph.pass_patterns, list)
    assert "enumerate(pass_patterns)" in inspect.getsource(joint_graph.joint_graph_passes)


def test_cache_keys_are_made_of_hash_details():
    assert "FxGraphHashDetails(" in inspect.getsource(codecache.compiled_fx_graph_hash)


def test_handlers_call_default_for_names():
    from torch_spyre._inductor.device_ops import DEVICE_OPERATIONS

    assert callable(ops_handler.DefaultHandler._call_default)
    for name in DEVICE_OPERATIONS:
        assert name in vars(ops_handler.DefaultHandler) or hasattr(ops_handler.OpsHandler, name)


def test_bundling_runs_after_fusion():
    assert "config._post_fusion_custom_pass(self.nodes)" in inspect.getsource(scheduler.Scheduler._init)


def test_tensor_guards_are_built_by_tensor_match():
    from torch._dynamo.guards import GUARD_VALUE_DISPATCH, GuardBuilder

    assert GuardBuilder.TENSOR_MATCH.__wrapped__ is not None
    assert list(inspect.signature(GuardBuilder.TENSOR_MATCH.__wrapped__).parameters) == ["self", "guard", "value"]
    assert GUARD_VALUE_DISPATCH is not None


def test_compiling_leaves_inductor_as_it_was(compiled):
    from torch._inductor.lowering import lowerings

    before = dict(lowerings), config.save_config_portable(), dict(torch._prims_common._computation_dtype_map)
    torch.compile(lambda x: x + 1)(torch.ones(4, 64, dtype=torch.float16, device="spyre"))
    assert before == (dict(lowerings), config.save_config_portable(), torch._prims_common._computation_dtype_map)


def test_pointwise_operators_ask_is_gpu_where_to_run():
    from torch._inductor import lowering

    assert "is_gpu(" in inspect.getsource(lowering.make_pointwise)


def test_floats_become_tensors_by_a_table_of_operators():
    from torch.fx.passes import _tensorify_python_scalars as tensorify

    assert tensorify.SUPPORTED_OPS[torch.ops.aten.gt.Scalar] is torch.ops.aten.gt.Tensor


def test_a_frame_is_compiled_by_compile_which_knows_where_it_is():
    from torch._dynamo import convert_frame
    from torch._dynamo.guards import CheckFunctionManager

    assert "result = _compile(" in inspect.getsource(convert_frame.ConvertFrameAssert.__call__)
    names = list(inspect.signature(inspect.unwrap(convert_frame._compile)).parameters)
    assert names[:4] == ["code", "globals", "locals", "builtins"]
    assert {"closure", "compiler_fn", "one_graph", "export", "hooks", "compile_id", "package"} <= {*names}
    written = CheckFunctionManager.serialize_guards.__wrapped__
    assert list(inspect.signature(written).parameters) == ["self", "builder", "sorted_guards", "output_graph"]
    assert "self.serialize_guards(" in inspect.getsource(CheckFunctionManager.__init__)


def test_a_recorder_is_given_what_dynamo_puts_into_a_package():
    from torch._dynamo import convert_frame, output_graph, symbolic_convert
    from torch_spyre._inductor import traces

    modules = inspect.getsource(convert_frame), inspect.getsource(output_graph), inspect.getsource(symbolic_convert)
    used = {name for text in modules for name in re.findall(r"\bpackage\.(\w+)\(", text)}
    used -= {"rpartition", "rsplit"}  # of a text
    assert used <= {name for name in dir(traces._Recorder) if not name.startswith("_")}, used
    assert "if not self.package:" in inspect.getsource(output_graph.OutputGraph.bypass_package)


def test_graphs_of_the_cache_are_bundled_and_go_through_two_functions():
    from torch._functorch._aot_autograd import autograd_cache

    cache = autograd_cache.AOTAutogradCache
    assert "AOTAutogradCache._write_to_local_cache(key, content)" in inspect.getsource(cache.save)
    assert "AOTAutogradCache._lookup(" in inspect.getsource(cache)
    assert "return (entry, pickled_content)" in inspect.getsource(cache._lookup)
    assert "bundled_autograd_cache" in inspect.getsource(autograd_cache.should_bundle_autograd_cache)


def test_every_traced_node_comes_from_create_proxy():
    from torch._dynamo.output_graph import SubgraphTracer

    assert "self._create_proxy(" in inspect.getsource(inspect.unwrap(SubgraphTracer.create_proxy))
    assert 'rv.node.meta["nn_module_stack"]' in inspect.getsource(SubgraphTracer._create_proxy)
