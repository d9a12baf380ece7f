"""A diagonal of a diagonal is written on the CPU, and the card reads it and what it is a view of behind that."""

given = {
    "a": ('whole', 'float16', (1, 2, 1), 979, ''),
}


def program(a):
    t0 = torch.stack([a, a, a], 3)
    t1 = t0.diagonal(0, 1, 3).diagonal(0, 0, 1)
    t1.add_(10)
    r0 = t0 * 2
    r1 = t1 + 1
    return (t0, r0, r1,)
