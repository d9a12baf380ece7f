"""RuntimeError: the checker found 1 problems

bucket: checked error: the checker: lost-result, identity in LX
seed: 6300264 
"""

given = {
    "b": ('whole', 'float16', (1,), 62, ''),
}


def program(b):
    t0 = b.mean(0, keepdim=True)
    t0[0:1:2].zero_()
    t2 = torch.where(t0 > 1, t0, t0.flip(0))
    return (t2,)
