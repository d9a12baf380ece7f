"""Rows behind an odd number of columns are read with a gap where another buffer was before.

bucket: checked error: the checker: clobbered, shuffle in LX
seed: 9320356 
"""

given = {
    "b": ('whole', 'float32', (32, 127), 47, '[:, 0:127:2]'),
    "d": ('whole', 'int64', (), 851, ''),
}


def program(b, d):
    t4 = torch.where(b > d, b, d)
    return (t4,)
