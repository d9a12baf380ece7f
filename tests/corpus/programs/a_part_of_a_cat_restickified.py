"""Of a buffer that two tensors are put into, the first is read with its sticks along the other dimension, in whole squares,
before the second is there: the checker knows that the last square has rows that nobody wrote.

bucket: checked error: the checker: uninitialised, ReStickifyOpHBM in HBM
"""

given = {
    "a": ('whole', 'float16', (31, 63), 245, ''),
}


def program(a):
    t0 = a.repeat_interleave(2, 1)
    t0[:, 75:98] = t0[:, 75:98] + 1
    t1 = (t0 @ t0.transpose(-1, -2)).clamp(-8, 8)
    t2 = torch.cat([t0, t1], 1)
    return (t2,)
