"""Kernels whose tensors live in the cores' scratchpads."""

import dataclasses

from . import device

LX_BYTES_EACH = 256 * 1024


def in_lx(op, space, inputs, output, **how):
    """Inputs are copied to LX, where a broadcast one becomes as large as the result; the op runs there, over its first
    input; the result is copied back. Every core holds its own slices."""
    ops, local = [], []
    for i, t in enumerate(inputs):
        t.place = f"hbm={i}"
        local.append(dataclasses.replace(output, name=f"L{i}", place=f"lx={i * LX_BYTES_EACH}"))
        ops.append(device.op_text("identity", space, [t], local[-1]))
    output.place = f"hbm={len(inputs)}"
    result = dataclasses.replace(output, name="R", place="lx=0")
    ops.append(device.op_text(op, space, local, result, **how))
    ops.append(device.op_text("identity", space, [result], output))
    arguments = [(t, "input") for t in inputs] + [(output, "output")]
    return device.kernel_text(arguments, ops)
