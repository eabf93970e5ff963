# SPDX-License-Identifier: Apache-2.0
"""Makes the vectors of this folder with OpenSSL (through Python's hashlib and `cryptography`): for
mechanisms of which the other folders have none. Run it here; all output but `signatures` is the same
every time."""

import hashlib
import hmac
import json

from cryptography.hazmat.decrepit.ciphers.algorithms import ARC4, TripleDES
from cryptography.hazmat.decrepit.ciphers.modes import CFB
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

DIGESTS = [
    "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha512_224", "sha512_256",
    "sha3_224", "sha3_256", "sha3_384", "sha3_512",
]
LENGTHS = [0, 1, 3, 55, 56, 63, 64, 65, 71, 72, 104, 111, 112, 127, 128, 129, 135, 136, 143, 144, 300]


def stream(name, length):
    """Bytes that look random and are always the same."""
    return hashlib.shake_256(name.encode()).digest(length)


def write(name, tests):
    with open(f"{name}.json", "w") as file:
        source = "computed with OpenSSL 3 by make.py"
        rows = ",\n".join("    " + json.dumps(test) for test in tests)
        file.write(f'{{\n  "source": "{source}",\n  "tests": [\n{rows}\n  ]\n}}\n')


def digests():
    for name in DIGESTS:
        for length in LENGTHS:
            message = stream(f"{name} {length}", length)
            digest = hashlib.new(name, message).hexdigest()
            yield {"hash": name, "msg": message.hex(), "digest": digest}


def macs():
    for name in DIGESTS:
        for length in [1, 20, 64, 65, 128, 129, 144, 200]:
            key = stream(f"key {name} {length}", length)
            message = stream(f"message {name} {length}", 3 * length)
            tag = hmac.new(key, message, name).hexdigest()
            yield {"hash": name, "key": key.hex(), "msg": message.hex(), "tag": tag}


def sealed(mechanism, algorithm, mode, key, iv, message):
    """One vector: what the mechanism makes of the message."""
    encryptor = Cipher(algorithm, mode).encryptor()
    ct = encryptor.update(message) + encryptor.finalize()
    return {"mechanism": mechanism, "key": key.hex(), "iv": iv.hex(), "msg": message.hex(), "ct": ct.hex()}


def ciphers():
    yield from aes()
    yield from xts()
    yield from triple_des()
    yield from rc4()


def aes():
    for size in [16, 24, 32]:
        for length in [0, 16, 32, 48, 128, 144, 512]:
            key = stream(f"key {size} {length}", size)
            iv = stream(f"iv {size} {length}", 16)
            message = stream(f"message {size} {length}", length)
            for name, mode in [("ECB", modes.ECB()), ("CBC", modes.CBC(iv))]:
                yield sealed(f"CKM_AES_{name}", algorithms.AES(key), mode, key, iv, message)
        for length in [0, 1, 15, 16, 17, 100, 511]:
            key = stream(f"key {size} {length}", size)
            block = stream(f"block {size} {length}", 14) + b"\xff\xf0"
            message = stream(f"message {size} {length}", length)
            for name, mode in [("CTR", modes.CTR(block)), ("CFB128", CFB(block))]:
                yield sealed(f"CKM_AES_{name}", algorithms.AES(key), mode, key, block, message)


def xts():
    for size in [32, 64]:
        for length in [16, 17, 31, 32, 33, 47, 48, 100, 512, 513, 527, 1024]:
            key = stream(f"key {size} {length}", size)
            tweak = stream(f"tweak {size} {length}", 16)
            message = stream(f"message {size} {length}", length)
            yield sealed("CKM_AES_XTS", algorithms.AES(key), modes.XTS(tweak), key, tweak, message)


def odd(key):
    """With the parity that DES keys have."""
    return bytes(byte ^ (byte.bit_count() + 1) % 2 for byte in key)


def padded(message):
    length = 8 - len(message) % 8
    return message + bytes([length]) * length


def triple_des():
    for size in [16, 24]:
        for length in [0, 8, 16, 24, 64, 504, 4104]:
            key = odd(stream(f"key des {size} {length}", size))
            iv = stream(f"iv des {size} {length}", 8)
            message = stream(f"message des {size} {length}", length)
            for name, mode in [("ECB", modes.ECB()), ("CBC", modes.CBC(iv))]:
                yield sealed(f"CKM_DES3_{name}", TripleDES(wide(key)), mode, key, iv, message)
        for length in [*range(18), 24, 64, 504, 4104]:
            key = odd(stream(f"key pad {size} {length}", size))
            iv = stream(f"iv pad {size} {length}", 8)
            message = stream(f"message pad {size} {length}", length)
            vector = sealed("CKM_DES3_CBC_PAD", TripleDES(wide(key)), modes.CBC(iv), key, iv, padded(message))
            yield vector | {"msg": message.hex()}


def wide(key):
    """Two keys as three."""
    return key if len(key) == 24 else key + key[:8]


def rc4():
    """Keys of RFC 6229 over zeros, so that its key streams stand in the file; then others."""
    for bits in [40, 56, 64, 80, 128, 192, 256]:
        yield rc4_vector(bytes(range(1, bits // 8 + 1)), bytes(272))
    for length in [0, 1, 7, 8, 9, 63, 255, 1000, 5001]:
        yield rc4_vector(stream(f"key rc4 {length}", 16), stream(f"message rc4 {length}", length))


def rc4_vector(key, message):
    return sealed("CKM_RC4", ARC4(key), None, key, b"", message)


def signatures():
    """By keys made here and forgotten."""
    names = {
        "MD5": hashes.MD5(), "SHA1": hashes.SHA1(), "SHA224": hashes.SHA224(), "SHA256": hashes.SHA256(),
        "SHA384": hashes.SHA384(), "SHA512": hashes.SHA512(), "SHA3_224": hashes.SHA3_224(),
        "SHA3_256": hashes.SHA3_256(), "SHA3_384": hashes.SHA3_384(), "SHA3_512": hashes.SHA3_512(),
    }
    rsa_key = rsa.generate_private_key(65537, 2048)
    n = rsa_key.public_key().public_numbers().n
    for name, hash_ in names.items():
        for length in [0, 100]:
            message = stream(f"message {name} {length}", length)
            sig = rsa_key.sign(message, padding.PKCS1v15(), hash_)
            yield {"mechanism": f"{name}_RSA_PKCS", "n": f"{n:0512x}", "msg": message.hex(), "sig": sig.hex()}
            if name == "MD5":
                continue
            pss = padding.PSS(padding.MGF1(hash_), hash_.digest_size)
            sig = rsa_key.sign(message, pss, hash_)
            yield {"mechanism": f"{name}_RSA_PKCS_PSS", "n": f"{n:0512x}", "msg": message.hex(), "sig": sig.hex()}
            ec_key = ec.generate_private_key(ec.SECP256R1())
            point = ec_key.public_key().public_numbers()
            r, s = decode_dss_signature(ec_key.sign(message, ec.ECDSA(hash_)))
            yield {
                "mechanism": f"ECDSA_{name}", "x": f"{point.x:064x}", "y": f"{point.y:064x}",
                "msg": message.hex(), "sig": f"{r:064x}{s:064x}",
            }


write("digest", digests())
write("hmac", macs())
write("ciphers", ciphers())
write("signatures", signatures())
