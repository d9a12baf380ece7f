"""Inductor's scheduling class for the card: a run of consecutive device nodes becomes one kernel."""

import hashlib
import logging
import re
from collections.abc import Sequence

from torch._inductor.custom_graph_pass import CustomSchedulerPass, get_hash_for_files
from torch._inductor.scheduler import (
    BaseSchedulerNode,
    BaseScheduling,
    FusedSchedulerNode,
    NopKernelSchedulerNode,
    SchedulerNode,
)
from torch._inductor.utils import get_fused_kernel_name, get_kernel_metadata, sympy_product
from torch._inductor.virtualized import V

from torch_spyre._inductor import capture, config, extents, kernels, patches, progress
from torch_spyre._inductor.errors import NeedsFixedSizes, SpyreUnsupportedError

log = logging.getLogger(__name__)


def _is_device_loop(node: BaseSchedulerNode) -> bool:
    device = node.get_device()
    return isinstance(node, SchedulerNode) and device is not None and device.type == "spyre"


def _is_kernel(node: BaseSchedulerNode) -> bool:
    return all(map(_is_device_loop, node.get_nodes()))


class BundleDeviceNodes(CustomSchedulerPass):
    """Maximal runs of consecutive device nodes become one node each; order is kept.

    A node that runs nothing does not end a run. The result of a concatenation, which the run writes, moves behind it;
    memory without contents, which the run may read, before it.
    """

    def __call__(self, nodes: list[BaseSchedulerNode]) -> list[BaseSchedulerNode]:
        result: list[BaseSchedulerNode] = []
        run: list[SchedulerNode] = []
        silent: list[BaseSchedulerNode] = []

        def close() -> None:
            if len(run) == 1:
                result.append(run[0])
            elif run:
                result.append(FusedSchedulerNode(run[0].scheduler, list(run)))
            result.extend(silent)
            run.clear()
            silent.clear()

        for node in nodes:
            if _is_device_loop(node):
                run.append(node)
            elif isinstance(node, NopKernelSchedulerNode):
                (silent if node.read_writes.reads else result).append(node)
            else:
                close()
                result.append(node)
        close()
        progress.kernels.found(sum(map(_is_kernel, result)))
        return result

    def uuid(self):
        return get_hash_for_files((__file__,))


class SpyreScheduling(BaseScheduling):
    """Nothing is fused by Inductor's rules: what runs together is decided by the compiler behind the text."""

    def can_fuse_vertical(self, node1, node2) -> bool:
        return False

    def can_fuse_horizontal(self, node1, node2) -> bool:
        return False

    def can_buffer_be_removed_through_fusion(self, name: str, fused_node_names) -> bool:
        return False

    def group_fn(self, sizes):
        return tuple(tuple(V.graph.sizevars.simplify(sympy_product(s)) for s in sizes) for sizes in (sizes,))[0]

    def flush(self) -> None:
        pass

    def codegen_sync(self) -> None:
        V.graph.wrapper_code.writeline("torch.spyre.synchronize()")

    def codegen_node(self, node: FusedSchedulerNode | SchedulerNode) -> None:
        nodes: list[SchedulerNode] = list(node.get_nodes())
        wrapper = V.graph.wrapper_code
        modules = capture.modules_of(nodes)
        progress.kernels.next(modules)
        region, kernel = self._compile(nodes, wrapper)
        for name in region.outputs:
            wrapper.device_layouts[name] = kernel.output_layout(name)
        wrapper.existing_buffers.update(region.outputs)
        V.graph.removed_buffers.update(region.local)
        for part in nodes:
            # A slice of a buffer that never leaves the kernel does not exist outside either.
            if capture.place_of(part.node.get_name(), wrapper.input_offset).base in V.graph.removed_buffers:
                V.graph.removed_buffers.add(part.node.get_name())
            else:
                part.mark_run()
        if region.open_sizes:
            layouts = {name: capture.layout_text(kernel.output_layout(name)) for name in region.outputs}
            region.text = kernels.with_layouts(region.text, layouts)
        name = self._define(region, nodes)
        self.codegen_comment(nodes, name)
        # The compiler names inputs and outputs in the order of its own lists.
        device = nodes[0].get_device()
        numbers = {n: f"launch_scalar({source}, {dtype}, '{device}')" for n, (source, dtype) in region.scalars.items()}
        inputs, outputs = ", ".join(numbers.get(n, n) for n in kernel.inputs), ", ".join(kernel.outputs)
        sizes = ", ".join(map(capture.wrapper_text, region.open_sizes.values()))
        arguments = f"[{inputs}], [{outputs}]" + (f", [{sizes}]" if sizes else "")
        wrapper.writeline(f"{name}.run({arguments}" + (f", modules={modules!r})" if modules else ")"))
        self.free_buffers_in_scheduler()

    def _compile(self, nodes: Sequence[SchedulerNode], wrapper):
        """The region and its kernel. An operator that is refused is noted, and the rest compiled without it."""
        while nodes:
            needed = self._needed_after(nodes, wrapper)
            region = None
            try:
                region = _capture(nodes, needed, wrapper)
                sizes = [V.graph.sizevars.optimization_hint(size) for size in region.open_sizes.values()]
                return region, kernels.compile_for_codegen(kernels.for_calls_of(region.text, sizes))
            except SpyreUnsupportedError as error:
                if region is not None and region.open_sizes:
                    _fix_sizes(region, error)
                    continue
                origin = _origin_of(error.node)
                if origin is None or not config.cpu_fallback_on_refusal:
                    raise
                key = patches.operator_key(origin)
                for refused in [origin, *_views_to_call(origin)]:
                    patches.refuse(patches.operator_key(refused), str(error))
                nodes = _without(nodes, key, wrapper)
        patches.start_again_if_refused()

    def _needed_after(self, nodes: Sequence[SchedulerNode], wrapper) -> set[str]:
        """Buffers that results or other kernels read. Those read only before this one do no harm."""
        inside = set(nodes)
        names = set(V.graph.get_output_names())
        for other in self.scheduler.nodes:
            if not isinstance(other, NopKernelSchedulerNode) and not inside & set(other.get_nodes()):
                names.update(self.scheduler.mutation_real_name.get(d.name, d.name) for d in other.read_writes.reads)
        known = V.graph.name_to_buffer.keys() | V.graph.graph_inputs.keys()
        return {capture.place_of(name, wrapper.input_offset).base for name in names & known}

    def _define(self, region: capture.Region, nodes: Sequence[SchedulerNode]) -> str:
        wrapper = V.graph.wrapper_code
        if region.text in wrapper.src_to_kernel:
            return wrapper.src_to_kernel[region.text]
        name = f"sdsc_{_graph_name(nodes)}_{hashlib.sha256(region.text.encode()).hexdigest()[:8]}"
        wrapper.src_to_kernel[region.text] = name
        origins, details = get_kernel_metadata(list(nodes), wrapper)
        body = f"async_compile.sdsc({name!r}, r'''{region.text}''')"
        wrapper.define_kernel(name, body, f"{origins}\n{details}", gpu=False)
        return name


def _fix_sizes(region: capture.Region, error: SpyreUnsupportedError) -> None:
    """The sizes that an operator uses otherwise than as lengths are compiled for as they are in this call."""
    if not error.extents:
        raise NeedsFixedSizes(str(error)) from error
    log.info("compiled for one value of %s: %s", ", ".join(error.extents), error)
    for size in error.extents:
        extents.fixed(region.open_sizes[size])


def _origin_of(name: str | None):
    """The FX node behind a node of the graph text; none where the graph as a whole is refused."""
    buffer = V.graph.name_to_buffer.get(name)
    return None if buffer is None else capture.fx_node(buffer)


def _views_to_call(node) -> list:
    """The views that an operator on the CPU must be given by calls. Otherwise loops of the card copy what they show:
    that was refused as well where the operator is on the CPU already, and a copy must not be written to."""
    schema = getattr(node.target, "_schema", None)
    if not patches.is_refused(node) and not (schema is not None and schema.is_mutable):
        return []
    return _views_before(node)


def _views_before(node) -> list:
    views = [given for given in node.all_input_nodes if getattr(given.target, "is_view", False)]
    return views + [further for view in views for further in _views_before(view)]


def _without(nodes: Sequence[SchedulerNode], key: tuple, wrapper) -> list[SchedulerNode]:
    """The nodes that are not of this operator, to which the others' results come from outside."""
    kept = []
    for node in nodes:
        origin = capture.fx_node(node.node)
        if origin is not None and patches.operator_key(origin) == key:
            wrapper.existing_buffers.add(capture.place_of(node.node.get_name(), wrapper.input_offset).base)
        else:
            kept.append(node)
    return kept


def _capture(nodes: Sequence[SchedulerNode], needed: set[str], wrapper) -> capture.Region:
    return capture.capture_region(
        name=_graph_name(nodes),
        buffers=[n.node for n in nodes],
        needed=needed,
        existing=wrapper.existing(),
        layout_of=wrapper.layout_of,
        input_offset=wrapper.input_offset,
        storage_of=wrapper.storage_of,
    )


def _graph_name(nodes: Sequence[SchedulerNode]) -> str:
    return re.sub(r"\W", "_", get_fused_kernel_name(list(nodes), "original_aten"))[:80]
