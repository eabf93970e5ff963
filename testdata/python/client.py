#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a Python program does with a token: client.py MODULE TOKEN PIN PART."""

import hashlib
import sys

import PyKCS11
from PyKCS11 import (
    CKA_CLASS, CKA_DECRYPT, CKA_EC_PARAMS, CKA_ENCRYPT, CKA_EXTRACTABLE, CKA_ID, CKA_KEY_TYPE, CKA_LABEL,
    CKA_MODULUS_BITS, CKA_PRIVATE, CKA_PUBLIC_EXPONENT, CKA_SENSITIVE, CKA_SIGN, CKA_TOKEN, CKA_VALUE, CKA_VALUE_LEN,
    CKA_VERIFY, CKF_RW_SESSION, CKF_SERIAL_SESSION, CKG_MGF1_SHA256, CKK_AES, CKM_AES_CBC_PAD, CKM_AES_KEY_GEN,
    CKM_ECDSA, CKM_EC_KEY_PAIR_GEN, CKM_RSA_PKCS_KEY_PAIR_GEN, CKM_SHA_1, CKM_SHA256,
    CKM_SHA256_RSA_PKCS, CKM_SHA256_RSA_PKCS_PSS, CKM_SHA384, CKM_SHA512, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY,
    CKO_SECRET_KEY, CK_FALSE, CK_TRUE, Mechanism,
)

MESSAGE = b"what is signed, sealed and digested " * 40


def token_session(module, label, pin):
    library = PyKCS11.PyKCS11Lib()
    library.load(module)
    slots = [slot for slot in library.getSlotList(tokenPresent=True)
             if library.getTokenInfo(slot).label.strip() == label]
    session = library.openSession(slots[0], CKF_SERIAL_SESSION | CKF_RW_SESSION)
    session.login(pin)
    return session


def rsa_pair(session, token=CK_FALSE):
    public = [(CKA_TOKEN, token), (CKA_VERIFY, CK_TRUE), (CKA_ENCRYPT, CK_TRUE), (CKA_MODULUS_BITS, 2048),
              (CKA_PUBLIC_EXPONENT, (1, 0, 1)), (CKA_LABEL, "python"), (CKA_ID, (0x31,))]
    private = [(CKA_TOKEN, token), (CKA_PRIVATE, CK_TRUE), (CKA_SENSITIVE, CK_TRUE), (CKA_SIGN, CK_TRUE),
               (CKA_DECRYPT, CK_TRUE), (CKA_LABEL, "python"), (CKA_ID, (0x31,))]
    return session.generateKeyPair(public, private, mecha=Mechanism(CKM_RSA_PKCS_KEY_PAIR_GEN, None))


def ec_pair(session):
    p256 = (6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3, 1, 7)
    public = [(CKA_TOKEN, CK_FALSE), (CKA_VERIFY, CK_TRUE), (CKA_EC_PARAMS, p256)]
    private = [(CKA_TOKEN, CK_FALSE), (CKA_PRIVATE, CK_TRUE), (CKA_SENSITIVE, CK_TRUE), (CKA_SIGN, CK_TRUE)]
    return session.generateKeyPair(public, private, mecha=Mechanism(CKM_EC_KEY_PAIR_GEN, None))


def aes_key(session):
    return session.generateKey([(CKA_CLASS, CKO_SECRET_KEY), (CKA_KEY_TYPE, CKK_AES), (CKA_TOKEN, CK_FALSE),
                                (CKA_SENSITIVE, CK_TRUE), (CKA_EXTRACTABLE, CK_FALSE), (CKA_ENCRYPT, CK_TRUE),
                                (CKA_DECRYPT, CK_TRUE), (CKA_VALUE_LEN, 32)], mecha=Mechanism(CKM_AES_KEY_GEN, None))


def sign(session):
    pss = PyKCS11.RSA_PSS_Mechanism(CKM_SHA256_RSA_PKCS_PSS, CKM_SHA256, CKG_MGF1_SHA256, 32)
    public, private = rsa_pair(session)
    for mechanism in (Mechanism(CKM_SHA256_RSA_PKCS, None), pss):
        signature = bytes(session.sign(private, MESSAGE, mechanism))
        assert len(signature) == 256
        assert session.verify(public, MESSAGE, signature, mechanism)
        assert not session.verify(public, MESSAGE + b"x", signature, mechanism)
    public, private = ec_pair(session)
    signature = session.sign(private, hashlib.sha256(MESSAGE).digest(), Mechanism(CKM_ECDSA, None))
    assert session.verify(public, hashlib.sha256(MESSAGE).digest(), signature, Mechanism(CKM_ECDSA, None))


def cipher(session):
    key = aes_key(session)
    iv = bytes(range(16))
    sealed = bytes(session.encrypt(key, MESSAGE, Mechanism(CKM_AES_CBC_PAD, iv)))
    assert sealed != MESSAGE and bytes(session.decrypt(key, sealed, Mechanism(CKM_AES_CBC_PAD, iv))) == MESSAGE
    gcm = PyKCS11.AES_GCM_Mechanism(bytes(12), b"header", 128)
    sealed = bytes(session.encrypt(key, MESSAGE, gcm))
    assert len(sealed) == len(MESSAGE) + 16 and bytes(session.decrypt(key, sealed, gcm)) == MESSAGE
    changed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    try:
        session.decrypt(key, changed, gcm)
    except PyKCS11.PyKCS11Error:
        pass
    else:
        raise AssertionError("a changed tag was taken")


def digest(session):
    for mechanism, name in ((CKM_SHA_1, "sha1"), (CKM_SHA256, "sha256"), (CKM_SHA384, "sha384"), (CKM_SHA512, "sha512")):
        ours = bytes(session.digest(MESSAGE, Mechanism(mechanism, None)))
        assert ours == hashlib.new(name, MESSAGE).digest(), name


def objects(session):
    public, private = rsa_pair(session, token=CK_TRUE)
    found = session.findObjects([(CKA_CLASS, CKO_PRIVATE_KEY), (CKA_LABEL, "python")])
    assert len(found) == 1
    values = session.getAttributeValue(found[0], [CKA_ID, CKA_SENSITIVE, CKA_EXTRACTABLE])
    assert bytes(values[0]) == b"1" and values[1] and not values[2]
    session.setAttributeValue(private, [(CKA_LABEL, "renamed")])
    assert len(session.findObjects([(CKA_LABEL, "renamed")])) == 1
    session.destroyObject(private)
    session.destroyObject(public)
    assert not session.findObjects([(CKA_CLASS, CKO_PRIVATE_KEY)])
    assert not session.findObjects([(CKA_CLASS, CKO_PUBLIC_KEY)])
    assert CKA_VALUE is not None


if __name__ == "__main__":
    _, library_path, token_label, user_pin, part = sys.argv
    {"sign": sign, "cipher": cipher, "digest": digest, "objects": objects}[part](
        token_session(library_path, token_label, user_pin))
    print("done")
