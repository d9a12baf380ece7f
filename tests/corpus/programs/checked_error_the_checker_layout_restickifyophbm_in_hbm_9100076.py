"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: layout, ReStickifyOpHBM in HBM
seed: 9100076 
"""

given = {
    "a": ('whole', 'int64', (128, 127, 1), 336, ''),
    "i0": ('listed', 'int64', (65,), [24, 50, 70, 74, 31, 23, 106, 85, 5, 117, 8, 89, 13, 103, 102, 39, 44, 90, 75, 1, 54, 58, 59, 11, 54, 17, 118, 39, 41, 56, 2, 65, 25, 88, 46, 45, 87, 123, 110, 74, 1, 33, 14, 113, 96, 20, 18, 16, 120, 75, 25, 90, 2, 91, 71, 113, 107, 121, 50, 73, 34, 64, 95, 15, 45], ''),
    "i2": ('listed', 'int32', (1,), [60], ''),
}


def program(a, i0, i2):
    t0 = a - a
    t2 = t0.logical_not()
    t2.diagonal(0, 0, 2)[i2] = 0
    return (t0,)
