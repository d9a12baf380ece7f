"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: layout, ReStickifyOpHBM in HBM
seed: 9200028
"""

given = {
    "b": ('whole', 'float32', (5,), 593, '.expand(5, 5)'),
}


def program(b):
    t1 = b.contiguous() @ b.transpose(-1, -2)
    return (t1,)
