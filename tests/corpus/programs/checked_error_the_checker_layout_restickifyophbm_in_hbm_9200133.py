"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: layout, ReStickifyOpHBM in HBM
seed: 9200133 
"""

given = {
    "a": ('whole', 'int64', (33, 2, 31), 647, ''),
}


def program(a):
    a[:, :, 15:31:2].sub_(1)
    return (a,)
