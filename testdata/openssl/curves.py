# SPDX-License-Identifier: Apache-2.0
"""Makes `curves.json`: secrets and signatures on every curve that `openssl` has by name, and its parameters for them. Computed by Python's integers; run it
here, the output is the same every time.

A secret has two forms, without the cofactor and with it. A signature is ECDSA of SHA-256 of the message."""

import hashlib
import json
import re
import subprocess

MESSAGE = b"What is signed on every curve."
# Without those of WAP and IPsec, and SM2, which has its own signatures.
LEFT_OUT = ("wap-", "Oakley-", "SM2")


def said(*arguments):
    return subprocess.run(["openssl", "ecparam", *arguments], capture_output=True, check=True).stdout


def number(text, label):
    found = re.search(label + r":\s*(?:(\d+) \(0x|\n?((?:\s+[0-9a-f:]+\n)+))", text)
    return int(found[1]) if found[1] else int(re.sub(r"[\s:]", "", found[2]), 16)


class Prime:
    def __init__(self, p):
        self.p = p

    def add(self, a, b):
        return (a + b) % self.p

    def minus(self, a):
        return -a % self.p

    def times(self, a, b):
        return a * b % self.p

    def inverse(self, a):
        return pow(a, -1, self.p)


class Binary:
    def __init__(self, polynomial):
        self.polynomial, self.degree = polynomial, polynomial.bit_length() - 1

    def add(self, a, b):
        return a ^ b

    def minus(self, a):
        return a

    def times(self, a, b):
        product = 0
        while b:
            if b & 1:
                product ^= a
            a, b = a << 1, b >> 1
            if a >> self.degree:
                a ^= self.polynomial
        return product

    def inverse(self, a):
        u, v, g, h = a, self.polynomial, 1, 0
        while u != 1:
            shift = u.bit_length() - v.bit_length()
            if shift < 0:
                u, v, g, h, shift = v, u, h, g, -shift
            u, g = u ^ v << shift, g ^ h << shift
        return g


class Curve:
    def __init__(self, name):
        text = said("-name", name, "-param_enc", "explicit", "-text", "-noout").decode()
        self.binary = "characteristic-two" in text
        modulus = number(text, "Polynomial" if self.binary else "Prime")
        self.field = (Binary if self.binary else Prime)(modulus)
        self.length = (modulus.bit_length() - self.binary + 7) // 8
        self.a, self.b = number(text, "A"), number(text, "B")
        self.order, self.cofactor = number(text, "Order"), number(text, "Cofactor")
        base = number(text, r"Generator \(uncompressed\)")
        self.base = base >> 8 * self.length & (1 << 8 * self.length) - 1, base & (1 << 8 * self.length) - 1

    def add(self, one, two):
        if one is None or two is None:
            return one or two
        f, (x1, y1), (x2, y2) = self.field, one, two
        if x1 == x2:
            if y1 != y2 or (x1 == 0 if self.binary else y1 == 0):
                return None
            if self.binary:
                slope = f.add(x1, f.times(y1, f.inverse(x1)))
            else:
                slope = f.times(3 * x1 * x1 + self.a, f.inverse(2 * y1))
        else:
            slope = f.times(f.add(y1, f.minus(y2)), f.inverse(f.add(x1, f.minus(x2))))
        if self.binary:
            x = f.times(slope, slope) ^ slope ^ x1 ^ x2 ^ self.a
            return x, f.times(slope, x1 ^ x) ^ x ^ y1
        x = (slope * slope - x1 - x2) % f.p
        return x, (slope * (x1 - x) - y1) % f.p

    def times(self, scalar, point):
        sum_ = None
        for bit in bin(scalar)[2:]:
            sum_ = self.add(sum_, sum_)
            if bit == "1":
                sum_ = self.add(sum_, point)
        return sum_

    def scalar(self, name):
        """Looks random and is always the same."""
        return int.from_bytes(hashlib.shake_256(name.encode()).digest(100), "big") % (self.order - 1) + 1

    def point(self, point):
        return "04" + "".join(n.to_bytes(self.length, "big").hex() for n in point)

    def sign(self, private, k):
        excess = max(256 - self.order.bit_length(), 0)
        digest = int.from_bytes(hashlib.sha256(MESSAGE).digest(), "big") >> excess
        r = self.times(k, self.base)[0] % self.order
        s = pow(k, -1, self.order) * (digest + r * private) % self.order
        return "".join(n.to_bytes((self.order.bit_length() + 7) // 8, "big").hex() for n in (r, s))


def vector(name):
    curve = Curve(name)
    assert curve.times(curve.order, curve.base) is None
    own, other, k = (curve.scalar(f"{name} {what}") for what in ("own", "other", "k"))
    peer = curve.times(other, curve.base)
    secret = curve.times(own, peer)
    cleared = curve.times(curve.cofactor, secret)
    return {
        "curve": name,
        "params": said("-name", name, "-outform", "DER").hex(),
        "bits": curve.order.bit_length(),
        "cofactor": curve.cofactor,
        "private": own.to_bytes((curve.order.bit_length() + 7) // 8, "big").hex(),
        "point": curve.point(curve.times(own, curve.base)),
        "peer": curve.point(peer),
        "secret": secret[0].to_bytes(curve.length, "big").hex(),
        "secretWithCofactor": cleared[0].to_bytes(curve.length, "big").hex(),
        "signature": curve.sign(own, k),
    }


names = [line.split(":")[0].strip() for line in said("-list_curves").decode().split("\n") if ":" in line]
vectors = [vector(name) for name in names if not name.startswith(LEFT_OUT)]
lines = ",\n".join(json.dumps(vector) for vector in vectors)
with open("curves.json", "w") as file:
    file.write(f'{{"what": "made by curves.py", "message": "{MESSAGE.hex()}", "vectors": [\n{lines}\n]}}\n')
