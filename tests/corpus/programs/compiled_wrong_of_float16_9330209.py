"""A number that fills a part is rounded to the format of the card.

bucket: compiled wrong: = [ of float16
seed: 9330209 
"""

given = {
    "c": ('whole', 'float16', (1,), 642, ''),
}


def program(c):
    c[0:64:3] = 0.3
    return (c,)
