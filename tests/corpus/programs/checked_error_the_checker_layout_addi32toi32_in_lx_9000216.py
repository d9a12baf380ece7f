"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: layout, addi32toi32 in LX
seed: 9000216 
"""

given = {
    "a": ('whole', 'int64', (33, 64), 183, ''),
}


def program(a):
    t0 = a.flatten(0, 1)
    t1 = 3 - t0
    return (t1,)
