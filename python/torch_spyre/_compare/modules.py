"""The modules of a model as they run: who calls which operator, and what comes out of each."""

import contextlib

from torch import nn
from torch._dynamo.eval_frame import OptimizedModule

from torch_spyre._compare.judge import Judge


def _is_compiled(module: nn.Module) -> bool:
    return (
        isinstance(module, OptimizedModule)
        or module._compiled_call_impl is not None
        or hasattr(module.forward, "_torchdynamo_orig_callable")
    )


def compiled_parts(model: nn.Module) -> list[nn.Module]:
    """The outermost modules that ``torch.compile`` wrapped."""
    if _is_compiled(model):
        return [model]
    return [part for child in model.children() for part in compiled_parts(child)]


@contextlib.contextmanager
def hooked(model: nn.Module, judge: Judge, compiled: list[nn.Module]):
    """While inside, the judge sees modules begin and end; not those inside of compiled ones, which do neither."""
    hidden = {id(inner) for part in compiled for inner in part.modules()}
    handles = []
    for path, module in model.named_modules():
        if id(module) in hidden:
            continue
        name = path or "(model)"
        before = module.register_forward_pre_hook(lambda m, args, name=name: judge.enter(name), prepend=True)
        after = module.register_forward_hook(lambda m, args, out, name=name: judge.leave(name, type(m).__name__, out))
        handles += [before, after]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
