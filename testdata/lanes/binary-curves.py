# SPDX-License-Identifier: Apache-2.0
"""Makes binary-curves.json in this folder with the `openssl` command: random keys, secrets shared with the next key of
the same curve (with the cofactor too in every tenth), signatures of random digests. Different every time."""

import json
import os
import re
import subprocess
import tempfile

COUNT = 200
CURVES = [
    "sect163k1", "sect163r1", "sect163r2", "sect233k1", "sect233r1", "sect283k1", "sect283r1",
    "sect409k1", "sect409r1", "sect571k1", "sect571r1",
]


def openssl(*arguments):
    return subprocess.run(["openssl", *arguments], check=True, capture_output=True).stdout


def numbers(key):
    text = openssl("pkey", "-in", key, "-noout", "-text").decode()
    found = [re.search(name + r":\s([\s0-9a-f:]+)\n", text)[1] for name in ("priv", "pub")]
    return [re.sub(r"[\s:]", "", number) for number in found]


def derive(key, peer, cofactor):
    mode = f"ecdh_cofactor_mode:{cofactor}"
    return openssl("pkeyutl", "-derive", "-inkey", key, "-peerkey", peer, "-pkeyopt", mode).hex()


def half(signature, at):
    """An INTEGER of DER and where the next one starts."""
    end = at + 2 + signature[at + 1]
    return int.from_bytes(signature[at + 2 : end], "big"), end


def sign(key, digest, length):
    with open("digest", "wb") as file:
        file.write(digest)
    signature = openssl("pkeyutl", "-sign", "-inkey", key, "-in", "digest")
    r, at = half(signature, 2 if signature[1] < 128 else 3)
    s, _ = half(signature, at)
    return (r.to_bytes(length, "big") + s.to_bytes(length, "big")).hex()


def tests(curve):
    for at in range(COUNT):
        choice = f"ec_paramgen_curve:{curve}"
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", choice, "-out", f"key{at}")
        openssl("pkey", "-in", f"key{at}", "-pubout", "-out", f"public{at}")
    for at in range(COUNT):
        private, public = numbers(f"key{at}")
        peer = f"public{(at + 1) % COUNT}"
        digest = os.urandom([20, 28, 32, 48, 64][at % 5])
        test = {
            "private": private,
            "public": public,
            "secret": derive(f"key{at}", peer, 0),
            "digest": digest.hex(),
            "signature": sign(f"key{at}", digest, len(private) // 2),
        }
        if at % 10 == 0:
            test["cofactor_secret"] = derive(f"key{at}", peer, 1)
        yield test


def main():
    here = os.getcwd()
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for curve in CURVES:
            rows[curve] = ",\n".join("    " + json.dumps(test) for test in tests(curve))
    os.chdir(here)
    parts = ",\n".join(f'  "{curve}": [\n{tests}\n  ]' for curve, tests in rows.items())
    with open("binary-curves.json", "w") as file:
        file.write(f"{{\n{parts}\n}}\n")


main()
