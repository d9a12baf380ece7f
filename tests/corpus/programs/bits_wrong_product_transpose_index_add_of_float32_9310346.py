"""A sum of four products: inside a stick when called eagerly, across sticks where its operand is transposed as well.

bucket: bits wrong: * - @ [ index_add_ tanh transpose of float32
seed: 9310346
"""

given = {
    "b": ('whole', 'float32', (1, 1, 32, 1, 4), 29, ''),
    "i1": ('listed', 'int64', (4,), [3, 1, 2, 0], ''),
}


def program(b, i1):
    t0 = torch.tanh(b * 0.25)
    t1 = b @ t0.transpose(-1, -2)
    b.transpose(0, 4).index_add_(0, i1, 1 - b.transpose(0, 4)[:4])
    return (t1,)
