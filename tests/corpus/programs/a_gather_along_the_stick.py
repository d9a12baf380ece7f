"""A gather of an expanded tensor beside arithmetic on its index stopped the card."""

given = {
    "a": ('whole', 'int64', (4, 3, 8, 100, 1), 0, '.expand(4, 3, 8, 100, 64)'),
    "i": ('listed', 'int64', (2,), [3, 99], ''),
}


def program(a, i):
    b = i + 1
    r0 = a.index_select(3, i)
    r1 = b
    return (r0, r1,)
