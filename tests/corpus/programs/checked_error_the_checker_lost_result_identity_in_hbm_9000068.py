"""RuntimeError: the checker found 2 problems

bucket: checked error: the checker: lost-result, identity in HBM
seed: 9000068 
"""

given = {
    "a": ('whole', 'bool', (2, 33), 419, ''),
}


def program(a):
    a[:, 0:63:2].fill_(1)
    t1 = a.sum(1)
    return (t1,)
