# SPDX-License-Identifier: Apache-2.0
"""Makes `old_ciphers.json`, in the form of `classics.json`: ciphers of old and of some countries in the modes of PKCS#11, computed by
`cryptography` (OpenSSL), ARIA by the program `openssl`, Twofish by libgcrypt, RC5 as it is written out here, and the modes over their
ECB. Run it here; the output is the same every time."""

import ctypes
import hashlib
import json
import subprocess

from cryptography.hazmat.decrepit.ciphers.algorithms import CAST5, IDEA, RC2, SEED, Blowfish, Camellia, TripleDES
from cryptography.hazmat.decrepit.ciphers.modes import CFB, CFB8, OFB
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.cmac import CMAC


def stream(name, length):
    """Bytes that look random and are always the same."""
    return hashlib.shake_256(name.encode()).digest(length)


def odd(key):
    """With the parity that DES keys have."""
    return bytes(byte ^ (byte.bit_count() + 1) % 2 for byte in key)


def text(data):
    """A pointer and a length."""
    return [f"&{data.hex()}", len(data)]


def xor(one, other):
    return bytes(a ^ b for a, b in zip(one, other))


def library(algorithm, mode, key, data):
    return Cipher(algorithm(key), mode).encryptor().update(data)


def des(key):
    """One key, and two, as three."""
    return TripleDES((key * 3)[:24])


def program(name, key, data):
    """ECB."""
    args = ["openssl", "enc", f"-{name}-{8 * len(key)}-ecb", "-nopad", "-K", key.hex()]
    return subprocess.run(args, input=data, capture_output=True, check=True).stdout


def by(algorithm):
    return lambda key, data: library(algorithm, modes.ECB(), key, data) if data else b""


def rc2(key, data):
    """All of the key counts; the library has only CBC of it."""
    blocks = [library(RC2, modes.CBC(bytes(8)), key, data[at:at + 8]) for at in range(0, len(data), 8)]
    return b"".join(blocks)


def twofish(key, data):
    """GCRY_CIPHER_TWOFISH, _TWOFISH128; libgcrypt has no keys of 192 bits."""
    lib = ctypes.CDLL("libgcrypt.so.20")
    lib.gcry_check_version(None)
    handle, out = ctypes.c_void_p(), ctypes.create_string_buffer(len(data))
    assert not lib.gcry_cipher_open(ctypes.byref(handle), {16: 303, 32: 10}[len(key)], 1, 0)
    assert not lib.gcry_cipher_setkey(handle, key, ctypes.c_size_t(len(key)))
    assert not data or not lib.gcry_cipher_encrypt(handle, out, ctypes.c_size_t(len(data)), data, ctypes.c_size_t(len(data)))
    lib.gcry_cipher_close(handle)
    return out.raw[:len(data)]


def rc5(size, rounds, key, data):
    """RFC 2040 §4, of words of `size` bytes."""
    bits, mask = 8 * size, 2**(8 * size) - 1
    left = lambda word, by: (word << by % bits | word >> (-by) % bits) & mask
    first, step = {2: (0xb7e1, 0x9e37), 4: (0xb7e15163, 0x9e3779b9), 8: (0xb7e151628aed2a6b, 0x9e3779b97f4a7c15)}[size]
    table = [(first + at * step) & mask for at in range(2 * rounds + 2)]
    words = [int.from_bytes(key[at:at + size], "little") for at in range(0, len(key), size)] or [0]
    a = b = 0
    for at in range(3 * max(len(table), len(words))):
        i, j = at % len(table), at % len(words)
        a = table[i] = left((table[i] + a + b) & mask, 3)
        b = words[j] = left((words[j] + a + b) & mask, a + b)
    out = b""
    for at in range(0, len(data), 2 * size):
        a, b = (int.from_bytes(data[at + half:at + half + size], "little") for half in (0, size))
        a, b = (a + table[0]) & mask, (b + table[1]) & mask
        for one, other in zip(table[2::2], table[3::2]):
            a = (left(a ^ b, b) + one) & mask
            b = (left(b ^ a, a) + other) & mask
        out += a.to_bytes(size, "little") + b.to_bytes(size, "little")
    return out


# Name, type of key, ECB, length of a block, lengths of keys, modes beside ECB.
BLOCKS = ["ECB", "CBC", "CBC_PAD", "MAC", "MAC_GENERAL"]
DATA = ["ECB_ENCRYPT_DATA", "CBC_ENCRYPT_DATA"]
# Without the encryption, of which there are vectors elsewhere.
WRAPS = ["ECB wraps", "CBC wraps"]
# What is wrapped: type and length.
WRAPPED = [("GENERIC_SECRET", 1), ("GENERIC_SECRET", 32), ("GENERIC_SECRET", 20), ("AES", 24), ("DES3", 24), ("SEED", 16)]
CIPHERS = [
    ("DES", "DES", by(des), 8, [8], BLOCKS + DATA + ["OFB64", "OFB8", "CFB64", "CFB8"]),
    ("DES3", "DES2", by(des), 8, [16], ["MAC", "MAC_GENERAL", "CMAC", "CMAC_GENERAL"]),
    ("DES3", "DES3", by(des), 8, [24], ["MAC", "MAC_GENERAL", "CMAC", "CMAC_GENERAL"]),
    ("DES3", "DES3", by(des), 8, [24], WRAPS),
    ("AES", "AES", by(AES), 16, [16, 32], WRAPS),
    ("CAMELLIA", "CAMELLIA", by(Camellia), 16, [16, 24, 32], BLOCKS + DATA + ["CTR"]),
    ("ARIA", "ARIA", lambda key, data: program("aria", key, data), 16, [16, 24, 32], BLOCKS + DATA),
    ("SEED", "SEED", by(SEED), 16, [16], BLOCKS + DATA),
    ("CAST5", "CAST5", by(CAST5), 8, [5, 10, 16], BLOCKS),
    ("IDEA", "IDEA", by(IDEA), 8, [16], BLOCKS),
    ("BLOWFISH", "BLOWFISH", by(Blowfish), 8, [4, 16, 56], ["CBC", "CBC_PAD"]),
    ("TWOFISH", "TWOFISH", twofish, 16, [16, 32], ["CBC", "CBC_PAD"]),
    ("RC2", "RC2", rc2, 8, [16], BLOCKS),
    ("RC5", "RC5", lambda key, data: rc5(2, 12, key, data), 4, [8], BLOCKS),
    ("RC5", "RC5", lambda key, data: rc5(4, 16, key, data), 8, [1, 16], BLOCKS),
    ("RC5", "RC5", lambda key, data: rc5(8, 255, key, data), 16, [255], BLOCKS),
]

# What RC2 and RC5 have before everything else in their parameters, by the length of a block.
TUNED = {("RC2", 8): [128], ("RC5", 4): [2, 12], ("RC5", 8): [4, 16], ("RC5", 16): [8, 255]}


def cbc(ecb, key, iv, data):
    out = b""
    for at in range(0, len(data), len(iv)):
        iv = ecb(key, xor(iv, data[at:at + len(iv)]))
        out += iv
    return out


def chained(ecb, key, block, message):
    """The last block of a chain, of a message that is filled up by zeros."""
    filled = message + bytes(-len(message) % block) if message else bytes(block)
    return cbc(ecb, key, bytes(block), filled)[-block:]


def feedback(ecb, key, iv, data, unit, cipher):
    out, block = b"", len(iv)
    for at in range(0, len(data), unit):
        mask = ecb(key, iv)[:unit]
        part = xor(mask, data[at:at + unit])
        iv = (iv + (part if cipher else mask))[-block:]
        out += part
    return out


def counter(ecb, key, first, data):
    number = int.from_bytes(first)
    out = b""
    for at in range(0, len(data), 16):
        out += xor(ecb(key, (number % 2**128).to_bytes(16)), data[at:at + 16])
        number += 1
    return out


def vectors(name, kind, ecb, block, size, mode):
    key = stream(f"key {name} {size}", size)
    key = odd(key) if name.startswith("DES") else key
    iv = stream(f"iv {name} {size}", block)
    row = {"mechanism": f"CKM_{name}_{mode.split()[0]}", "type": f"CKK_{kind}", "key": key.hex()}

    def sealed(params, message, ct):
        return row | {"does": "encrypt", "params": params, "msg": message.hex(), "ct": ct.hex()}

    def mac(params, message, tag):
        return row | {"does": "mac", "params": params, "msg": message.hex(), "tag": tag.hex()}

    tuned = TUNED.get((name, block), [])
    head = tuned + (text(iv) if name == "RC5" else [f"={iv.hex()}"])
    if mode in ["ECB", "CBC"] + WRAPS:
        for kind, length in WRAPPED:
            value = stream(f"wrapped {name} {kind} {length}", length)
            value = odd(value) if kind == "DES3" else value
            filled = value + bytes(-length % block)
            wrapped = ecb(key, filled) if mode[0] == "E" else cbc(ecb, key, iv, filled)
            params = tuned if mode[0] == "E" else head
            sealing = {"does": "wrap", "params": params, "as": f"CKK_{kind}", "value": value.hex()}
            yield row | sealing | {"wrapped": wrapped.hex()}
    if mode in ["ECB", "CBC"]:
        for count in [0, 1, 2, 3, 9]:
            message = stream(f"{mode} {name} {count}", count * block)
            ct = ecb(key, message) if mode == "ECB" else cbc(ecb, key, iv, message)
            yield sealed(tuned if mode == "ECB" else head, message, ct)
    elif mode == "CBC_PAD":
        for length in [0, 1, block - 1, block, block + 1, 2 * block, 5 * block + 3]:
            message = stream(f"{mode} {name} {length}", length)
            padding = block - length % block
            yield sealed(head, message, cbc(ecb, key, iv, message + bytes([padding] * padding)))
    elif mode == "CTR":
        for bits, first in [(128, iv), (32, iv[:12] + b"\0\0\0\1"), (8, iv[:15] + b"\xf0")]:
            for length in [0, 1, 16, 33, 100]:
                message = stream(f"{mode} {name} {length}", length)
                yield sealed([bits, f"={first.hex()}"], message, counter(ecb, key, first, message))
    elif mode[:3] in ["CFB", "OFB"]:
        unit, cipher = int(mode[3:]) // 8, mode.startswith("C")
        for length in [0, 1, 7, 8, 9, 24, 61]:
            message = stream(f"{mode} {name} {length}", length)
            ct = feedback(ecb, key, iv, message, unit, cipher)
            other = {"CFB8": CFB8, "CFB64": CFB, "OFB64": OFB}.get(mode)
            assert not other or library(des, other(iv), key, message) == ct
            yield sealed(head, message, ct)
    elif mode in WRAPS:
        pass
    elif mode.endswith("DATA"):
        message = stream(f"{mode} {name}", 2 * block)
        params = head + text(message) if mode.startswith("CBC") else text(message)
        value = cbc(ecb, key, iv, message) if mode.startswith("CBC") else ecb(key, message)
        for length in [None, 10]:
            derived = {"does": "derive", "params": params, "length": length, "value": value[:length].hex()}
            yield row | derived
    else:
        for length in [0, 1, block - 1, block, block + 1, 3 * block, 61]:
            message = stream(f"{mode} {name} {length}", length)
            if mode.startswith("CMAC"):
                function = CMAC(des(key))
                function.update(message)
                tag = function.finalize()
            else:
                tag = chained(ecb, key, block, message)
            usual = len(tag) if mode == "CMAC" else len(tag) // 2
            for wanted in [block, 3] if mode.endswith("GENERAL") else [usual]:
                params = [wanted] if mode.endswith("GENERAL") else []
                yield mac(tuned + params, message, tag[:wanted])


def main():
    every = [(cipher[:4], size, mode) for cipher in CIPHERS for size in cipher[4] for mode in cipher[5]]
    tests = [test for cipher, size, mode in every for test in vectors(*cipher, size, mode)]
    rows = ",\n".join("    " + json.dumps(test) for test in tests)
    with open("old_ciphers.json", "w") as file:
        file.write(f'{{\n  "source": "computed with OpenSSL by old_ciphers.py",\n  "tests": [\n{rows}\n  ]\n}}\n')


main()
