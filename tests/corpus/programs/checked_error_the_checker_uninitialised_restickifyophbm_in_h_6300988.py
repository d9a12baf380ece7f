"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: uninitialised, ReStickifyOpHBM in HBM
seed: 6300988 
"""

given = {
    "a": ('whole', 'int64', (2, 2, 2), 634, ''),
}


def program(a):
    a.diagonal(0, 1, 0).relu_()
    return (a,)
