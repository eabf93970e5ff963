# SPDX-License-Identifier: Apache-2.0
"""Makes `encapsulation.json`: ciphertexts of RSA, ECDH and Diffie-Hellman as C_DecapsulateKey takes them (PKCS#11 3.2 §6.1, §6.3,
§6.4), and their secrets, by `cryptography` (OpenSSL); the bare operation of RSA and the groups modulo a prime by Python's numbers.
Run it here, with OpenSSL 3.2 or later in `cryptography`; the output is the same every time but for the ciphertexts of RSA, whose key
is that of `classics.json`. `classics.py` says what `params` is."""

import hashlib
import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dh, ec, padding, rsa, x25519
from cryptography.hazmat.primitives.kdf.concatkdf import ConcatKDFHash
from cryptography.hazmat.primitives.kdf.x963kdf import X963KDF

CKM = {"SHA1": 0x220, "SHA256": 0x250, "SHA512": 0x270}
MGF = {"SHA1": 1, "SHA256": 2, "SHA512": 4}
CKD_NULL, CKD_SHA1_KDF, CKD_SHA1_KDF_CONCATENATE, CKD_SHA256_KDF, CKD_SHA256_KDF_SP800 = 1, 2, 4, 6, 0x10
OIDS = {"secp256r1": "06082a8648ce3d030107", "secp384r1": "06052b81040022", "secp521r1": "06052b81040023"}


def stream(name, length):
    """Bytes that look random and are always the same."""
    return hashlib.shake_256(name.encode()).digest(length)


def text(data):
    """A pointer and a length."""
    return [f"&{data.hex()}" if data else 0, len(data)]


def vector(mechanism, pair, params, ciphertext, value, length=None, wrong=None):
    made = {"mechanism": mechanism, "does": "decapsulate"} | dict(zip(("private", "public"), pair))
    made |= {"params": params, "ct": ciphertext.hex(), "value": value.hex(), "length": length}
    return made | ({"wrong": wrong} if wrong else {})


def of_rsa():
    with open("classics.json") as file:
        said = next(t for t in json.load(file)["tests"] if t["mechanism"] == "CKM_RSA_AES_KEY_WRAP")["private"]
    n, e, d, p, q = (int(said[f"CKA_{name}"], 16) for name in
                     ("MODULUS", "PUBLIC_EXPONENT", "PRIVATE_EXPONENT", "PRIME_1", "PRIME_2"))
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), rsa.RSAPublicNumbers(e, n))
    key = numbers.private_key()
    public = key.public_key()
    pair = said, {name: said[name] for name in ("CKA_KEY_TYPE", "CKA_MODULUS", "CKA_PUBLIC_EXPONENT")}
    for length in (16, 32, 245):
        secret = stream(f"PKCS #1 {length}", length)
        sealed = public.encrypt(secret, padding.PKCS1v15())
        yield vector("CKM_RSA_PKCS", pair, [], sealed, secret, length if length == 16 else None)
        yield vector("CKM_RSA_PKCS", pair, [], sealed, secret, length - 1, "another length")
    # What has no padding opens as OpenSSL's implicit rejection has it.
    found = 0
    for at in range(100):
        sealed = stream(f"no padding {at}", 256)
        secret = key.decrypt(sealed, padding.PKCS1v15()) if int.from_bytes(sealed) < n else b""
        if len(secret) >= 14 and found < 3:
            found += 1
            yield vector("CKM_RSA_PKCS", pair, [], sealed, secret)
    for name, label in (("SHA1", b""), ("SHA256", b""), ("SHA512", b"a label")):
        hash_ = getattr(hashes, name)()
        by = padding.OAEP(padding.MGF1(hash_), hash_, label or None)
        params = [CKM[name], MGF[name], 1, *text(label)]
        secret = stream(f"OAEP {name}", 48)
        sealed = public.encrypt(secret, by)
        yield vector("CKM_RSA_PKCS_OAEP", pair, params, sealed, secret)
        yield vector("CKM_RSA_PKCS_OAEP", pair, [*params[:3], *text(b"another")], sealed, secret, None, "another label")
    number = int.from_bytes(stream("RSASVE", 256)) % n
    sealed, secret = pow(number, e, n).to_bytes(256), number.to_bytes(256)
    yield vector("CKM_RSA_X_509", pair, [], sealed, secret)
    yield vector("CKM_RSA_X_509", pair, [], sealed, secret, 32, "a piece of it")
    for number in (0, 1, n - 1, n):
        yield vector("CKM_RSA_X_509", pair, [], number.to_bytes(256), secret, None, "no secret")


def der(point):
    length = bytes([len(point)]) if len(point) < 128 else bytes([0x81, len(point)])
    return b"\4" + length + point


def agreed(mechanism, pair, secret, public):
    """By each derivation function."""
    shared = b"what both know"
    none = [CKD_NULL, 0, 0, 0, 0]
    yield vector(mechanism, pair, none, public, secret)
    yield vector(mechanism, pair, none, public, secret[-16:], 16)
    yield vector(mechanism, pair, none, public, bytes(len(secret) + 1), len(secret) + 1, "more than there is")
    yield vector(mechanism, pair, none, public[:-1], secret, None, "a piece of it")
    by = [(CKD_SHA1_KDF_CONCATENATE, X963KDF, hashes.SHA1())]
    if "ECDH" in mechanism:
        yield vector(mechanism, pair, none, der(public), secret)
        by = [(CKD_SHA1_KDF, X963KDF, hashes.SHA1()), (CKD_SHA256_KDF, X963KDF, hashes.SHA256()),
              (CKD_SHA256_KDF_SP800, ConcatKDFHash, hashes.SHA256())]
    for kdf, function, hash_ in by:
        value = function(hash_, 50, shared).derive(secret)
        params = [kdf, len(shared), f"&{shared.hex()}", 0, 0]
        yield vector(mechanism, pair, params, public, value, 50)
        yield vector(mechanism, pair, params, public, value, None, "no length")


def point(key):
    form = serialization.PublicFormat.UncompressedPoint
    return key.public_bytes(serialization.Encoding.X962, form)


def of_curves():
    for mechanism in ("CKM_ECDH1_DERIVE", "CKM_ECDH1_COFACTOR_DERIVE"):
        for name, curve in (("secp256r1", ec.SECP256R1()), ("secp384r1", ec.SECP384R1()), ("secp521r1", ec.SECP521R1())):
            size = (curve.key_size + 7) // 8
            number = int.from_bytes(stream(f"{name} here", size)) >> 8
            key = ec.derive_private_key(number, curve)
            own = ec.derive_private_key(int.from_bytes(stream(f"{name} there", size)) >> 8, curve)
            domain = {"CKA_KEY_TYPE": "CKK_EC", "CKA_EC_PARAMS": OIDS[name]}
            pair = (domain | {"CKA_VALUE": number.to_bytes(size).hex()},
                    domain | {"CKA_EC_POINT": der(point(key.public_key())).hex()})
            public = point(own.public_key())
            yield from agreed(mechanism, pair, own.exchange(ec.ECDH(), key.public_key()), public)
            off = public[:-1] + bytes([public[-1] ^ 1])
            yield vector(mechanism, pair, [CKD_NULL, 0, 0, 0, 0], off, b"", None, "not on the curve")
    key, own = (x25519.X25519PrivateKey.from_private_bytes(stream(f"X25519 {who}", 32)) for who in ("here", "there"))
    domain = {"CKA_KEY_TYPE": "CKK_EC_MONTGOMERY", "CKA_EC_PARAMS": "06032b656e"}
    public = key.public_key().public_bytes_raw()
    pair = domain | {"CKA_VALUE": key.private_bytes_raw().hex()}, domain | {"CKA_EC_POINT": der(public).hex()}
    secret = own.exchange(key.public_key())
    yield from agreed("CKM_ECDH1_DERIVE", pair, secret, own.public_key().public_bytes_raw())
    yield vector("CKM_ECDH1_DERIVE", pair, [CKD_NULL, 0, 0, 0, 0], bytes(32), b"", None, "of small order")


def of_groups():
    with open("groups.json") as file:
        tests = json.load(file)["tests"]
    for mechanism, key_type in (("CKM_DH_PKCS_DERIVE", "CKK_DH"), ("CKM_X9_42_DH_DERIVE", "CKK_X9_42_DH")):
        said = next(t for t in tests if t["mechanism"] == mechanism and len(t["private"]["CKA_PRIME"]) >= 512)["private"]
        p, g = (int(said[f"CKA_{name}"], 16) for name in ("PRIME", "BASE"))
        domain = {name: value for name, value in said.items() if name != "CKA_VALUE"}
        size = (p.bit_length() + 7) // 8
        own, here = (int.from_bytes(stream(f"{mechanism} {who}", 32)) for who in ("there", "here"))
        pair = domain | {"CKA_VALUE": here.to_bytes(32).hex()}, domain | {"CKA_VALUE": f"{pow(g, here, p):0{2 * size}x}"}
        numbers = dh.DHParameterNumbers(p, g)
        there = dh.DHPrivateNumbers(own, dh.DHPublicNumbers(pow(g, own, p), numbers)).private_key()
        secret = there.exchange(dh.DHPublicNumbers(pow(g, here, p), numbers).public_key()).rjust(size, b"\0")
        assert int.from_bytes(secret) == pow(g, own * here, p)
        public = pow(g, own, p).to_bytes(size)
        if key_type == "CKK_X9_42_DH":
            made = agreed(mechanism, pair, secret, public)
        else:
            made = (v | {"params": []} for v in agreed(mechanism, pair, secret, public) if v["params"][0] == CKD_NULL)
        yield from (v for v in made if v.get("wrong") != "a piece of it")
        none = [CKD_NULL, 0, 0, 0, 0] if key_type == "CKK_X9_42_DH" else []
        for number in (0, 1, p - 1, p):
            yield vector(mechanism, pair, none, number.to_bytes(size), b"", None, "no public value")
        yield vector(mechanism, pair, none, b"\0" + public, secret, None, "too long")
        # Another begins with zeros, which need not be there.
        own = next(own for own in range(2**200, 2**201) if pow(g, own, p) >> (8 * size - 8) == 0)
        secret, public = pow(g, own * here, p).to_bytes(size), pow(g, own, p).to_bytes(size)
        yield vector(mechanism, pair, none, public, secret)
        yield vector(mechanism, pair, none, public.lstrip(b"\0"), secret)


rows = ",\n".join("    " + json.dumps(test) for part in (of_rsa, of_curves, of_groups) for test in part())
with open("encapsulation.json", "w") as file:
    file.write(f'{{\n  "source": "encapsulation.py",\n  "tests": [\n{rows}\n  ]\n}}\n')
