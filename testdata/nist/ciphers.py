# SPDX-License-Identifier: Apache-2.0
"""Makes `ciphers.json` and `ml_kem.json`, in the form of `../openssl/classics.json`, of what NIST's ACVP demonstration server has given
AWS-LC, which keeps questions and answers in `util/fipstools/acvp/acvptool/test`: `ciphers.py DIRECTORY`, in which `vectors` and
`expected` have those files as JSON (`bzip2 -d`), at commit 3bda7bae; `ML-KEM-keyGen.json` in both is ML-KEM of github.com/cpu/go-acvp,
at 5c8bf7f, which keeps such files, too.

What is left out, and why:
- Monte Carlo tests (`MCT`): each is a thousand calls of the cipher whose vectors are there.
- AES-OFB, AES-CFB1, AES-CFB8: AWS-LC has none of the first, and of the others (at acdc3210c) questions with the answers to other
  questions. OpenSSL's vectors, in `../openssl/classics.json`, have these modes.
- AES-CBC-CS3: CKM_AES_CTS has the order of CS1. AES-GCM with IVs made inside: they are random.
- AES-GMAC: tags shorter than 128 bits, which CKM_AES_GMAC does not make, and what is longer than 1,000 bytes; so of AES-CMAC.
- AES-KW and AES-KWP of the inverse cipher: there is no mechanism.
- ML-KEM, encapsulation: the random bytes `m` do not come from outside. Its keys are in what is opened.
- ctrDRBG, hmacDRBG: random bytes are those of AWS-LC's generator, which takes neither entropy nor a nonce from outside.
- SHA and HMAC with other hashes than SHA-256: Wycheproof's and OpenSSL's vectors are of the same algorithms."""

import json
import sys
from pathlib import Path

SETS = ["ML-KEM-512", "ML-KEM-768", "ML-KEM-1024"]


def documents(path):
    """Those in the file: some files have several, and some a word after the last."""
    text, decoder = path.read_text().strip().removesuffix("EOF.").strip(), json.JSONDecoder()
    while text:
        found, end = decoder.raw_decode(text)
        yield from (one for one in (found if isinstance(found, list) else [found]) if "testGroups" in one)
        text = text[end:].strip()


def tests(name, **which):
    """Each question with its group and its answer in one, where the parts have these values."""
    asked, told = (documents(Path(sys.argv[1]) / part / f"{name}.json") for part in ["vectors", "expected"])
    answers = {(one["vsId"], test["tcId"]): test for one in told for group in one["testGroups"] for test in group["tests"]}
    for one in asked:
        for group in one["testGroups"]:
            for test in group["tests"]:
                said = group | test | answers[one["vsId"], test["tcId"]]
                if group["testType"] != "MCT" and all(said.get(part) == value for part, value in which.items()):
                    yield {part: value.lower() if part in HEX else value for part, value in said.items()}


HEX = {"key", "iv", "pt", "ct", "aad", "tag", "mac", "message", "msg", "dk", "ek", "c", "k", "d", "z"}


def pointer(data):
    return [f"&{data}", len(data) // 2] if data else [0, 0]


def vector(name, test, mechanism, does, **parts):
    right = {} if test.get("testPassed", True) else {"wrong": test.get("reason", "altered")}
    return {"source": f"{name} {test['tcId']}", "mechanism": mechanism, "does": does} | parts | right


def ciphers():
    for name, iv in [("ECB", None), ("CBC", ["iv"]), ("CFB128", ["iv"]), ("CTR", [128, "iv"])]:
        for test in tests(f"ACVP-AES-{name}"):
            params = [f"={test['iv']}" if part == "iv" else part for part in iv or []]
            # The counter would begin again, which the module refuses.
            if name == "CTR" and int(test["iv"], 16) + (len(test["ct"]) + 31) // 32 > 2**128:
                test |= {"testPassed": False, "reason": "the counter ends"}
            yield encrypt(f"AES-{name}", test, f"CKM_AES_{name}", params, test["ct"])
    for test in tests("ACVP-AES-XTS"):
        params = [f"={test['sequenceNumber'].to_bytes(16, 'little').hex()}"]
        yield encrypt("AES-XTS", test, "CKM_AES_XTS", params, test["ct"], type="CKK_AES_XTS")
    for test in tests("ACVP-AES-GCM"):
        params = [*pointer(test["iv"]), 4 * len(test["iv"]), *pointer(test["aad"]), test["tagLen"]]
        yield encrypt("AES-GCM", test, "CKM_AES_GCM", params, test["ct"] + test["tag"])
    for test in tests("ACVP-AES-CCM"):
        params = [test["payloadLen"] // 8, *pointer(test["iv"]), *pointer(test["aad"]), test["tagLen"] // 8]
        yield encrypt("AES-CCM", test, "CKM_AES_CCM", params, test["ct"])


def encrypt(name, test, mechanism, params, sealed, type="CKK_AES"):
    # Of what must not open there is nothing else.
    plain = {"msg": test["pt"]} if "pt" in test else {}
    return vector(name, test, mechanism, "encrypt", type=type, key=test["key"], params=params, **plain, ct=sealed)


def macs():
    for test in tests("ACVP-AES-GMAC", tagLen=128):
        if len(test["aad"]) <= 2000:
            params = [*pointer(test["iv"]), 4 * len(test["iv"]), 0, 0, 128]
            secret = {"type": "CKK_AES", "key": test["key"], "params": params}
            yield vector("AES-GMAC", test, "CKM_AES_GMAC", "mac", **secret, msg=test["aad"], tag=test["tag"])
    for name, mechanism, kind, whole in [("CMAC-AES", "CKM_AES_CMAC", "CKK_AES", 128), ("HMAC-SHA2-256", "CKM_SHA256_HMAC", "CKK_GENERIC_SECRET", 256)]:
        for test in tests(name):
            message, size = test.get("message", test.get("msg")), test["macLen"]
            if len(message) > 2000:
                continue
            params, suffix = ([], "") if size == whole else ([size // 8], "_GENERAL")
            secret = {"type": kind, "key": test["key"], "params": params}
            yield vector(name, test, mechanism + suffix, "mac", **secret, msg=message, tag=test["mac"])


def wraps():
    for name, mechanism in [("KW", "CKM_AES_KEY_WRAP"), ("KWP", "CKM_AES_KEY_WRAP_KWP")]:
        for test in tests(f"ACVP-AES-{name}", kwCipher="cipher"):
            private = {"CKA_KEY_TYPE": "CKK_AES", "CKA_VALUE": test["key"]}
            plain = {"value": test["pt"]} if "pt" in test else {}
            yield vector(f"AES-{name}", test, mechanism, "unwrap", params=[], private=private, wrapped=test["ct"], **plain, sure=True)


def parameter_set(test):
    return (1 + SETS.index(test["parameterSet"])).to_bytes(8, "little").hex()


def ml_kem():
    for test in tests("ML-KEM-keyGen"):
        if "z" in test:
            seed = {"CKA_KEY_TYPE": "CKK_ML_KEM", "CKA_PARAMETER_SET": parameter_set(test), "CKA_SEED": test["d"] + test["z"]}
            yield vector("ML-KEM-keyGen", test, "CKM_ML_KEM", "create", params=[], private=seed, value=test["dk"])
    for test in tests("ML-KEM"):
        rank = 2 + SETS.index(test["parameterSet"])
        half = {"CKA_KEY_TYPE": "CKK_ML_KEM", "CKA_PARAMETER_SET": parameter_set(test)}
        does = test.get("function", "")
        if does == "decapsulation":
            private, public = half | {"CKA_VALUE": test["dk"]}, half | {"CKA_VALUE": test["dk"][768 * rank : 1536 * rank + 64]}
            keys = {"private": private, "public": public}
            yield vector("ML-KEM-encapDecap", test, "CKM_ML_KEM", "decapsulate", params=[], **keys, ct=test["c"], value=test["k"])
        elif does.endswith("KeyCheck"):
            kind, part = ("private", "dk") if does.startswith("dec") else ("public", "ek")
            yield vector("ML-KEM-encapDecap", test, "CKM_ML_KEM", "create", params=[], **{kind: half | {"CKA_VALUE": test[part]}})


for name, made in [("ciphers", [*ciphers(), *macs(), *wraps()]), ("ml_kem", [*ml_kem()])]:
    rows = ",\n".join("    " + json.dumps(one) for one in made)
    source = "NIST's ACVP demonstration server, by ciphers.py, which says what is left out"
    (Path(__file__).parent / f"{name}.json").write_text(f'{{\n  "source": "{source}",\n  "tests": [\n{rows}\n  ]\n}}\n')
