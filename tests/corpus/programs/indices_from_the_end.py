"""Negative positions, read and written."""

given = {
    "a": ('whole', 'float16', (4, 64), 0, ''),
    "i": ('listed', 'int64', (3,), [-1, 2, -4], ''),
}


def program(a, i):
    t0 = a[i]
    a[i] = t0 + 1
    r0 = t0
    return (r0,)
