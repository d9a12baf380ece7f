"""t1: 1 of 2 elements, first at [0]: 1.8828125, expected 1.875

bucket: compiled wrong: - [ index_add_ topk of bfloat16
seed: 6300414 
"""

given = {
    "a": ('fraction', 'bfloat16', (2,), 369, ''),
    "i0": ('listed', 'int64', (1,), [1], ''),
}


def program(a, i0):
    t1 = torch.topk(a, 2, 0)[0]
    a.index_add_(0, i0, 1 - a[:1])
    return (t1,)
