"""A result beside converted columns lies in one of two sticks each: nothing is written to the other, and nothing is missing.

bucket: checked error: the checker: not-written, launch in HBM
seed: 910028 
"""

given = {
    "b": ('whole', 'bool', (1, 32), 880, ''),
    "i0": ('listed', 'int64', (64,), [31, -7, -27, -25, 10, -11, -10, -14, 0, -32, -3, 20, -26, -23, 17, -8, 13, 18, -13, 27, 30, -11, 13, 25, 27, -32, -18, -21, 28, 27, 26, 15, -13, 12, 16, -2, -19, 24, -6, 20, 17, 18, -13, -7, 24, 12, 12, -4, -20, 3, 24, 26, 22, 24, 31, 27, -27, 3, 10, 1, -15, 14, -19, 12], ''),
}


def program(b, i0):
    t0 = b.to(torch.float32)
    t2 = torch.cat([b, b], 1)
    t4 = t0[:, i0]
    t6 = torch.stack([t2, t2, t4], 2)
    return (t6,)
