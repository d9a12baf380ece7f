"""compiled is not eager: t6: 1 of 2 elements, first at [1]: 1.0, expected 0.0

bucket: bits wrong: any pad of bool
seed: 6300086 
"""

given = {
    "a": ('whole', 'bool', (1, 1), 830, ''),
}


def program(a):
    t3 = F.pad(a, (0, 1, 1, 0), value=-1)
    t6 = t3.any(1)
    return (t6,)
