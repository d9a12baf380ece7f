"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: layout, ReStickifyOpHBM in HBM
seed: 6300224 
"""

given = {
    "a": ('whole', 'bool', (1, 1, 5), 270, ''),
    "b": ('whole', 'int64', (31, 31, 5), 639, ''),
}


def program(a, b):
    t1 = b.all(1)
    t2 = t1.repeat(3, 3)
    t3 = torch.add(b, t1[..., :1], alpha=2)
    t4 = torch.where(t3 > t1, t3, t1)
    return (a, t2, t3, t4,)
