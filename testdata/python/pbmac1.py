# SPDX-License-Identifier: Apache-2.0
"""Gives a PKCS #12 file without a MAC one of RFC 9579: FROM TO HASH PRF PASSPHRASE [BYTES of the key]."""

import hashlib
import hmac
import pathlib
import sys

OIDS = {"sha256": 9, "sha384": 10, "sha512": 11}


def element(tag, *parts):
    content = b"".join(parts)
    length = len(content).to_bytes(4, "big").lstrip(b"\0") or b"\0"
    head = length if len(content) < 128 else bytes([0x80 | len(length)]) + length
    return bytes([tag]) + head + content


def content(der):
    """Of the first element."""
    first = der[1]
    start = 2 if first < 128 else 2 + (first & 127)
    length = first if first < 128 else int.from_bytes(der[2:start], "big")
    return der[start : start + length]


def number(value):
    return element(2, value.to_bytes(3, "big").lstrip(b"\0"))


def pkcs5(last):
    return element(6, bytes.fromhex("2a864886f70d0105") + bytes([last]))


def hash_function(name):
    return element(0x30, element(6, bytes.fromhex("2a864886f70d02") + bytes([OIDS[name]])), element(5))


source, target, name, prf, passphrase, *length = sys.argv[1:]
outer = content(pathlib.Path(source).read_bytes())
# Behind the version: the identifier, [0], an OCTET STRING.
safe = content(outer[3:])
sealed = content(content(safe[2 + safe[1] :]))
salt, size = b"saltsalt", int(length[0]) if length else hashlib.new(name).digest_size
key = hashlib.pbkdf2_hmac(prf, passphrase.encode(), salt, 2048, size)
derivation = element(0x30, element(4, salt), number(2048), number(size), hash_function(prf))
params = element(0x30, element(0x30, pkcs5(12), derivation), hash_function(name))
digest = element(4, hmac.digest(key, sealed, name))
info = element(0x30, element(0x30, pkcs5(14), params), digest)
mac = element(0x30, info, element(4, b"NOT USED"), number(1))
pathlib.Path(target).write_bytes(element(0x30, outer, mac))
