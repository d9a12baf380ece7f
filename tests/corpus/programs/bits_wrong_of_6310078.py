"""compiled is not eager: t4: 2 of 8 elements, first at [4]: 14.333333969116211, expected 14.333333015441895

bucket: bits wrong: / of 
seed: 6310078 
"""

given = {
    "i0": ('listed', 'int64', (8,), [52, 57, 70, 120, 43, 28, 26, 75], ''),
}


def program(i0):
    t4 = i0 / 3
    return (t4,)
