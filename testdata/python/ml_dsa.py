"""ML-DSA of OpenSSL's, by Python's cryptography, beside the command's: `ml_dsa.py make` writes keys and what they sign, `ml_dsa.py
judge` verifies what the command has signed with them and with its own."""

import pathlib
import sys

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import mldsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_public_key,
)

IDENTIFIERS = {"44": 17, "65": 18, "87": 19}
MESSAGE = b"a letter\n"
KEYS = {"44": mldsa.MLDSA44PrivateKey, "65": mldsa.MLDSA65PrivateKey, "87": mldsa.MLDSA87PrivateKey}
PEM = (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def make():
    pathlib.Path("letter").write_bytes(MESSAGE)
    for name, kind in KEYS.items():
        key = kind.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        pathlib.Path(f"theirs{name}.key").write_bytes(private)
        pathlib.Path(f"theirs{name}.pub").write_bytes(key.public_key().public_bytes(*PEM))
        pathlib.Path(f"theirs{name}.sig").write_bytes(key.sign(MESSAGE))


def judge():
    for name in [f"{who}{set}" for who in ("theirs", "ours") for set in KEYS]:
        public = load_pem_public_key(pathlib.Path(f"{name}.pem").read_bytes())
        public.verify(pathlib.Path(f"{name}.new").read_bytes(), MESSAGE)
        certificate = x509.load_pem_x509_certificate(pathlib.Path(f"{name}.crt").read_bytes())
        assert certificate.public_key() == public
        public.verify(certificate.signature, certificate.tbs_certificate_bytes)
        request = x509.load_pem_x509_csr(pathlib.Path(f"{name}.csr").read_bytes())
        assert request.public_key() == public
        public.verify(request.signature, request.tbs_certrequest_bytes)
        for it in certificate, request:
            identifier = it.signature_algorithm_oid.dotted_string
            assert identifier == f"2.16.840.1.101.3.4.3.{IDENTIFIERS[name[-2:]]}"
    for name in KEYS:
        theirs = pathlib.Path(f"theirs{name}.pub").read_bytes()
        assert theirs == pathlib.Path(f"theirs{name}.pem").read_bytes()


{"make": make, "judge": judge}[sys.argv[1]]()
print("done")
