"""Narrowed parts of a short product pass through tiles: the checker took the gap of the tiles for padding of the parts.

bucket: checked error: the checker: padding, batchmatmul in LX
seed: 7000028 
"""

given = {
    "a": ('whole', 'float32', (2, 2), 244, ''),
}


def program(a):
    t2 = a @ a.transpose(-1, -2)
    return (t2,)
