"""t1: 4 of 4 elements, first at [0, 0]: nan, expected inf

bucket: compiled wrong: @ transpose of float32
seed: 6300654 
"""

given = {
    "b": ('inf', 'float32', (2, 3), 741, ''),
}


def program(b):
    t1 = b @ b.transpose(-1, -2)
    return (t1,)
