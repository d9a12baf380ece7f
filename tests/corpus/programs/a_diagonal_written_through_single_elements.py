"""A diagonal of integers is written through single elements, and the rest of its storage keeps what it had.

bucket: eager error: RuntimeError: spyre/driver/pass_log.cpp:#: internal check failed: verified.ok#: after assign-layouts: graph '_', node '_': load of '_' reaches elements # to #, 
seed: 9310242 
"""

given = {
    "b": ('whole', 'int64', (32, 4), 111, '[3]'),
    "i0": ('listed', 'int64', (1,), [0], ''),
}


def program(b, i0):
    t1 = b.clamp(-1.5, 2)
    t5 = t1.reshape(2, 1, 2, 1)
    t5.diagonal(0, 1, 0).index_copy_(2, i0, 1 - t5.diagonal(0, 1, 0)[:, :, :1])
    return (t1,)
