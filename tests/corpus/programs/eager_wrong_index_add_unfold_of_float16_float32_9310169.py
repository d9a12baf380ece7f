"""Windows that overlap are added to in place: PyTorch says nothing about the order.

bucket: eager wrong: - [ index_add_ unfold of float16 float32
seed: 9310169 
"""

given = {
    "a": ('whole', 'float16', (1,), 969, ''),
    "c": ('whole', 'float32', (5,), 187, ''),
    "i0": ('listed', 'int64', (2,), [0, 1], ''),
}


def program(a, c, i0):
    t1 = c.unfold(0, 3, 2)
    t1.index_add_(0, i0, 1 - t1[:2])
    return (a,)
