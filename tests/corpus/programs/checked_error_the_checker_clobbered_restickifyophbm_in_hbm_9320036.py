"""Eleven numbers changed in place: between two buffers of the same rows a third one had written over the first.

bucket: checked error: the checker: clobbered, ReStickifyOpHBM in HBM
seed: 9320036 
"""

given = {
    "a": ('whole', 'bool', (1,), 787, ''),
    "c": ('whole', 'float32', (63,), 72, ''),
}


def program(a, c):
    c[52:63].abs_()
    return (a,)
