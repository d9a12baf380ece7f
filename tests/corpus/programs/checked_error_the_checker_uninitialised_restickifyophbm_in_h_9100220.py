"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: uninitialised, ReStickifyOpHBM in HBM
seed: 9100220 
"""

given = {
    "a": ('whole', 'int64', (1, 3, 31, 5), 700, ''),
}


def program(a):
    a[:, :, :, 0:5:3].add_(3)
    return (a,)
