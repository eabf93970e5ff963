"""Writes private keys of others in files: of ML-KEM-512 (Wycheproof's) in each form of RFC 9935, section 6, of SLH-DSA (NIST's) as RFC 9909
has them; and some that are odd. Their public halves are kem.raw and slh.raw."""

import json
import pathlib

TESTDATA = pathlib.Path(__file__).parent.parent


def element(tag, content):
    length = len(content)
    if length < 0x80:
        return bytes([tag, length]) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(size)]) + size + content


def write(name, oid, private, parameters=b""):
    algorithm = element(6, bytes.fromhex(oid)) + parameters
    parts = element(2, b"\0") + element(0x30, algorithm) + element(4, private)
    pathlib.Path(name).write_bytes(element(0x30, parts))


KEM = "608648016503040401"
kem = json.loads((TESTDATA / "wycheproof/mlkem_512_keygen_seed_test.json").read_text())["testGroups"][0]["tests"][0]
seed, expanded = bytes.fromhex(kem["seed"]), bytes.fromhex(kem["dk"])
write("kem-seed.der", KEM, element(0x80, seed))
write("kem-expanded.der", KEM, element(4, expanded))
write("kem-both.der", KEM, element(0x30, element(4, seed) + element(4, expanded)))
write("kem-other.der", KEM, element(0x30, element(4, bytes(64)) + element(4, expanded)))
write("kem-short.der", KEM, element(0x80, seed[1:]))
write("kem-null.der", KEM, element(0x80, seed), element(5, b""))
pathlib.Path("kem.raw").write_bytes(bytes.fromhex(kem["ek"]))

SLH = "608648016503040314"
slh = json.loads((TESTDATA / "nist/slh_dsa.json").read_text())["keys"][0]
private = bytes.fromhex(slh["sk"])
write("slh.der", SLH, private)
write("slh-short.der", SLH, private[1:])
write("slh-inside.der", SLH, element(4, private))
write("slh-other.der", SLH, private[:-1] + bytes([private[-1] ^ 1]))
write("slh-null.der", SLH, private, element(5, b""))
pathlib.Path("slh.raw").write_bytes(bytes.fromhex(slh["pk"]))
