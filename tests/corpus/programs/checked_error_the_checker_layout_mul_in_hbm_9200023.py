"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: layout, mul in HBM
seed: 9200023
"""

given = {
    "a": ('whole', 'bool', (100, 1), 673, ''),
}


def program(a):
    t0 = a.to(torch.float32)
    t1 = torch.cat([t0, a], 1)
    t2 = t1 * t0[..., :1]
    return (t0, t1, t2)
