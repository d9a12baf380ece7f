"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: uninitialised, identity in HBM
seed: 6300300 
"""

given = {
    "b": ('whole', 'bool', (3, 1, 1, 3, 2), 529, '[0:5:2]'),
}


def program(b):
    t4 = b.to(torch.int64)
    return (t4,)
