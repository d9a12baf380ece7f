"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: uninitialised, fp32todl16 in HBM
seed: 5000032 
"""

given = {
    "c": ('whole', 'bool', (1, 1), 468, ''),
}


def program(c):
    t2 = c.triu()
    return (t2,)
