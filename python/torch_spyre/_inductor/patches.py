"""Every change made to private parts of Dynamo and Inductor, with the reason for each.

``tests/inductor/test_patches.py`` fails when one of the places below changes under us. What can be limited to a
compilation for the card is limited to it (``enable_spyre_context``); the rest asks for the device before it acts.
"""

import contextlib
import copy
import functools
import logging
import operator
import threading

import torch

from torch_spyre import profiler
from torch_spyre._inductor import replaced
from torch_spyre._inductor.errors import NeedsFixedSizes

log = logging.getLogger(__name__)
_state = threading.local()


# --- installed once, with Dynamo and Inductor ------------------------------------------------------------------------


def _is_ours(function) -> bool:
    """Whether it was replaced already: an installation that Ctrl-C ended is run again."""
    return getattr(getattr(function, "__code__", None), "co_filename", None) == __file__


def _is_fitted(output_graph, guard, tensor: torch.Tensor) -> bool:
    """Whether a tensor has a size that is another one next time and memory for the one of today only, and so another
    layout then: kernels copy such tensors into memory with room."""
    from torch_spyre._inductor.extents import room_along

    sizes = output_graph.input_source_to_sizes_strides.get(guard.originating_source, {}).get("size", ())
    for dim, size in enumerate(sizes):
        if isinstance(size, torch.SymInt) and size.node.shape_env.simplify(size.node.expr).free_symbols:
            if room_along(tensor, dim) is None:
                return True
    return False


def guard_device_layouts() -> None:
    """Dynamo's tensor guards know neither device layouts nor storage offsets; compiled kernels depend on both."""
    from torch._dynamo.guards import GUARD_VALUE_DISPATCH, GuardBuilder, get_verbose_code_parts

    original = GuardBuilder.TENSOR_MATCH
    if _is_ours(original):
        return

    @functools.wraps(original)
    def TENSOR_MATCH(self, guard, value=None, lies=None):
        original(self, guard, value)
        tensor = value() if isinstance(value, torch._dynamo.guards.TensorWeakRef) else value
        tensor = self.get(guard) if tensor is None else tensor
        if not isinstance(tensor, torch.Tensor) or tensor.device.type != "spyre":
            return
        if lies is None:
            if isinstance(tensor, torch._subclasses.FakeTensor) or self.check_fn_manager.output_graph.export:
                return
            anyhow = _is_fitted(self.check_fn_manager.output_graph, guard, tensor)
            lies = tensor.device_tensor_layout(), tensor.storage_offset(), anyhow
            if self.save_guards:  # where the guard is built again, the tensor is a fake, which lies nowhere
                guard.create_fn = functools.partial(guard.create_fn, lies=lies)
        layout, offset, anyhow = lies

        def lies_as_compiled(x):
            return x.storage_offset() == offset and (anyhow or x.device_tensor_layout() == layout)

        code = f"{self.arg_ref(guard)} lies on the card as {layout} from element {offset}"
        self.get_guard_manager(guard).add_lambda_guard(
            lies_as_compiled, get_verbose_code_parts(code, guard), guard.user_stack
        )

    if "TENSOR_MATCH" in GUARD_VALUE_DISPATCH:
        TENSOR_MATCH.guard_check_spec = GUARD_VALUE_DISPATCH["TENSOR_MATCH"]
    GuardBuilder.TENSOR_MATCH = TENSOR_MATCH


def _key_holds_device_layouts() -> None:
    """The cache of compiled graphs is keyed by fake inputs, which have no device layout, and without hints."""
    from torch._inductor.codecache import FxGraphHashDetails

    original = FxGraphHashDetails.__init__
    if _is_ours(original):
        return

    @functools.wraps(original)
    def __init__(self, gm, example_inputs, *args, **kwargs):
        original(self, gm, example_inputs, *args, **kwargs)
        if not uses_spyre(gm, example_inputs):
            return
        from torch_spyre._inductor import hints, kernels, real_inputs, registered

        self.spyre_hints = hints.for_key(gm)
        self.spyre_registered = registered.for_key()
        self.spyre_inputs = real_inputs.layouts_for_key()
        self.spyre_compiler = kernels.compiler_id()

    FxGraphHashDetails.__init__ = __init__


def _realize_every_device_loop() -> None:
    """One operator is one buffer: the compiler fuses by its own rules, and inlined producers hide operators from it."""
    from torch._inductor.ir import Loops

    original = Loops.has_large_inner_fn
    if _is_ours(original):
        return

    @functools.wraps(original)
    def has_large_inner_fn(self, threshold=None):
        return self.device.type == "spyre" or original(self, threshold)

    Loops.has_large_inner_fn = has_large_inner_fn


def _name_device_operations() -> None:
    """Inductor's ops handlers know its own names only; ours must pass through them like any other."""
    from torch_spyre._inductor.device_ops import DEVICE_OPERATIONS

    for name in DEVICE_OPERATIONS:
        name_device_operation(name)


def name_device_operation(name: str) -> None:
    from torch._inductor.ops_handler import DefaultHandler

    if not hasattr(DefaultHandler, name):
        setattr(DefaultHandler, name, DefaultHandler._call_default(name))


def _statistics_have_the_type_of_the_input() -> None:
    """Norms that are kept whole: PyTorch's rule asks whether decompositions compute in 16 bits, which changes in the
    middle of a compilation, and on accelerators for float32. The card's rule is the CPU's."""
    import torch._refs  # noqa: F401 - registers the rules
    from torch._decomp import decompositions, meta_table
    from torch._subclasses.fake_impls import op_implementations_dict as rules

    aten = torch.ops.aten

    def by(decomposition):
        return lambda mode, operator, *args, **kwargs: decomposition(*args, **kwargs)

    def of(original):
        @functools.wraps(original)
        def rule(mode, operator, x, *args, **kwargs):
            out, *statistics = original(mode, operator, x, *args, **kwargs)
            if x.device.type == "spyre":  # behind them are running ones, of types of their own
                statistics[:2] = [s.to(x.dtype) for s in statistics[:2]]
            return out, *statistics

        return rule

    norms = {
        aten.native_layer_norm.default: None,
        aten._fused_rms_norm.default: by(decompositions._fused_rms_norm),
        aten._native_batch_norm_legit.no_stats: by(decompositions._native_batch_norm_legit_no_stats),
        aten._native_batch_norm_legit_functional.default: by(decompositions._native_batch_norm_legit_functional),
    }
    for norm, otherwise in norms.items():
        original = rules.get(norm, otherwise)
        if original is otherwise or not _is_ours(original):
            rules[norm] = of(original)
        meta_table.setdefault(norm, rules[norm])  # or a decomposition would go before the rule


def _compile_for_the_card() -> None:
    """``compile_fx`` is where every route into Inductor comes together, before autograd and after Dynamo."""
    from torch._inductor import compile_fx as module

    original = module.compile_fx
    if _is_ours(original):
        return

    @functools.wraps(original)
    def compile_fx(model_, example_inputs_, inner_compile=module.compile_fx_inner, *args, **kwargs):
        if not uses_spyre(model_, example_inputs_):
            return original(model_, example_inputs_, inner_compile, *args, **kwargs)
        from torch_spyre._inductor import decompositions, progress, required, traces

        progress.now("AOTAutograd")
        traces.note_graph(model_)
        required.refuse_compilation(model_, example_inputs_)
        _check_products_in_place(model_)
        refusals.pop(_compilation(), None)
        with enable_spyre_context(example_inputs_):
            kwargs.setdefault("decompositions", decompositions.table())
            inner = functools.partial(compile_inner, then=inner_compile)
            compiled = original(model_, example_inputs_, inner, *args, **kwargs)
        progress.now("tracing", "guards")
        return compiled

    module.compile_fx = compile_fx


_PRODUCTS_IN_PLACE = {"mul_", "__imul__", operator.imul, torch.ops.aten.mul_.Tensor, torch.ops.aten.mul_.Scalar}


def _check_products_in_place(model) -> None:
    """PyTorch's description of ``mul_`` forgets that a result that cannot be cast back is an error; all others ask."""
    if not isinstance(model, torch.fx.GraphModule):
        return

    def value(argument):
        return argument.meta.get("example_value") if isinstance(argument, torch.fx.Node) else argument

    for node in model.graph.nodes:
        if node.target not in _PRODUCTS_IN_PLACE or len(node.args) != 2:
            continue
        target, factor = (value(argument) for argument in node.args)
        if not isinstance(target, torch.Tensor) or not isinstance(factor, (torch.Tensor, bool, int, float)):
            continue
        result = torch.result_type(target, factor)
        if not torch.can_cast(result, target.dtype):
            raise RuntimeError(f"result type {result} can't be cast to the desired output type {target.dtype}")


def install() -> None:
    _realize_every_device_loop()
    _name_device_operations()
    _key_holds_device_layouts()
    _statistics_have_the_type_of_the_input()
    _compile_for_the_card()


# --- one compilation -------------------------------------------------------------------------------------------------


def _is_spyre(value) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "spyre"


def uses_spyre(model, example_inputs) -> bool:
    """Whether a graph touches the card: by its inputs, its values, or a ``device=`` it names."""
    if any(_is_spyre(x) for x in torch.utils._pytree.tree_leaves(list(example_inputs))):
        return True
    if not isinstance(model, torch.fx.GraphModule):
        return False
    for node in model.graph.nodes:
        device = node.kwargs.get("device")
        if device is not None and torch.device(device).type == "spyre":
            return True
        values = (node.meta.get("val"), node.meta.get("example_value"))
        if any(_is_spyre(v) for v in torch.utils._pytree.tree_leaves(values)):
            return True
    return False


def modules_of_frame(frame_locals: dict) -> list[torch.nn.Module]:
    """The modules that a frame is given: its own, those of its arguments, those its function holds on to."""
    found = []
    for value in frame_locals.values():
        for given in value if isinstance(value, (tuple, list)) else [getattr(value, "__self__", value)]:
            if isinstance(given, torch.nn.Module):
                found.append(given)
    return found


def frame_uses_spyre(frame_locals: dict) -> bool:
    """The same of a frame that is not traced yet: by its tensors and modules."""
    parameters = (next(module.parameters(), None) for module in modules_of_frame(frame_locals))
    return any(map(_is_spyre, [*torch.utils._pytree.tree_leaves(frame_locals), *parameters]))


def _inductor_settings() -> dict:
    from torch_spyre._inductor import fx_passes, scheduling

    return {
        "allow_buffer_reuse": False,  # reuse compares host sizes; device layouts differ
        "benchmark_harness": False,
        "comprehensive_padding": False,  # pads host strides; the card pads sticks by itself
        "emulate_precision_casts": False,
        "epilogue_fusion": False,
        "graph_partition": False,  # parts for recordings of launches, which the card has not
        "fallback_random": True,  # random numbers come from the card's generator
        "joint_graph_constant_folding": False,  # folds by running operators on the card while compiling
        "layout_optimization": False,  # channels-last is a GPU preference
        "loop_ordering_after_fusion": False,
        "online_softmax": False,  # a two-value reduction the card does not have
        "permute_fusion": False,
        "reorder_for_locality": False,
        "reorder_for_peak_memory": False,  # counts host bytes, and would take bundles apart
        "split_reductions": False,  # one reduction is one device operation
        "unroll_reductions_threshold": 1,  # or small matmuls become sums of products
        "post_grad_custom_post_pass": fx_passes.FixSizes(sizes_are_fixed),
        "_post_fusion_custom_pass": scheduling.BundleDeviceNodes(),
    }


@contextlib.contextmanager
def enable_spyre_context(example_inputs=()):
    """Everything that holds while Inductor compiles for the card. Entered again inside itself, it changes nothing."""
    if getattr(_state, "depth", 0):
        yield
        return
    from torch._inductor import config
    from torch._inductor.choices import InductorChoices
    from torch._inductor.fx_passes import joint_graph
    from torch._inductor.virtualized import V

    from torch_spyre._inductor import customops, lowering, progress  # noqa: F401
    from torch_spyre._patches import sixteen_bits_stay

    class Choices(InductorChoices):
        @staticmethod
        def can_fuse(scheduler, node1, node2, shared_data_score):
            return False

    _state.depth = 1
    try:
        with (
            config.patch(_inductor_settings()),
            V.set_real_inputs(list(example_inputs)),
            V.set_choices_handler(Choices()),
            sixteen_bits_stay(),
            # Attention, padding and softmax patterns rewrite for GPUs.
            replaced.attribute(joint_graph, "pass_patterns", []),
            lowering.installed(),
            _forced_fallbacks(),
            _numbers_follow_tensors(),
            _floats_stay_open(),
            progress.lowering_told(),
        ):
            yield
    finally:
        _state.depth = 0


# --- operators the compiler refuses run on the CPU -------------------------------------------------------------------


class Refused(Exception):
    """Compilation must start again with the operators that were refused on the CPU."""


def operator_key(node) -> tuple:
    """An operator with the types and shapes it works on: refusing one means refusing all like it."""

    def kinds(values):
        tensors = (v for v in torch.utils._pytree.tree_leaves(values) if isinstance(v, torch.Tensor))
        return tuple((t.dtype, tuple(map(str, t.shape))) for t in tensors)

    given = [a.meta.get("val") for a in node.all_input_nodes]
    return node.target, kinds(given), kinds(node.meta.get("val"))


def sizes_are_fixed() -> bool:
    """Whether this attempt compiles for the sizes of this call alone."""
    return getattr(_state, "fixed", True)


def is_refused(node) -> bool:
    refused = getattr(_state, "refused", ())
    return bool(refused) and operator_key(node) in refused


#: By compilation: what was refused and why, a line each.
refusals: dict[str, list[str]] = {}


def _compilation() -> str:
    return str(torch._guards.CompileContext.current_compile_id())


def refuse(key: tuple, reason: str) -> None:
    """Notes an operator for the next attempt; this one goes on without it, to find all others."""
    log.info("on the CPU instead: %s: %s", key, reason)
    _state.noted.add(key)
    lines = refusals.setdefault(_compilation(), [])
    if (line := f"{key[0]}: {reason.splitlines()[0]}") not in lines:
        lines.append(line)


def start_again_if_refused() -> None:
    """At the end of an attempt."""
    if getattr(_state, "noted", ()):
        raise Refused(f"{len(_state.noted)} operators go to the CPU")


@contextlib.contextmanager
def _forced_fallbacks():
    """Inductor asks for each built-in operator whether its types force it to the eager kernel; so may we."""
    from torch._inductor import graph

    original = graph.fallback_node_due_to_unsupported_type

    def forced(node, *args, **kwargs):
        return is_refused(node) or original(node, *args, **kwargs)

    with replaced.attribute(graph, "fallback_node_due_to_unsupported_type", forced):
        yield


@contextlib.contextmanager
def _numbers_follow_tensors():
    """A pointwise operator runs where its first operand is, unless another one is on a GPU: a number of the host beside
    a tensor of the card would otherwise take the operator to the host."""
    from torch._inductor import lowering

    is_gpu = lowering.is_gpu
    with replaced.attribute(lowering, "is_gpu", lambda kind: kind == "spyre" or is_gpu(kind)):
        yield


@contextlib.contextmanager
def _floats_stay_open():
    """A float that changes from call to call becomes a tensor where PyTorch knows how; elsewhere every value of it is
    compiled for. These operators take tensors, too."""
    from torch.fx.passes import _tensorify_python_scalars as tensorify

    aten = torch.ops.aten
    with_tensors = {
        aten.clamp_max.default: aten.clamp_max.Tensor,
        aten.clamp_min.default: aten.clamp_min.Tensor,
        aten.fmod.Scalar: aten.fmod.Tensor,
        aten.pow.Scalar: aten.pow.Tensor_Tensor,
        aten.pow.Tensor_Scalar: aten.pow.Tensor_Tensor,
        aten.remainder.Scalar: aten.remainder.Tensor,
    }
    with replaced.entries(tensorify.SUPPORTED_OPS, with_tensors):
        yield


def _copy_graph(gm):
    """Passes change graphs; the constants a graph holds are shared, being tensors on the card that stay as they are."""
    tensors = [t for t in vars(gm).values() if isinstance(t, torch.Tensor)] + list(gm.buffers()) + list(gm.parameters())
    return copy.deepcopy(gm, {id(t): t for t in tensors})


def _reason(error: BaseException | None) -> NeedsFixedSizes | None:
    """What was raised inside, which Inductor wraps."""
    while error is not None and not isinstance(error, NeedsFixedSizes):
        error = getattr(error, "inner_exception", None) or error.__cause__ or error.__context__
    return error


def compile_inner(gm, example_inputs, then, **kwargs):
    """Inductor's inner compile, again while operators are refused.

    Also entered for a backward graph that is compiled long after its forward graph, outside of ``compile_fx``.
    """
    from torch_spyre._inductor import decompositions, progress

    kwargs["get_decomp_fn"] = decompositions.table  # a module-level name, or the graph cache cannot make a key
    outside = getattr(_state, "depth", 0) == 0
    _state.refused = set()
    _state.fixed = False
    with progress.shown(), enable_spyre_context() if outside else contextlib.nullcontext():
        while True:
            _state.noted = set()
            progress.now("Inductor")
            progress.kernels.begin()
            try:
                return then(_copy_graph(gm), example_inputs, **kwargs)
            except Exception as error:  # after a refusal whatever went wrong goes wrong again, if it must
                reason = _reason(error)
                if reason is not None and not _state.fixed:
                    log.info("compiled for the sizes of this call: %s", reason)
                    _state.fixed = True
                    continue
                if not _state.noted - _state.refused:
                    profiler.record_failure("compile_frontend", error)
                    raise
                _state.refused |= _state.noted
