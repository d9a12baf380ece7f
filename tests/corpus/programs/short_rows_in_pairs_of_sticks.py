"""Short float32 rows, gathered and narrowed: their sticks come in pairs."""

given = {
    "a": ('whole', 'float32', (2, 7), 0, ''),
    "i": ('listed', 'int64', (5,), [1, 0, 1, 1, 0], ''),
}


def program(a, i):
    t0 = a.index_select(0, i)
    r0 = t0 * 1
    r1 = t0.to(torch.float16)
    return (r0, r1,)
