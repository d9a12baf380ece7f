"""What is moved into a float32 result is read where it is put together, not in the result, which is delivered last.

bucket: compiled error: InductorError: InternalError: spyre/driver/pass_log.cpp:#: internal check failed: verified.ok#: after assign-layouts: graph '_', node '_': reads '_' before anyt
seed: 9330154 
"""

given = {
    "a": ('whole', 'float32', (100, 1, 1), 237, ''),
    "i0": ('listed', 'int64', (1,), [78], ''),
}


def program(a, i0):
    t0 = torch.cat([a, a], 2)
    t1 = t0.index_select(0, i0)
    return (t0, t1,)
