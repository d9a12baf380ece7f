"""RuntimeError: the checker found 2 problems

bucket: checked error: the checker: clobbered, ReStickifyOpHBM in HBM
seed: 9200160 
"""

given = {
    "a": ('whole', 'bool', (1, 1, 1, 1, 1), 182, ''),
    "b": ('whole', 'int64', (65,), 47, ''),
    "c": ('whole', 'float16', (1, 7, 63, 2, 1), 260, ''),
    "i0": ('listed', 'int32', (5,), [4, 0, 3, 2, 6], ''),
    "i1": ('listed', 'int64', (5,), [0, 14, 23, 24, 22], ''),
}


def program(a, b, c, i0, i1):
    c.transpose(3, 4).index_add_(1, i0, 1 - c.transpose(3, 4)[:, :5])
    c.index_add_(2, i1, 1 - c[:, :, :5])
    return (a,)
