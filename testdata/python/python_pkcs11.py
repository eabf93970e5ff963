# SPDX-License-Identifier: Apache-2.0
"""What a Python program does with a token by python-pkcs11: python_pkcs11.py MODULE TOKEN PIN."""

import hashlib
import sys

import pkcs11
from pkcs11 import KDF, MGF, Attribute, KeyType, Mechanism, MechanismFlag, ObjectClass
from pkcs11.util.ec import encode_ec_public_key, encode_named_curve_parameters
from pkcs11.util.rsa import encode_rsa_public_key

MESSAGE = b"what is signed, sealed and digested"


def require(holds: bool, what: str) -> None:
    if not holds:
        sys.exit(what)


def digests(session: pkcs11.Session) -> None:
    require(session.digest(MESSAGE, mechanism=Mechanism.SHA256) == hashlib.sha256(MESSAGE).digest(), "SHA-256")
    parts = [MESSAGE[:9], MESSAGE[9:]]
    require(session.digest(parts, mechanism=Mechanism.SHA512) == hashlib.sha512(MESSAGE).digest(), "SHA-512")


def rsa(session: pkcs11.Session) -> None:
    public, private = session.generate_keypair(KeyType.RSA, 2048, store=True, label="rsa")
    pss = (Mechanism.SHA256, MGF.SHA256, 32)
    for mechanism, parameter in ((Mechanism.SHA512_RSA_PKCS, None), (Mechanism.SHA256_RSA_PKCS_PSS, pss)):
        signature = private.sign(MESSAGE, mechanism=mechanism, mechanism_param=parameter)
        require(public.verify(MESSAGE, signature, mechanism=mechanism, mechanism_param=parameter), str(mechanism))
        require(not public.verify(b"other", signature, mechanism=mechanism, mechanism_param=parameter), "another text")
    for digest, mask in ((Mechanism.SHA_1, MGF.SHA1), (Mechanism.SHA256, MGF.SHA256)):
        sealed = public.encrypt(MESSAGE, mechanism_param=(digest, mask, None))
        require(private.decrypt(sealed, mechanism_param=(digest, mask, None)) == MESSAGE, f"OAEP, {digest}")
    require(len(encode_rsa_public_key(public)) > 256, "the public key")


def curves(session: pkcs11.Session) -> None:
    parameters = session.create_domain_parameters(
        KeyType.EC, {Attribute.EC_PARAMS: encode_named_curve_parameters("secp256r1")}, local=True
    )
    public, private = parameters.generate_keypair(mechanism=Mechanism.EC_KEY_PAIR_GEN, store=True, label="ec")
    signature = private.sign(MESSAGE, mechanism=Mechanism.ECDSA_SHA256)
    require(public.verify(MESSAGE, signature, mechanism=Mechanism.ECDSA_SHA256), "ECDSA")
    require(len(encode_ec_public_key(public)) == 91, "the point is not in an OCTET STRING")
    other_public, other_private = parameters.generate_keypair()
    secrets = [
        one.derive_key(KeyType.AES, 256, mechanism_param=(KDF.NULL, None, other[Attribute.EC_POINT][2:]))
        for one, other in ((private, other_public), (other_private, public))
    ]
    sealed = secrets[0].encrypt(MESSAGE, mechanism_param=bytes(16))
    require(secrets[1].decrypt(sealed, mechanism_param=bytes(16)) == MESSAGE, "ECDH")


def ciphers(session: pkcs11.Session) -> None:
    key = session.generate_key(KeyType.AES, 256, store=True, label="aes")
    iv = session.generate_random(128)
    sealed = key.encrypt(MESSAGE, mechanism_param=iv)
    require(key.decrypt(sealed, mechanism_param=iv) == MESSAGE, "AES-CBC")
    parts = [MESSAGE[:20], MESSAGE[20:]]
    require(b"".join(key.encrypt(parts, mechanism_param=iv)) == sealed, "AES-CBC in parts")
    gcm = pkcs11.GCMParams(session.generate_random(96), b"with it", 128)
    sealed = key.encrypt(MESSAGE, mechanism=Mechanism.AES_GCM, mechanism_param=gcm)
    require(key.decrypt(sealed, mechanism=Mechanism.AES_GCM, mechanism_param=gcm) == MESSAGE, "AES-GCM")


def wraps(session: pkcs11.Session) -> None:
    # By default it asks for keys that may do everything, and says no to what is not in `capabilities`. Under the default
    # policy a key leaves that is for use and nothing else, without a use of that kind that is switched off.
    carrier = session.generate_key(KeyType.AES, 256, capabilities=MechanismFlag.WRAP | MechanismFlag.UNWRAP)
    use = MechanismFlag.ENCRYPT | MechanismFlag.DECRYPT | MechanismFlag.SIGN | MechanismFlag.VERIFY
    carried = session.generate_key(KeyType.AES, 128, capabilities=use, template={Attribute.EXTRACTABLE: True})
    sealed = carried.encrypt(MESSAGE, mechanism_param=bytes(16))
    wrapped = carrier.wrap_key(carried, mechanism=Mechanism.AES_KEY_WRAP)
    back = carrier.unwrap_key(ObjectClass.SECRET_KEY, KeyType.AES, wrapped, capabilities=use)
    require(back.decrypt(sealed, mechanism_param=bytes(16)) == MESSAGE, "the key that came back")


def finds(session: pkcs11.Session) -> None:
    found = session.get_key(key_type=KeyType.EC, object_class=ObjectClass.PRIVATE_KEY, label="ec")
    found[Attribute.LABEL] = "renamed"
    require(not list(session.get_objects({Attribute.LABEL: "ec", Attribute.CLASS: ObjectClass.PRIVATE_KEY})), "the old label")
    try:
        require(not found[Attribute.VALUE], "a private key is shown")
    except pkcs11.exceptions.AttributeSensitive:
        pass
    found.destroy()
    require(not list(session.get_objects({Attribute.LABEL: "renamed"})), "the destroyed key")


def main(module: str, label: str, pin: str) -> None:
    token = pkcs11.lib(module).get_token(token_label=label)
    with token.open(user_pin=pin, rw=True) as session:
        for work in (digests, rsa, curves, ciphers, wraps, finds):
            work(session)
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
