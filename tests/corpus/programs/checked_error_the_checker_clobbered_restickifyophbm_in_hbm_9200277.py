"""RuntimeError: the checker found 2 problems

bucket: checked error: the checker: clobbered, ReStickifyOpHBM in HBM
seed: 9200277 
"""

given = {
    "c": ('whole', 'bool', (5,), 591, ''),
    "i0": ('listed', 'int64', (65,), [4, 4, -5, 3, 2, -3, -3, 3, -1, -3, -3, -1, 3, 2, -5, -2, -4, 1, -5, 1, -3, 3, -3, 2, 4, -1, 4, -1, 1, -1, -2, -2, 1, -1, 0, 4, -2, 0, 4, -1, -4, -2, 0, -5, 0, -3, 2, -4, -5, 3, -1, 0, 4, -5, -1, 1, 4, 4, -5, -3, 2, 0, 2, 0, 1], ''),
}


def program(c, i0):
    t2 = c[i0]
    t5 = torch.where(t2 > 1, t2, t2.flip(0))
    return (t5,)
