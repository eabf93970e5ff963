# SPDX-License-Identifier: Apache-2.0
"""Makes `groups.json`: vectors of Diffie-Hellman, DSA and old signatures of RSA. Computed by Python's integers and hashlib, each compared with `cryptography`
(OpenSSL). Run it here, with the primes of RFC 3526 and RFC 7919 from OpenSSL; the output is the same every time.

Keys are attributes; `params` are as in classics.py."""

import hashlib
import json
import subprocess
import tempfile

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dh, dsa, rsa, utils
from cryptography.hazmat.primitives.kdf.x963kdf import X963KDF

# RFC 5114 §2.2: a group with a subgroup, which no default policy takes.
SUBGROUP = (
    int(
        "ad107e1e9123a9d0d660faa79559c51fa20d64e5683b9fd1b54b1597b61d0a75e6fa141df95a56dbaf9a3c407ba1df15eb3d688a309c180e1de6b85a1274a0a6"
        "6d3f8152ad6ac2129037c9edefda4df8d91e8fef55b7394b7ad5b7d0b6c12207c9f98d11ed34dbf6c6ba0b2c8bbc27be6a00e0a0b9c49708b3bf8a317091883681"
        "286130bc8985db1602e714415d9330278273c7de31efdc7310f7121fd5a07415987d9adc0a486dcdf93acc44328387315d75e198c641a480cd86a1b9e587e8be60"
        "e69cc928b2b9c52172e413042e9b23f10b0e16e79763c9b53dcf4ba80a29e3fb73c16b8e75b97ef363e2ffa31f71cf9de5384e71b81c0ac4dffe0c10e64f",
        16,
    ),
    int(
        "ac4032ef4f2d9ae39df30b5c8ffdac506cdebe7b89998caf74866a08cfe4ffe3a6824a4e10b9a6f0dd921f01a70c4afaab739d7700c29f52c57db17c620a8652be"
        "5e9001a8d66ad7c17669101999024af4d027275ac1348bb8a762d0521bc98ae247150422ea1ed409939d54da7460cdb5f6c6b250717cbef180eb34118e98d119529a"
        "45d6f834566e3025e316a330efbb77a86f0c1ab15b051ae3d428c8f8acb70a8137150b8eeb10e183edd19963ddd9e263e4770589ef6aa21e7f5f2ff381b539cce340"
        "9d13cd566afbb48d6c019181e1bcfe94b30269edfe72fe9b6aa4bd7b5a0f1c71cfff4c19c418e1f6ec017981bc087f2a7065b384b890d3191f2bfa",
        16,
    ),
    int("801c0d34c58d93fe997177101f80535a4738cebcbf389a99b36371eb", 16),
)


def stream(name, length):
    """Bytes that look random and are always the same."""
    return hashlib.shake_256(name.encode()).digest(length)


def raw(number, length=None):
    return number.to_bytes(length or (number.bit_length() + 7) // 8, "big")


def known(name):
    key = subprocess.run(["openssl", "genpkey", "-algorithm", "DH", "-pkeyopt", f"group:{name}"], capture_output=True, check=True).stdout
    numbers = serialization.load_pem_private_key(key, None).parameters().parameter_numbers()
    assert numbers.g == 2
    return numbers.p


def agreed(p, g, x, y, q=None):
    """The shared secret, as OpenSSL says it, too."""
    parameters = dh.DHParameterNumbers(p, g, q)
    own = dh.DHPrivateNumbers(x, dh.DHPublicNumbers(pow(g, x, p), parameters)).private_key()
    shared = own.exchange(dh.DHPublicNumbers(y, parameters).public_key())
    assert shared == raw(pow(y, x, p), (p.bit_length() + 7) // 8)
    return shared


def attributes(key_type, p, g, value, q=None):
    key = {"CKA_KEY_TYPE": key_type, "CKA_PRIME": raw(p).hex(), "CKA_BASE": raw(g).hex(), "CKA_VALUE": raw(value).hex()}
    return key | ({"CKA_SUBPRIME": raw(q).hex()} if q else {})


def derived(mechanism, key, params, value, length=None):
    return {"mechanism": mechanism, "does": "derive", "private": key, "params": params, "length": length, "value": value.hex()}


def pkcs(name, length, count):
    p = known(name)
    for number in range(count):
        x, other = (int.from_bytes(stream(f"{name} {number} {side}", length), "big") for side in "ab")
        y = pow(2, other, p)
        shared = agreed(p, 2, x, y)
        key = attributes("CKK_DH", p, 2, x)
        for cut in (None, 16, len(shared) - 1):
            value = shared[-cut:] if cut else shared
            yield derived("CKM_DH_PKCS_DERIVE", key, ["=" + raw(y).hex()], value, cut)


def short(name):
    """A secret that begins with a zero, which stays."""
    p = known(name)
    x = int.from_bytes(stream(f"{name} short", 32), "big")
    for number in range(100000):
        y = pow(2, 1000 + number, p)
        shared = agreed(p, 2, x, y) if pow(y, x, p).bit_length() <= p.bit_length() - 8 else None
        if shared:
            yield derived("CKM_DH_PKCS_DERIVE", attributes("CKK_DH", p, 2, x), ["=" + raw(y).hex()], shared)
            return


def tlv(tag, content):
    length = len(content)
    return bytes([tag]) + (bytes([length]) if length < 128 else bytes([0x81, length])) + content


# The ciphers that the keys are for (RFC 3565, RFC 3370).
CEK = {
    "id-aes128-wrap": bytes.fromhex("0609608648016503040105"),
    "id-smime-alg-CMS3DESwrap": bytes.fromhex("060b2a864886f70d0109100306"),
}


def other_info(cek, parts, counter=1):
    """`OtherInfo` of RFC 2631 with the parts of ANSI X9.42, each tagged."""
    algorithm = tlv(0x30, CEK[cek] + tlv(4, counter.to_bytes(4, "big")))
    return tlv(0x30, algorithm + b"".join(tlv(0xA0 | number, tlv(4, part)) for number, part in enumerate(parts) if part))


def by_asn1(shared, length, cek, parts):
    """As `openssl kdf` says it, too."""
    blocks = (hashlib.sha1(shared + other_info(cek, parts, number)).digest() for number in range(1, 9))
    value = b"".join(blocks)[:length]
    options = {"digest": "SHA1", "hexkey": shared.hex(), "cekalg": cek, "use-keybits": "0"}
    names = ("hexpartyu-info", "hexpartyv-info", "hexsupp-pubinfo", "hexsupp-privinfo")
    options |= {name: part.hex() for name, part in zip(names, parts) if part}
    command = ["openssl", "kdf", "-binary", "-keylen", str(length)]
    command += [word for item in options.items() for word in ("-kdfopt", ":".join(item))]
    assert subprocess.run([*command, "X942KDF-ASN1"], capture_output=True, check=True).stdout == value
    return value


def asn1(key, shared, public):
    """What is derived by `CKD_SHA1_KDF_ASN1`, and other information that is not in that form."""
    public = [len(public), f"&{public.hex()}"]
    bits = (192).to_bytes(4, "big")
    for cek, parts, length in (
        ("id-smime-alg-CMS3DESwrap", (b"", b"", bits), 24),
        ("id-smime-alg-CMS3DESwrap", (stream("party A", 64), b"", bits), 24),
        ("id-aes128-wrap", (stream("party A", 200), stream("party B", 9), bits, b"more"), 100),
        ("id-aes128-wrap", (), 16),
    ):
        info = other_info(cek, parts)
        value = by_asn1(shared, length, cek, parts)
        yield derived("CKM_X9_42_DH_DERIVE", key, [3, len(info), f"&{info.hex()}", *public], value, length)
    info = other_info("id-aes128-wrap", (b"A", b"", bits))
    algorithm, strings = info[2 : 4 + info[3]], info[4 + info[3] :]
    for why, said in (
        ("none", b""),
        ("the counter 2", other_info("id-aes128-wrap", (), 2)),
        ("no algorithm", tlv(0x30, strings)),
        ("a byte behind it", info + b"\0"),
        ("a string twice", tlv(0x30, algorithm + 2 * strings[:5])),
        ("an untagged string", tlv(0x30, algorithm + tlv(4, bits))),
        ("a number that is no string", tlv(0x30, algorithm + tlv(0xA2, tlv(2, b"\1")))),
        *(
            (why, tlv(0x30, tlv(0x30, tlv(6, identifier) + tlv(4, (1).to_bytes(4, "big"))) + strings))
            for why, identifier in (
                ("an empty identifier", b""),
                ("an identifier that does not end", b"\x2a\x86"),
                ("an identifier with a zero before a number", b"\x2a\x80\1"),
            )
        ),
    ):
        info = [len(said), f"&{said.hex()}" if said else 0]
        yield derived("CKM_X9_42_DH_DERIVE", key, [3, *info, *public], b"", 16) | {"wrong": why}


def x942():
    safe = known("ffdhe2048")
    for name, (p, g, q) in (("ffdhe2048", (safe, 2, safe // 2)), ("RFC 5114", SUBGROUP)):
        assert pow(g, q, p) == 1
        x, other = (int.from_bytes(stream(f"{name} X9.42 {side}", 28), "big") % q for side in "ab")
        y = pow(g, other, p)
        shared = agreed(p, g, x, y, q)
        key = attributes("CKK_X9_42_DH", p, g, x, q)
        public = raw(y)
        for info, length in ((b"", 16), (b"other info", 40)):
            value = X963KDF(hashes.SHA1(), length, info or None).derive(shared)
            info = [len(info), f"&{info.hex()}" if info else 0]
            yield derived("CKM_X9_42_DH_DERIVE", key, [4, *info, len(public), f"&{public.hex()}"], value, length)
        yield derived("CKM_X9_42_DH_DERIVE", key, [1, 0, 0, len(public), f"&{public.hex()}"], shared)
        if name == "ffdhe2048":
            yield from asn1(key, shared, public)


HASHES = {
    "SHA1": hashes.SHA1(), "SHA224": hashes.SHA224(), "SHA256": hashes.SHA256(), "SHA384": hashes.SHA384(), "SHA512": hashes.SHA512(),
    "SHA3_224": hashes.SHA3_224(), "SHA3_256": hashes.SHA3_256(), "SHA3_384": hashes.SHA3_384(), "SHA3_512": hashes.SHA3_512(),
}


def signed():
    p, g, q = SUBGROUP
    x = int.from_bytes(stream("DSA", 27), "big") % q
    public = dsa.DSAPublicNumbers(pow(g, x, p), dsa.DSAParameterNumbers(p, q, g))
    message = b"what was signed long ago"
    for name, algorithm in HASHES.items():
        digest = hashlib.new(name.lower(), message).digest()
        k = int.from_bytes(stream(f"DSA {name}", 27), "big")
        r = pow(g, k, p) % q
        number = int.from_bytes(digest[: q.bit_length() // 8], "big")
        s = pow(k, -1, q) * (number + x * r) % q
        public.public_key().verify(utils.encode_dss_signature(r, s), message, algorithm)
        signature = (raw(r, 28) + raw(s, 28)).hex()
        keys = {"private": attributes("CKK_DSA", p, g, x, q), "public": attributes("CKK_DSA", p, g, public.y, q)}
        vector = {"mechanism": f"CKM_DSA_{name}", "does": "verify", "params": [], "msg": message.hex(), "sig": signature}
        yield keys | vector
        yield keys | vector | {"mechanism": "CKM_DSA", "msg": digest.hex()}


def encodings(private):
    der = serialization.Encoding.DER
    info = private.private_bytes(der, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = private.public_key().public_bytes(der, serialization.PublicFormat.SubjectPublicKeyInfo)
    return {"privateKeyInfo": info.hex(), "publicKeyInfo": public.hex()}


def keys():
    """As OpenSSL writes them; a group that it knows it would write as one of X9.42, with its order."""
    safe, (p, g, q) = known("ffdhe2048"), SUBGROUP
    x = int.from_bytes(stream("encoded", 27), "big")
    for name, group in (("CKK_DH", dh.DHParameterNumbers(safe, 5)), ("CKK_X9_42_DH", dh.DHParameterNumbers(p, g, q))):
        public = dh.DHPublicNumbers(pow(group.g, x, group.p), group)
        yield name, encodings(dh.DHPrivateNumbers(x, public).private_key())
    public = dsa.DSAPublicNumbers(pow(g, x, p), dsa.DSAParameterNumbers(p, q, g))
    yield "CKK_DSA", encodings(dsa.DSAPrivateNumbers(x, public).private_key())


def prime(name):
    """The next prime after bytes of the stream, for which 65537 works."""
    number = int.from_bytes(stream(name, 128), "big") | 3 << 1022 | 1
    while pow(2, number - 1, number) != 1 or pow(3, number - 1, number) != 1 or number % 65537 == 1:
        number += 2
    return number


def old_rsa():
    """Signatures of RSA by ANSI X9.31, as `openssl pkeyutl` makes them."""
    p, q = prime("p"), prime("q")
    n, d = p * q, pow(65537, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), rsa.RSAPublicNumbers(65537, n))
    pem = numbers.private_key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    public = {"CKA_KEY_TYPE": "CKK_RSA", "CKA_MODULUS": raw(n).hex(), "CKA_PUBLIC_EXPONENT": "010001"}
    private = public | {"CKA_PRIVATE_EXPONENT": raw(d).hex(), "CKA_PRIME_1": raw(p).hex(), "CKA_PRIME_2": raw(q).hex()}
    private |= {"CKA_EXPONENT_1": raw(d % (p - 1)).hex(), "CKA_EXPONENT_2": raw(d % (q - 1)).hex(), "CKA_COEFFICIENT": raw(pow(q, -1, p)).hex()}

    def x931(digest):
        with tempfile.NamedTemporaryFile() as key, tempfile.NamedTemporaryFile() as data:
            key.write(pem), key.flush()
            data.write(digest), data.flush()
            options = ["-pkeyopt", "digest:sha1", "-pkeyopt", "rsa_padding_mode:x931"]
            command = ["openssl", "pkeyutl", "-sign", "-inkey", key.name, "-in", data.name, *options]
            return subprocess.run(command, capture_output=True, check=True).stdout

    for number in range(6):
        message = stream(f"RSA message {number}", 40)
        sha1 = hashlib.sha1(message).digest()
        for mechanism, said, signature in (
            ("CKM_SHA1_RSA_X9_31", message, x931(sha1)),
            ("CKM_RSA_X9_31", sha1 + b"\x33\xcc", x931(sha1)),
        ):
            vector = {"mechanism": mechanism, "does": "verify", "params": [], "msg": said.hex(), "sig": signature.hex()}
            yield vector | {"private": private, "public": public, "same": True}


TESTS = [
    *pkcs("modp_2048", 32, 2), *pkcs("modp_3072", 40, 1), *pkcs("modp_4096", 40, 1), *pkcs("modp_6144", 48, 1), *pkcs("modp_8192", 50, 1),
    *pkcs("ffdhe2048", 29, 2), *pkcs("ffdhe3072", 35, 1), *pkcs("ffdhe4096", 41, 1), *pkcs("ffdhe6144", 47, 1), *pkcs("ffdhe8192", 50, 1),
    *pkcs("modp_1536", 28, 1), *short("ffdhe2048"), *x942(), *signed(), *old_rsa(),
]

with open("groups.json", "w", encoding="utf-8") as file:
    file.write('{"what": "made by groups.py", "keys": ' + json.dumps(dict(keys())) + ', "tests": [\n')
    file.write(",\n".join(map(json.dumps, TESTS)) + "\n]}\n")
