# SPDX-License-Identifier: Apache-2.0
"""Finds a key by its URI and signs with it; makes an AES key and seals with that.

    metaslot key generate --label site
    pip install PyKCS11
    python3 sign.py /usr/lib/x86_64-linux-gnu/pkcs11/libmetaslot.so 'pkcs11:token=web;object=site' pin-file
"""

import sys
from urllib.parse import unquote

import PyKCS11
from PyKCS11 import CKA_CLASS, CKA_LABEL, CKA_TOKEN, CKA_VALUE_LEN, CKM_AES_KEY_GEN, CKM_ECDSA_SHA256
from PyKCS11 import CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, Mechanism


def attributes(uri: str) -> dict[str, str]:
    """What a PKCS#11 URI says (RFC 7512)."""
    path = uri.removeprefix("pkcs11:").split("?")[0]
    pairs = (part.split("=", 1) for part in path.split(";") if part)
    return {name: unquote(value) for name, value in pairs}


def find(session: PyKCS11.Session, kind: int, label: str) -> int:
    found = session.findObjects([(CKA_CLASS, kind), (CKA_LABEL, label)])
    if len(found) != 1:
        sys.exit(f"{len(found)} keys are called {label}")
    return found[0]


def main(module: str, uri: str, pin_file: str) -> None:
    wanted = attributes(uri)
    library = PyKCS11.PyKCS11Lib()
    library.load(module)
    slots = library.getSlotList(tokenPresent=True)
    slot = next(slot for slot in slots if library.getTokenInfo(slot).label.rstrip() == wanted["token"])
    session = library.openSession(slot)
    with open(pin_file, encoding="utf-8") as file:
        session.login(file.read().rstrip("\n"))

    sign = Mechanism(CKM_ECDSA_SHA256, None)
    private = find(session, CKO_PRIVATE_KEY, wanted["object"])
    signature = bytes(session.sign(private, b"message", sign))
    public = find(session, CKO_PUBLIC_KEY, wanted["object"])
    if not session.verify(public, b"message", signature, sign):
        sys.exit("the signature is not valid")
    print(f"signature: {signature.hex()}")

    # A session object: it is gone when the program ends.
    template = [(CKA_TOKEN, False), (CKA_VALUE_LEN, 32)]
    key = session.generateKey(template, mecha=Mechanism(CKM_AES_KEY_GEN, None))
    nonce = bytes(session.generateRandom(12))
    gcm = PyKCS11.AES_GCM_Mechanism(nonce, b"", 128)
    sealed = session.encrypt(key, b"secret", gcm)
    if bytes(session.decrypt(key, sealed, PyKCS11.AES_GCM_Mechanism(nonce, b"", 128))) != b"secret":
        sys.exit("not what was sealed")
    print(f"{len(sealed)} bytes sealed and opened")


if __name__ == "__main__":
    main(*sys.argv[1:])
