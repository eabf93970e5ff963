# SPDX-License-Identifier: Apache-2.0
"""Makes asymmetric.json with OpenSSL (through Python's `cryptography`): a key of every kind in its
encodings, and a signature by each mechanism with a hash, on each curve. The keys are new every time."""

import json

from cryptography.hazmat.backends.openssl import backend
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

MESSAGE = b"PKCS #11, Cryptographic Token Interface"
HASHES = {
    "MD5": hashes.MD5(), "SHA1": hashes.SHA1(), "SHA224": hashes.SHA224(), "SHA256": hashes.SHA256(),
    "SHA384": hashes.SHA384(), "SHA512": hashes.SHA512(), "SHA3_224": hashes.SHA3_224(),
    "SHA3_256": hashes.SHA3_256(), "SHA3_384": hashes.SHA3_384(), "SHA3_512": hashes.SHA3_512(),
}
CURVES = [ec.SECP224R1(), ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1(), ec.SECP256K1()]

KEYS = {curve.name: ec.generate_private_key(curve) for curve in CURVES}
KEYS["rsa"] = rsa.generate_private_key(65537, 2048)
KEYS["ed25519"] = ed25519.Ed25519PrivateKey.generate()
KEYS["x25519"] = x25519.X25519PrivateKey.generate()


def encodings(key):
    form, der = serialization, serialization.Encoding.DER
    private = key.private_bytes(der, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(der, form.PublicFormat.SubjectPublicKeyInfo)
    return {"privateKeyInfo": private.hex(), "publicKeyInfo": public.hex()}


def signatures():
    for name, hash_ in HASHES.items():
        signature = KEYS["rsa"].sign(MESSAGE, padding.PKCS1v15(), hash_)
        yield {"mechanism": f"CKM_{name}_RSA_PKCS", "key": "rsa", "signature": signature.hex()}
        if name == "MD5":
            continue
        salt = hash_.digest_size
        signature = KEYS["rsa"].sign(MESSAGE, padding.PSS(padding.MGF1(hash_), salt), hash_)
        mechanism = f"CKM_{name}_RSA_PKCS_PSS"
        yield {"mechanism": mechanism, "key": "rsa", "salt": salt, "signature": signature.hex()}
        for curve in CURVES:
            length = (curve.key_size + 7) // 8
            numbers = decode_dss_signature(KEYS[curve.name].sign(MESSAGE, ec.ECDSA(hash_)))
            signature = b"".join(number.to_bytes(length, "big") for number in numbers)
            yield {"mechanism": f"CKM_ECDSA_{name}", "key": curve.name, "signature": signature.hex()}
    signature = KEYS["ed25519"].sign(MESSAGE)
    yield {"mechanism": "CKM_EDDSA", "key": "ed25519", "signature": signature.hex()}


with open("asymmetric.json", "w") as file:
    keys = {name: encodings(key) for name, key in KEYS.items()}
    whole = {"source": f"{backend.openssl_version_text()}, by asymmetric.py", "message": MESSAGE.hex()}
    json.dump(whole | {"keys": keys, "signatures": list(signatures())}, file, indent=1)
    file.write("\n")
