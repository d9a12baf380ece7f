"""t1: 2 of 9 elements, first at [1, 2]: 8.75, expected 8.8125

bucket: compiled wrong: @ transpose of bfloat16
seed: 6300372 
"""

given = {
    "d": ('fraction', 'bfloat16', (3, 64), 900, ''),
}


def program(d):
    t1 = d @ d.transpose(-1, -2)
    return (t1,)
