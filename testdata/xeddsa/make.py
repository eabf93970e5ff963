# SPDX-License-Identifier: Apache-2.0
"""Makes `vectors.json`: XEdDSA on curve25519 as T. Perrin's "The XEdDSA and VXEdDSA Signature Schemes", revision 1, has it, and signatures that are to be refused.
Computed by Python's integers; run it here, the output is the same every time.

`random` is the Z of a signature, `sign` the sign of kB, by which a private key is negated or not."""

import hashlib
import json

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
ROOT = pow(2, (P - 1) // 4, P)
HASHES = {
    "CKM_SHA512": hashlib.sha512,
    "CKM_SHA256": hashlib.sha256,
    "CKM_SHA3_256": hashlib.sha3_256,
    "CKM_SHA3_512": hashlib.sha3_512,
    "CKM_BLAKE2B_256": lambda data: hashlib.blake2b(data, digest_size=32),
    "CKM_BLAKE2B_512": hashlib.blake2b,
}
# Alice's key and signature in the test of libsignal's curve25519.rs. Its sign is kept in the signature, where the specification has none.
LIBSIGNAL = {
    "public": "ab7e717d4a163b7d9a1d8071dfe9dcf8cdcd1cea3339b6356be84d887e322c64",
    "message": "05edce9d9c415ca78cb7252e72c2c4a554d3eb29485a0e1d503118d1a82d99fb4a",
    "signature": "5de88ca9a89b4a115da79109c67c9c7464a3e4180274f1cb8c63c2984e286dfbede82deb9dcd9fae0bfbb821569b3d9001bd8130cd11d486cef047bd60b86e88",
}


def add(a, b):
    (x, y), (u, v) = a, b
    k = D * x * y * u * v
    return (x * v + y * u) * pow(1 + k, -1, P) % P, (y * v + x * u) * pow(1 - k, -1, P) % P


def times(n, point):
    sum_ = (0, 1)
    while n:
        if n & 1:
            sum_ = add(sum_, point)
        point, n = add(point, point), n >> 1
    return sum_


def point(y, sign):
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * ROOT % P
    if x * x % P != square:
        return None
    return (P - x if x and x & 1 != sign else x), y


B = point(4 * pow(5, -1, P) % P, 0)


def encoded(a):
    return (a[1] | (a[0] & 1) << 255).to_bytes(32, "little")


def edwards(u, sign=0):
    return point((u - 1) * pow(u + 1, P - 2, P) % P, sign)


def montgomery(a):
    return (1 + a[1]) * pow(1 - a[1], P - 2, P) % P


def number(hashed, *parts):
    return int.from_bytes(HASHES[hashed](b"".join(parts)).digest(), "little") % Q


def verifies(hashed, u, message, signature, sign=0, bound=2**253):
    a, s = edwards(u % P, sign), int.from_bytes(signature[32:], "little")
    if u >= P or s >= bound or a is None:
        return False
    h = number(hashed, signature[:32], encoded(a), message)
    return encoded(add(times(s, B), times(h, (P - a[0], a[1])))) == signature[:32]


def key(k):
    e = times(k, B)
    return e, (-k if e[0] & 1 else k) % Q


def sign(hashed, k, message, random):
    e, a = key(k)
    public = encoded((0, e[1]))
    r = number(hashed, (2**256 - 2).to_bytes(32, "little"), a.to_bytes(32, "little"), message, random)
    r_point = encoded(times(r, B))
    h = number(hashed, r_point, public, message)
    return r_point + ((r + h * a) % Q).to_bytes(32, "little")


def stream(name, length):
    return hashlib.shake_256(name.encode()).digest(length)


def clamped(value):
    return int.from_bytes(value, "little") & (2**254 - 8) | 2**254


def good():
    lengths = [0, 1, 31, 32, 33, 63, 64, 65, 111, 112, 127, 128, 129, 135, 136, 137, 191, 192, 200, 255, 256, 257, 300, 1000]
    for at, length in enumerate(lengths):
        hashed = list(HASHES)[at % len(HASHES)]
        private, message, random = stream(f"private {at}", 32), stream(f"message {at}", length), stream(f"random {at}", 64)
        k = clamped(private)
        e, _ = key(k)
        u, signature = montgomery(e), sign(hashed, k, message, random)
        assert verifies(hashed, u, message, signature)
        yield {"hash": hashed, "private": private.hex(), "public": u.to_bytes(32, "little").hex(), "sign": e[0] & 1, "message": message.hex(), "random": random.hex(),
               "signature": signature.hex()}


def under_few(u, why):
    """Anybody signs under a point of few multiples: here without a key."""
    a = edwards(u)
    for at in range(1000):
        message, r = str(at).encode(), 77 + at
        signature = encoded(times(r, B)) + r.to_bytes(32, "little")
        if a is not None and verifies("CKM_SHA512", u, message, signature):
            return bad(why, u, message, signature)
    raise AssertionError(why)


def bad(why, u, message, signature):
    return {"why": why, "hash": "CKM_SHA512", "public": u.to_bytes(32, "little").hex(), "message": message.hex(), "signature": signature.hex()}


def refused():
    message, one = b"message", 1
    u, signature = 9, sign("CKM_SHA512", one, b"message", bytes(64))
    s = int.from_bytes(signature[32:], "little")
    assert verifies("CKM_SHA512", u, message, signature)
    longer = signature[:32] + (s + Q).to_bytes(32, "little")
    assert s + Q >= 2**253 or verifies("CKM_SHA512", u, message, longer)
    yield bad("s and the order", u, message, longer)
    for bit in (253, 254, 255):
        yield bad(f"bit {bit} of s", u, message, signature[:32] + (s | 1 << bit).to_bytes(32, "little"))
    yield bad("the key and p", u + P, message, signature)
    yield bad("bit 255 of the key", u | 1 << 255, message, signature)
    a = edwards(u)
    # As Ed25519 would have it: with the other sign of the key.
    other = encoded((P - a[0], a[1]))
    k = Q - key(one)[1]
    h = number("CKM_SHA512", signature[:32], other, message)
    r = (s - number("CKM_SHA512", signature[:32], encoded(a), message) * key(one)[1]) % Q
    signed = signature[:32] + ((r + h * k) % Q).to_bytes(32, "little")
    assert verifies("CKM_SHA512", u, message, signed, sign=1)
    yield bad("the other sign of the key", u, message, signed)
    yield bad("R with its other sign", u, message, signature[:31] + bytes([signature[31] ^ 0x80]) + signature[32:])
    # R is the neutral element, written with p more.
    h = number("CKM_SHA512", (P + 1).to_bytes(32, "little"), encoded(a), message)
    yield bad("R that is no canonical point", u, message, (P + 1).to_bytes(32, "little") + (h * key(one)[1] % Q).to_bytes(32, "little"))
    eighth = next(y for y in range(2, P) if (e := point(y, 0)) and times(Q, times(2, e)) not in ((0, 1), (0, P - 1)) for y in [times(Q, e)[1]])
    yield under_few(0, "a key of order 2")
    yield under_few(1, "a key of order 4")
    yield under_few(montgomery(point(eighth, 0)), "a key of order 8")
    yield under_few(P - 1, "a key of order 4, by a division by 0")
    twist = next(u for u in range(2, 100) if edwards(u) is None)
    yield bad("a key on the twist", twist, message, signature)
    alice = {name: bytes.fromhex(value) for name, value in LIBSIGNAL.items()}
    u, signed = int.from_bytes(alice["public"], "little"), alice["signature"]
    assert signed[63] >> 7 == 1
    assert verifies("CKM_SHA512", u, alice["message"], signed[:63] + bytes([signed[63] & 0x7F]), sign=1)
    yield bad("libsignal's, with the sign of the key in s", u, alice["message"], signed)


def lines(name, vectors):
    return f'"{name}": [\n' + ",\n".join(json.dumps(vector) for vector in vectors) + "\n]"


with open("vectors.json", "w") as out:
    out.write('{"what": "made by make.py", "mechanism": "CKM_XEDDSA",\n' + lines("good", good()) + ",\n" + lines("refused", refused()) + "}\n")
