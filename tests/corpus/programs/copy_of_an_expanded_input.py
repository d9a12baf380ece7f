"""A conversion of an expanded input read past its one row."""

given = {
    "a": ('whole', 'bool', (128,), 0, '.expand(5, 128)'),
}


def program(a):
    t0 = a.to(torch.int64)
    r0 = t0
    r1 = t0.amin(0)
    return (r0, r1,)
