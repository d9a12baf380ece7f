"""Inductor's wrapper code for the card: tensors are allocated with the layouts the compiler chose."""

import torch
from torch._inductor import ir
from torch._inductor.codegen.wrapper import PythonWrapperCodegen, SubgraphPythonWrapperCodegen
from torch._inductor.virtualized import V

from torch_spyre import _C
from torch_spyre._inductor import kernels, patches, real_inputs
from torch_spyre._inductor.extents import capacity, is_open, room_along


class _DeviceTensors:
    """Knows, while a wrapper is written, which device tensors exist and how they lie."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.device_layouts: dict[str, object] = {}  # chosen by the compiler, by buffer
        self.existing_buffers: set[str] = set()  # made by kernels before this point
        self.layouts_of_regions: dict[str, dict[str, object]] = {}  # by subgraph and its inputs

    @staticmethod
    def create(is_subgraph, subgraph_name, parent_wrapper, partition_signatures=None):
        if is_subgraph:
            return SpyreSubgraphWrapperCodegen(subgraph_name, parent_wrapper, partition_signatures)
        return SpyrePythonWrapperCodegen()

    def make_buffer_allocation(self, buffer):
        layout = self.device_layouts.get(buffer.get_name())
        if layout is None:
            return super().make_buffer_allocation(buffer)
        size = self.codegen_python_shape_tuple(tuple(buffer.get_size()))
        stride = self.codegen_python_shape_tuple(_with_room(buffer.get_stride()))
        room = _with_room(buffer.get_size()) if any(map(is_open, buffer.get_size())) else None
        fields = (
            list(layout.device_size),
            list(layout.stride_map),
            _last(layout.device_dtype),
            _last(layout.element_arrangement),
        )
        return (
            f"{buffer.get_name()} = empty_with_layout({size}, {stride}, {buffer.get_dtype()}, "
            f"{fields!r}, '{buffer.get_device()}'" + (f", room={room})" if room else ")")
        )

    def existing(self) -> set[str]:
        """Buffers that have contents before the kernel being written, other than graph inputs."""
        extern = {name for name, buffer in V.graph.name_to_buffer.items() if _made_elsewhere(buffer)}
        return self.existing_buffers | extern

    def layout_of(self, name: str):
        """The device layout of a tensor that exists; of one nobody has seen yet, the one it most likely has."""
        if name in self.device_layouts:
            return self.device_layouts[name]
        tensor = self._real_input(name)
        if tensor is not None:
            return tensor.device_tensor_layout()
        inputs = V.graph.graph_inputs
        spec = inputs[name] if name in inputs else V.graph.get_buffer(name)
        return kernels.eager_layout(_with_room(spec.get_size()), _with_room(spec.get_stride()), spec.get_dtype())

    def codegen_reinterpret_view(self, data, size, stride, offset, writeline, dtype=None) -> str:
        if self._has_room(data) and any(map(is_open, (*size, *stride))):
            view = (self.codegen_python_shape_tuple(tuple(size)), self.codegen_python_shape_tuple(_with_room(stride)))
            name = f"reinterpret_tensor({data.get_name()}, {', '.join(view)}, {self.codegen_sizevar(offset)})"
            return name if dtype in (None, data.get_dtype()) else f"aten.view.dtype({name}, {dtype})"
        return super().codegen_reinterpret_view(data, size, stride, offset, writeline, dtype)

    def _has_room(self, buffer) -> bool:
        """Whether the wrapper or a region made it; inputs and what other kernels return lie as PyTorch says."""
        name = buffer.get_name()
        by_others = name in V.graph.graph_inputs or _made_elsewhere(V.graph.get_buffer(name))
        return buffer.get_device().type == "spyre" and (name in self.device_layouts or not by_others)

    def input_offset(self, name: str) -> int:
        tensor = self._real_input(name)
        return tensor.storage_offset() if tensor is not None else 0

    def storage_of(self, name: str) -> int:
        """Elements of the whole storage behind a graph input that is only a part of it; 0 for everything else."""
        tensor = self._real_input(name)
        elements = _C.storage_elements(tensor) if tensor is not None else 0
        return elements if tensor is not None and elements != tensor.numel() else 0

    def codegen_invoke_subgraph(self, invoke_subgraph) -> None:
        """A region that runs several times is compiled for the tensors of its first run; those of others that lie
        otherwise are copied. Its results lie as its kernels leave them."""
        region = invoke_subgraph.subgraph.graph
        given = dict(zip(region.graph_input_names, map(_whole_buffer, invoke_subgraph.inputs), strict=True))
        whole = {inner: b.get_name() for inner, b in given.items() if b is not None and b.get_device().type == "spyre"}
        layouts = {inner: self.layout_of(name) for inner, name in whole.items() if self.input_offset(name) == 0}
        self.layouts_of_regions.setdefault(region.name, layouts)
        super().codegen_invoke_subgraph(invoke_subgraph)
        for result, inner in zip(invoke_subgraph.outputs, region.graph_outputs, strict=True):
            if isinstance(result, ir.MultiOutput) and inner.get_name() in region.wrapper_code.device_layouts:
                self.device_layouts[result.get_name()] = region.wrapper_code.device_layouts[inner.get_name()]

    def _real_input(self, name: str) -> torch.Tensor | None:
        """The caller's tensor behind a graph input, when this compilation has seen it and kernels can read it as it
        lies: one of another size next time has to have its strides."""
        tensor = self._given(name)
        if tensor is None:
            return None
        size, stride = V.graph.graph_inputs[name].get_size(), V.graph.graph_inputs[name].get_stride()
        open_dims = [dim for dim in range(len(size)) if is_open(size[dim])]
        as_it_lies = all((room_along(tensor, dim) or 0) >= capacity(size[dim]) for dim in open_dims)
        steps = [stride[dim] for dim in range(len(size)) if size[dim] != 1]
        return tensor if as_it_lies and not any(map(is_open, steps)) else None

    def _given(self, name: str) -> torch.Tensor | None:
        """The caller's tensor behind a graph input, when this compilation has seen it."""
        raise NotImplementedError


class SpyrePythonWrapperCodegen(_DeviceTensors, PythonWrapperCodegen):
    def write_header(self) -> None:
        super().write_header()
        self.header.splice(
            """
            from torch_spyre._inductor.kernels import SpyreAsyncCompile, empty_with_layout
            from torch_spyre._inductor.kernels import launch_scalar, reinterpret_tensor
            async_compile = SpyreAsyncCompile()
            """,
            strip=True,
        )

    def generate(self, is_inference):
        patches.start_again_if_refused()
        return super().generate(is_inference)

    def _given(self, name: str) -> torch.Tensor | None:
        if name not in V.graph.graph_inputs:
            return None
        return real_inputs.real_input(V.graph.graph_input_names.index(name), V.graph.graph_inputs[name])


class SpyreSubgraphWrapperCodegen(_DeviceTensors, SubgraphPythonWrapperCodegen):
    def __init__(self, subgraph_name, parent_wrapper, partition_signatures=None):
        super().__init__(subgraph_name, parent_wrapper, partition_signatures)
        regions = parent_wrapper.layouts_of_regions if isinstance(parent_wrapper, _DeviceTensors) else {}
        self.device_layouts.update(regions.get(subgraph_name, {}))

    def _given(self, name: str) -> torch.Tensor | None:
        return None  # known by its layout at most


def _with_room(numbers) -> tuple[int, ...]:
    return tuple(map(capacity, numbers))


def _whole_buffer(operand: ir.IRNode) -> ir.Buffer | None:
    """The buffer that an operand is all of, as it lies."""
    buffer = operand
    while isinstance(buffer, ir.MutableBox | ir.ReinterpretView):
        buffer = buffer.data
    return buffer if isinstance(buffer, ir.Buffer) and buffer.get_layout() == operand.get_layout() else None


def _last(enum) -> str:
    return str(enum).split(".")[-1]


def _made_elsewhere(buffer) -> bool:
    """Contents come from the CPU or from a kernel of someone else."""
    if isinstance(buffer, ir.ConcatKernel) or isinstance(buffer, ir.NopKernel):
        return False
    return not isinstance(buffer, ir.ComputedBuffer) or buffer.get_device().type != "spyre"
