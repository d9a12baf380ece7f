"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: padding, sumnonstick in LX
seed: 9100056 
"""

given = {
    "a": ('whole', 'float16', (2, 2, 33), 584, ''),
    "i0": ('listed', 'int64', (2,), [1, 0], ''),
}


def program(a, i0):
    a.transpose(1, 2).index_add_(0, i0, 1 - a.transpose(1, 2)[:2])
    return (a,)
