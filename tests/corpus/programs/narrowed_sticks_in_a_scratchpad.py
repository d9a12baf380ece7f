"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: uninitialised, fp32todl16 in LX
seed: 5000064 
"""

given = {
    "a": ('whole', 'int32', (63, 129), 408, ''),
    "b": ('whole', 'bool', (5,), 841, ''),
    "c": ('whole', 'int64', (63, 129), 434, ''),
    "d": ('whole', 'float32', (4, 65), 994, '.expand(2, 4, 65)'),
    "i0": ('listed', 'int64', (2,), [0, -1], ''),
}


def program(a, b, c, d, i0):
    t0 = d[i0]
    t3 = torch.where(d > -3, d, -3)
    return (t3,)
