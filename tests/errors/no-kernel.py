from compassc.dsl import script as S


def k(a):
    return a
