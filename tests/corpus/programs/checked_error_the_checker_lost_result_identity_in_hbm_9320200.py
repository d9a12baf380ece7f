"""Every third element changed twice: a core that reads only such an element reads what the steps wrote.

bucket: checked error: the checker: lost-result, identity in HBM
seed: 9320200 
"""

given = {
    "a": ('whole', 'int64', (31, 1, 1, 1, 1), 413, ''),
}


def program(a):
    a[20:31:3] += 0
    return (a,)
