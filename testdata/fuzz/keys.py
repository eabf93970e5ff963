# SPDX-License-Identifier: Apache-2.0
"""Writes der/*: private keys as PKCS #8, right ones and odd ones, always the same."""

import math
import pathlib
import random

CHANCE = random.Random(20)


def prime(bits, e=65537, top=2):
    """With `top` bits set at the top, and e invertible."""
    while True:
        number = CHANCE.getrandbits(bits) | ((1 << top) - 1) << (bits - top) | 1
        if all(number % small for small in (3, 5, 7, 11, 13)) or bits < 8:
            bases = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
            if all(strong(number, base) for base in bases) and math.gcd(number - 1, e) == 1:
                return number


def strong(number, base):
    """One round of Miller and Rabin."""
    if base % number == 0:
        return True
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    power = pow(base, odd, number)
    if power in (1, number - 1):
        return True
    return any((power := power * power % number) == number - 1 for _ in range(twos - 1))


def element(tag, content):
    length = len(content).to_bytes(3, "big").lstrip(b"\0") or b"\0"
    head = length if len(content) < 128 else bytes([0x80 | len(length)]) + length
    return bytes([tag]) + head + content


def sequence(*parts):
    return element(0x30, b"".join(parts))


def integer(number):
    return element(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


RSA = sequence(bytes.fromhex("06092a864886f70d010101"), b"\x05\0")


def rsa(p, q, e=65537, d=None, **other):
    """The numbers of a key; `other` replaces some of them."""
    numbers = {"n": p * q, "e": e}
    if d is None:
        d = pow(e, -1, (p - 1) * (q - 1)) if math.gcd(e, (p - 1) * (q - 1)) == 1 else 1
    inverse = pow(q, -1, p) if math.gcd(p, q) == 1 else 1
    numbers |= {"d": d, "p": p, "q": q, "dp": d % max(p - 1, 1), "dq": d % max(q - 1, 1), "qinv": inverse}
    numbers |= other
    key = sequence(integer(0), *map(integer, numbers.values()))
    return sequence(integer(0), RSA, element(4, key))


def rsa_keys():
    p, q = sorted((prime(512), prime(512)))
    yield "rsa-1024", rsa(q, p)
    yield "rsa-1024-small-prime-first", rsa(p, q)
    lcm = math.lcm(p - 1, q - 1)
    yield "rsa-1024-d-mod-lcm", rsa(q, p, d=pow(65537, -1, lcm))
    yield "rsa-1024-d-too-large", rsa(q, p, d=pow(65537, -1, lcm) + 5 * lcm)
    yield "rsa-1024-d-zero", rsa(q, p, d=0)
    yield "rsa-1024-d-one", rsa(q, p, e=1, d=1)
    yield "rsa-1024-equal-primes", rsa(p, p)
    yield "rsa-1024-no-inverse", rsa(q, p, qinv=1)
    yield "rsa-1024-e-above-n", rsa(q, p, e=p * q + 2)
    yield "rsa-1024-e-33-bits", rsa(prime(512, 2**32 + 1), prime(512, 2**32 + 1), e=2**32 + 1)
    yield "rsa-1024-even", rsa(q, 2, n=q * p - 1)
    yield "rsa-1024-numbers-of-another", rsa(q, p, n=prime(512) * prime(512))
    for first, second in ((513, 511), (480, 544), (544, 480), (400, 624), (64, 960), (8, 1016)):
        yield f"rsa-1024-{first}-{second}", rsa(prime(first, top=3), prime(second, top=3))
    yield "rsa-1023", rsa(prime(512, top=1), prime(511))
    yield "rsa-1017", rsa(prime(512), prime(505))
    yield "rsa-1536", rsa(prime(768), prime(768))
    yield "rsa-2048", rsa(prime(1024), prime(1024))
    yield "rsa-2048-1000-1048", rsa(prime(1000, top=3), prime(1048, top=3))
    yield "rsa-3072", rsa(prime(1536), prime(1536))
    yield "rsa-512", rsa(prime(256), prime(256))
    yield "rsa-16", rsa(251, 241)
    yield "rsa-4", rsa(3, 5, e=3)
    yield "rsa-nothing", rsa(1, 1, e=3)


def ec(curve, scalar):
    algorithm = sequence(bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex(curve))
    return sequence(integer(0), algorithm, element(4, sequence(integer(1), element(4, scalar))))


def keys():
    yield from rsa_keys()
    yield "p256", ec("06082a8648ce3d030107", bytes(31) + b"\x07")
    yield "p256-zero", ec("06082a8648ce3d030107", bytes(32))
    yield "p521", ec("06052b81040023", bytes(65) + b"\x07")
    yield "b233", ec("06052b8104001b", bytes(29) + b"\x07")
    for name, oid in ("ed25519", "06032b6570"), ("x25519", "06032b656e"):
        inner = element(4, element(4, bytes(range(32))))
        yield name, sequence(integer(0), sequence(bytes.fromhex(oid)), inner)
    yield "length-4-gib", bytes.fromhex("3084ffffffff020100")
    yield "length-of-five-bytes", bytes.fromhex("30850000000001020100")
    yield "length-without-end", bytes.fromhex("3080020100")
    yield "nested", bytes.fromhex("30820100") * 300


if __name__ == "__main__":
    home = pathlib.Path(__file__).parent / "der"
    for name, der in keys():
        (home / name).write_bytes(der)
