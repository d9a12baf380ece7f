"""Whether all elements of an fp8 tensor are true: its bits are widened first."""

given = {
    "a": ('whole', 'float8_e4m3fn', (1, 1), 120, ''),
}


def program(a):
    t2 = a.all(0, keepdim=True)
    return (t2,)
