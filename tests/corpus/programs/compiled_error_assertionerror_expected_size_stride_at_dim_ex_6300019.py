"""AssertionError: expected size 7==7, stride 64==32 at dim=0; expected size 2==2, stride 32==224 at dim=1

bucket: compiled error: AssertionError: expected size #==#, stride #==# at dim=#; expected size #==#, stride #==# at dim=#
seed: 6300019 
"""

given = {
    "b": ('whole', 'float32', (1, 32), 358, '.expand(2, 7, 32)'),
}


def program(b):
    t0 = torch.softmax(b, 1)
    t1 = t0.transpose(0, 1)
    t1[:, :, 0].add_(-0.0)
    return (t0,)
