"""A part of a float32 tensor is written by half-words: what the rest of its storage had is read from more than the part.

bucket: compiled error: InternalError: spyre/driver/pass_log.cpp:#: internal check failed: verified.ok#: after assign-layouts: graph '_', node '_': load of '_' reaches elements # to #,
seed: 9320275 
"""

given = {
    "a": ('whole', 'float16', (1, 1, 1, 1, 1), 33, ''),
    "b": ('whole', 'float32', (3,), 477, ''),
    "i0": ('listed', 'int64', (2,), [0, 1], ''),
}


def program(a, b, i0):
    b[0:2].index_add_(0, i0, 1 - b[0:2][:2])
    return (a,)
