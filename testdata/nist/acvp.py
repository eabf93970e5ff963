# SPDX-License-Identifier: Apache-2.0
"""Makes `tls.json`, `agreement.json`, `one_step.json` and `lms.json`, in the form of `../openssl/classics.json`, of samples of NIST's ACVP
server: `acvp.py DIRECTORY`, which has a directory for each algorithm with its `internalProjection.json`, in version 1.1.0.43. Files stay
small: of every group the first tests, and of those that must fail one of each reason.

What is left out, and why:
- TLS-v1.2-KDF-RFC7627: 96 of 120, more of the same.
- KAS-ECC-SSC, fullMqv (10 of 20), and KAS-FFC-SSC, mqv1 (10 of 20): there is no MQV here.
- KAS-ECC-CDH-Component, P-192 (25 of 75): that curve is in libraries with OpenSSL only. Of K-163 and B-163 5 of 25 each.
- KDA-OneStep: a secret goes into the function from an agreement only, so of its secrets those that are a coordinate of a point
  of P-224, with the private key 1; HMAC and KMAC as auxiliary functions are no CKD_… of PKCS#11.
- KDA-TwoStep, KDA-OneStepNoCounter: no mechanism. KDA-HKDF: a salt and fixed information from both parties, whose steps Wycheproof's
  vectors of HKDF have. KAS-ECC, KAS-FFC (without SSC): the same agreements, with confirmation of keys.
- LMS-sigGen: the private keys are not in it; two signatures of each group are verified. LMS-keyGen is for the kernel (`keys`), because
  no seed is given through PKCS#11."""

import hashlib
import json
import sys
from pathlib import Path

HASHES = {"SHA2-224": "sha224", "SHA2-256": "sha256", "SHA2-384": "sha384", "SHA2-512": "sha512", "SHA3-512": "sha3_512"}
DIGESTS = {"SHA2-256": 0x250, "SHA2-384": 0x260, "SHA2-512": 0x270}
# CKD_…_KDF_SP800
ONE_STEP = {"SHA2-224": 0xF, "SHA2-512": 0x12, "SHA3-512": 0x16}
# The object identifier, and bytes of a number.
CURVES = {
    "P-224": ("06052b81040021", 28), "K-163": ("06052b81040001", 21), "B-163": ("06052b8104000f", 21), "K-233": ("06052b8104001a", 30),
    "K-283": ("06052b81040010", 36), "K-409": ("06052b81040024", 52),
}


def groups(name):
    text = (Path(sys.argv[1]) / name / "internalProjection.json").read_text()
    return json.loads(text)["testGroups"]


def pointer(data):
    return [f"&{data}", len(data) // 2] if data else [0, 0]


def derived(name, mechanism, params, value, length, **key):
    vector = {"source": name, "mechanism": mechanism, "does": "derive"} | key
    return vector | {"params": params, "length": length, "value": value}


def tls():
    for group in groups("TLS-v1.2-KDF-RFC7627"):
        for test in group["tests"][:4]:
            number = DIGESTS[group["hashAlg"]]
            said = {name: value.lower() for name, value in test.items() if isinstance(value, str)}
            name = f"TLS-v1.2-KDF-RFC7627 {test['tcId']}"
            secret = {"type": "CKK_GENERIC_SECRET", "key": said["preMasterSecret"]}
            params = [number, *pointer(said["sessionHash"]), 0]
            for suffix in ["", "_DH"]:
                mechanism = f"CKM_TLS12_EXTENDED_MASTER_KEY_DERIVE{suffix}"
                yield derived(name, mechanism, params, said["masterSecret"], 48, **secret)
            block, client, server = said["keyBlock"], pointer(said["clientRandom"]), pointer(said["serverRandom"])
            secret = {"type": "CKK_GENERIC_SECRET", "key": said["masterSecret"]}
            params = [number, *pointer(b"key expansion".hex()), *server, *client, 0, 0]
            yield derived(name, "CKM_TLS12_KDF", params, block, len(block) // 2, **secret)
            # All of the block as keys and IVs: of each kind two.
            sizes = [0, 16, 16] if len(block) == 128 else [32, 16, 16]
            ends = [2 * sum([size for size in sizes for _ in (0, 1)][:at]) for at in range(7)]
            parts = [block[one:other] or None for one, other in zip(ends, ends[1:])]
            params = [*(8 * size for size in sizes), 0, *client, *server, [0, 0, 0, 0, *[f"&{'00' * 16}"] * 2], number]
            sealing = {"source": name, "mechanism": "CKM_TLS12_KEY_AND_MAC_DERIVE", "does": "connection"} | secret
            yield sealing | {"params": params, "keys": parts[:4], "ivs": parts[4:]}


def sample(tests):
    """One of each reason to fail, and all that pass."""
    seen = set()
    for test in tests:
        reason = test.get("testCaseDisposition", test.get("reason", "pass"))
        if test.get("testPassed", True) or reason not in seen:
            yield test
        seen.add(reason)


def point(curve, x, y):
    return "04" + x.lower().zfill(2 * curve[1]) + y.lower().zfill(2 * curve[1])


def agreement():
    for group in groups("KAS-ECC-SSC-Sp800-56Ar3"):
        if group["scheme"] != "staticUnified":
            continue
        for test in sample(group["tests"]):
            yield on_curve("KAS-ECC-SSC-Sp800-56Ar3", group["domainParameterGenerationMode"], test, "static")
    for group in groups("KAS-ECC-CDH-Component-Sp800-56Ar3"):
        for test in group["tests"][:5] if group["curve"] in CURVES else []:
            yield on_curve("KAS-ECC-CDH-Component-Sp800-56Ar3", group["curve"], test, "")
    for group in groups("KAS-FFC-SSC-Sp800-56Ar3"):
        if group["scheme"] != "dhEphem":
            continue
        for test in sample(group["tests"]):
            name = f"KAS-FFC-SSC-Sp800-56Ar3 {test['tcId']}"
            own, peer, z = (test[part].lower() for part in ["ephemeralPrivateIut", "ephemeralPublicServer", "z"])
            p, q, g = (group[part].lower() for part in "pqg")
            key = {"CKA_PRIME": p, "CKA_BASE": g, "CKA_VALUE": own}
            right = {} if test["testPassed"] else {"wrong": test["testCaseDisposition"]}
            for kind in ["CKK_DH", "CKK_X9_42_DH"]:
                private = {"CKA_KEY_TYPE": kind} | key | ({"CKA_SUBPRIME": q} if kind == "CKK_X9_42_DH" else {})
                params = [1, 0, 0, len(peer) // 2, f"&{peer}"] if kind == "CKK_X9_42_DH" else [f"={peer}"]
                mechanism = "CKM_X9_42_DH_DERIVE" if kind == "CKK_X9_42_DH" else "CKM_DH_PKCS_DERIVE"
                yield derived(name, mechanism, params, z, len(z) // 2, private=private) | right


def on_curve(name, curve, test, kind):
    oid, size = CURVES[curve]
    part = lambda name: test[kind + name if kind else name[0].lower() + name[1:]]
    peer = point((oid, size), part("PublicServerX"), part("PublicServerY"))
    private = {"CKA_KEY_TYPE": "CKK_EC", "CKA_EC_PARAMS": oid, "CKA_VALUE": part("PrivateIut").lower().zfill(2 * size)}
    params, z = [1, 0, 0, len(peer) // 2, f"&{peer}"], test["z"].lower().zfill(2 * size)
    right = {} if test["testPassed"] else {"wrong": test["testCaseDisposition"]}
    return derived(f"{name} {test['tcId']}", "CKM_ECDH1_COFACTOR_DERIVE", params, z, size, private=private) | right


def ordinate(x):
    """Of a point of P-224 with this abscissa, if there is one."""
    p, b = 2**224 - 2**96 + 1, 0xB4050A850C04B3ABF54132565044B0B7D7BFD8BA270B39432355FFB4
    square = (x**3 - 3 * x + b) % p
    if x >= p or pow(square, (p - 1) // 2, p) != 1:
        return None
    # Tonelli and Shanks: p - 1 is 2^96 times an odd number.
    odd, other = (p - 1) >> 96, next(z for z in range(2, 99) if pow(z, (p - 1) // 2, p) != 1)
    factor, root, rest, order = pow(other, odd, p), pow(square, (odd + 1) // 2, p), pow(square, odd, p), 96
    while rest != 1:
        least, power = 0, rest
        while power != 1:
            least, power = least + 1, power * power % p
        step = pow(factor, 1 << (order - least - 1), p)
        factor, order = step * step % p, least
        root, rest = root * step % p, rest * factor % p
    assert root * root % p == square
    return root


def party(said):
    return said["partyId"] + said.get("ephemeralData", "")


def one_step():
    oid, size = CURVES["P-224"]
    private = {"CKA_KEY_TYPE": "CKK_EC", "CKA_EC_PARAMS": oid, "CKA_VALUE": "1".zfill(2 * size)}
    for revision in ["Sp800-56Cr1", "Sp800-56Cr2"]:
        for group in groups(f"KDA-OneStep-{revision}"):
            function = group["kdfConfiguration"]["auxFunction"]
            if group["zLength"] != 8 * size or function not in ONE_STEP:
                continue
            for test in group["tests"]:
                said = test["kdfParameter"]
                y = ordinate(int(said["z"], 16))
                if y is None:
                    continue
                info = party(test["fixedInfoPartyU"]) + party(test["fixedInfoPartyV"]) + f"{said['l']:08x}"
                info = (said.get("t", "") + info).lower()
                length = said["l"] // 8
                hashed = lambda at: hashlib.new(HASHES[function], bytes.fromhex(f"{at:08x}" + said["z"] + info)).digest()
                computed = b"".join(hashed(at) for at in range(1, 9))[:length].hex()
                passes = test.get("testPassed", True)
                assert (computed == test["dkm"].lower()) == passes
                peer = point(CURVES["P-224"], said["z"], f"{y:x}")
                params = [ONE_STEP[function], *reversed(pointer(info)), len(peer) // 2, f"&{peer}"]
                name = f"KDA-OneStep-{revision} {test['tcId']}"
                right = {} if passes else {"wrong": test.get("testCaseDisposition", "wrong")}
                yield derived(name, "CKM_ECDH1_DERIVE", params, test["dkm"].lower(), length, private=private) | right


def lms():
    for name, count in [("LMS-sigVer-1.0", 9), ("LMS-sigVer-SP800-208", 9), ("LMS-sigGen-1.0", 2), ("LMS-sigGen-SP800-208", 2)]:
        for group in groups(name):
            for test in group["tests"][:count]:
                # An HSS key of one level (RFC 8554 §6).
                public = {"CKA_KEY_TYPE": "CKK_HSS", "CKA_VALUE": "00000001" + group["publicKey"].lower()}
                right = {} if test.get("testPassed", True) else {"wrong": test["reason"]}
                signature, message = "00000000" + test["signature"].lower(), test["message"].lower()
                vector = {"source": f"{name} {test['tcId']}", "mechanism": "CKM_HSS", "does": "check", "params": [], "public": public}
                yield vector | {"msg": message, "sig": signature} | right


TREES = {"LMS_SHA256_M24_H5": 10, "LMS_SHA256_M24_H10": 11}
CHAINS = {"LMOTS_SHA256_N24_W1": 5, "LMOTS_SHA256_N24_W2": 6}


def lms_keys():
    for group in groups("LMS-keyGen-1.0"):
        for test in group["tests"]:
            types = [TREES[group["lmsMode"]], CHAINS[group["lmOtsMode"]]]
            public = "00000001" + test["publicKey"].lower()
            yield {"types": types, "seed": test["seed"].lower(), "id": test["i"].lower(), "public": public}


def main():
    source = "samples of NIST's ACVP server 1.1.0.43, by acvp.py, which says what is left out"
    for name, parts in {
        "tls": {"tests": tls}, "agreement": {"tests": agreement}, "one_step": {"tests": one_step},
        "lms": {"tests": lms, "keys": lms_keys},
    }.items():
        with open(f"{name}.json", "w") as file:
            file.write(f'{{\n  "source": "{source}"')
            for part, tests in parts.items():
                rows = ",\n".join("    " + json.dumps(test) for test in tests())
                file.write(f',\n  "{part}": [\n{rows}\n  ]')
            file.write("\n}\n")


main()
