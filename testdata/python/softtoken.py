# SPDX-License-Identifier: Apache-2.0
"""Writes a keystore of Solaris' pkcs11_softtoken, format 2.20, after docs/commands/import.md alone.

softtoken.py DIRECTORY PASSPHRASE [empty|public]"""

import datetime
import hashlib
import hmac
import os
import struct
import sys

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, rsa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.x509.oid import NameOID

CERTIFICATE, PUBLIC, PRIVATE, SECRET, DOMAIN = 1, 2, 3, 4, 6
RSA, DSA, EC, GENERIC, RC4, DES, DES3, AES = 0, 1, 3, 0x10, 0x12, 0x13, 0x15, 0x1F
LABEL, SERIAL, ISSUER, SUBJECT, ID, EC_PARAMS = 3, 0x82, 0x81, 0x101, 0x102, 0x180
DERIVE, LOCAL, SENSITIVE, ENCRYPT, DECRYPT, SIGN, VERIFY, WRAP, UNWRAP, TRUSTED, EXTRACTABLE = (
    1 << bit for bit in (0, 1, 2, 4, 5, 6, 8, 10, 11, 12, 13)
)
SIGN_RECOVER, VERIFY_RECOVER = 1 << 7, 1 << 9
# What the softtoken gave keys of every type where the program did not say.
PUBLIC_DEFAULT = ENCRYPT | WRAP | VERIFY | VERIFY_RECOVER
PRIVATE_DEFAULT = DECRYPT | UNWRAP | SIGN | SIGN_RECOVER | EXTRACTABLE
SECRET_DEFAULT = ENCRYPT | DECRYPT | WRAP | UNWRAP | SIGN | VERIFY | EXTRACTABLE
P256 = bytes.fromhex("06082a8648ce3d030107")


def number(value):
    return struct.pack(">Q", value)


def value(data):
    return number(len(data)) + data + bytes(-len(data) % 8)


def integer(value, length=None):
    return value.to_bytes(length or (value.bit_length() + 7) // 8, "big")


def packed(kind, key_type, flags, attributes, values, private, first=b"", certificate_type=0):
    head = b"".join(map(number, (kind, key_type, certificate_type, flags, 0)))
    head += bytes([3 if private else 2, 0, 0, 0]) + struct.pack(">I", len(attributes))
    head += b"".join(number(name) + value(data) for name, data in attributes)
    return head + first + b"".join(map(value, values))


def objects(directory):
    """The public and the private ones, in the order of their numbers."""
    write = lambda name, data: open(os.path.join(directory, name), "wb").write(data)
    spki = lambda key: key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    site = rsa.generate_private_key(65537, 2048)
    write("site.pem", spki(site))
    n, e = site.public_key().public_numbers().n, 65537
    p = site.private_numbers()
    named = lambda label, id: [(LABEL, label.encode()), (ID, id)]
    yield False, packed(PUBLIC, RSA, PUBLIC_DEFAULT | LOCAL | TRUSTED, named("site", b"\1"),
                        [integer(n), integer(e)], False, number(2048))
    parts = [n, e, p.d, p.p, p.q, p.dmp1, p.dmq1, p.iqmp]
    yield True, packed(PRIVATE, RSA, PRIVATE_DEFAULT | SENSITIVE | LOCAL, named("site", b"\1"),
                       map(integer, parts), True)
    app = ec.generate_private_key(ec.SECP256R1())
    write("app.pem", spki(app))
    point = app.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )
    curve = named("app", b"\2") + [(EC_PARAMS, P256)]
    yield False, packed(PUBLIC, EC, PUBLIC_DEFAULT, curve, [point], False)
    scalar = integer(app.private_numbers().private_value, 32)
    yield True, packed(PRIVATE, EC, PRIVATE_DEFAULT | SENSITIVE, curve, [scalar], True)
    both = ENCRYPT | DECRYPT
    aes = bytes(range(32))
    write("backup.key", aes)
    yield True, packed(SECRET, AES, SECRET_DEFAULT | SENSITIVE, named("backup", b"\3"), [aes], True)
    seal = b"twenty bytes of seal"
    write("seal.key", seal)
    yield True, packed(SECRET, GENERIC, SIGN | VERIFY | EXTRACTABLE, named("seal", b""), [seal], True)
    yield True, packed(SECRET, DES, both, named("old", b"\5"), [bytes.fromhex("fedcba9876543210")], True)
    weak = dsa.generate_private_key(1024)
    d, q = weak.private_numbers(), weak.parameters().parameter_numbers()
    yield True, packed(PRIVATE, DSA, SIGN, named("dsa", b"\6"), map(integer, [q.p, q.q, q.g, d.x]), True)
    short = rsa.generate_private_key(65537, 1024).private_numbers()
    parts = [short.public_numbers.n, e, short.d, short.p, short.q, short.dmp1, short.dmq1, short.iqmp]
    yield True, packed(PRIVATE, RSA, PRIVATE_DEFAULT, named("short", b"\x08"), map(integer, parts), True)
    yield True, packed(SECRET, DES3, both, named("tar", b"\x09"), [bytes.fromhex("0123456789abcdef" * 3)], True)
    yield True, packed(SECRET, RC4, both, named("stream", b"\x0a"), [bytes(range(16))], True)
    yield False, packed(DOMAIN, DSA, 0, named("domain", b""), [], False)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "site")])
    begin = datetime.datetime(2009, 1, 1)
    certificate = x509.CertificateBuilder(name, name, site.public_key(), 17, begin, begin.replace(2039))
    certificate = certificate.sign(site, hashes.SHA256())
    der = certificate.public_bytes(serialization.Encoding.DER)
    write("site.der", der)
    subject = name.public_bytes()
    about = named("site", b"\1") + [(ISSUER, subject), (SERIAL, b"\2\1\x11"), (SUBJECT, subject)]
    yield False, packed(CERTIFICATE, 0, 0, about, [subject, der], False)


def main(directory, passphrase, what="all"):
    store = os.path.join(directory, "pkcs11_softtoken")
    for kind in ("public", "private"):
        os.makedirs(os.path.join(store, kind), 0o700)
    salts = [bytes(16) if what == "empty" else os.urandom(16) for _ in range(2)]
    keys = [hashlib.pbkdf2_hmac("sha1", passphrase.encode(), salt, 1000, 16) for salt in salts]
    count = 0
    for private, data in objects(directory) if what != "empty" else []:
        count += 1
        if private and what == "public":
            continue
        path = os.path.join(store, "private" if private else "public", f"obj{count}")
        iv, tag = bytes(16), bytes(16)
        if private:
            was = f"/export/home/you/.sunw/pkcs11_softtoken/private/obj{count}".encode()
            data = was.ljust(1024, b"\0") + data
            fill = 16 - len(data) % 16
            iv = os.urandom(16)
            cipher = Cipher(algorithms.AES(keys[0]), modes.CBC(iv)).encryptor()
            data = cipher.update(data + bytes([fill]) * fill) + cipher.finalize()
            tag = hmac.digest(keys[1], data, "md5")
        with open(path, "wb") as file:
            file.write(struct.pack(">I", 1) + iv + tag + data)
    hashed = b"$5$saltsalt$0123456789012345678901234567890123456789012"
    with open(os.path.join(store, "objstore_info"), "wb") as file:
        file.write(b"2.20".ljust(32, b"\0") + struct.pack(">II", count + 1, count + 1) + b"".join(salts))
        for text in (b"$5$saltsalt$", hashed):
            file.write(number(len(text)) + text)


main(*sys.argv[1:])
