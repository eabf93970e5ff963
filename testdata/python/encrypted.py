# SPDX-License-Identifier: Apache-2.0
"""Version 2 of the format of encrypted files, read and written after docs/commands/encrypt.md alone.

encrypted.py seal|open KEY|passphrase:TEXT IN OUT"""

import hashlib
import os
import struct
import sys

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

CHUNK = 65536


def user_key(secret, salt, iterations):
    if iterations == 0:
        return open(secret, "rb").read()
    passphrase = secret.removeprefix("passphrase:").encode()
    return hashlib.pbkdf2_hmac("sha256", passphrase, salt, iterations, 32)


def nonce(counter, last):
    return bytes(7) + struct.pack(">IB", counter, last)


def seal(secret, data):
    iterations = 1000 if secret.startswith("passphrase:") else 0
    start = struct.pack(">II", 2, iterations) + os.urandom(16)
    iv, file_key = os.urandom(12), os.urandom(32)
    sealed = AESGCM(user_key(secret, start[8:], iterations)).encrypt(iv, file_key, start)
    out = [start, iv, sealed]
    pieces = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)] or [b""]
    for counter, piece in enumerate(pieces):
        last = counter == len(pieces) - 1
        out.append(AESGCM(file_key).encrypt(nonce(counter, last), piece, b""))
    return b"".join(out)


def unseal(secret, data):
    version, iterations = struct.unpack(">II", data[:8])
    assert version == 2
    assert (iterations != 0) == secret.startswith("passphrase:")
    key = user_key(secret, data[8:24], iterations)
    file_key = AESGCM(key).decrypt(data[24:36], data[36:84], data[:24])
    data, out, counter = data[84:], [], 0
    while True:
        chunk, data = data[: CHUNK + 16], data[CHUNK + 16 :]
        out.append(AESGCM(file_key).decrypt(nonce(counter, not data), chunk, b""))
        if not data:
            return b"".join(out)
        counter += 1


what, secret, source, target = sys.argv[1:]
work = {"seal": seal, "open": unseal}[what]
result = work(secret, open(source, "rb").read())
open(target, "wb").write(result)
