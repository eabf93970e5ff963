// SPDX-License-Identifier: Apache-2.0
"use strict";
// What a Node program does with a token by graphene-pk11: client.js MODULE TOKEN PIN.

const assert = require("assert");
const crypto = require("crypto");
const graphene = require("graphene-pk11");

const MESSAGE = Buffer.from("what is signed, sealed and digested");
const { KeyGenMechanism, KeyType, ObjectClass } = graphene;

function rsa(session) {
    const pair = session.generateKeyPair(
        KeyGenMechanism.RSA,
        { keyType: KeyType.RSA, modulusBits: 2048, publicExponent: Buffer.from([1, 0, 1]), verify: true, encrypt: true },
        { keyType: KeyType.RSA, token: true, label: "rsa", id: Buffer.from([1]), private: true, sensitive: true, sign: true, decrypt: true },
    );
    const shown = pair.publicKey.getAttribute({ modulus: null, publicExponent: null });
    const jwk = { kty: "RSA", n: shown.modulus.toString("base64url"), e: shown.publicExponent.toString("base64url") };
    const key = crypto.createPublicKey({ key: jwk, format: "jwk" });
    const signature = session.createSign("SHA256_RSA_PKCS", pair.privateKey).once(MESSAGE);
    assert(crypto.verify("sha256", MESSAGE, key, signature), "Node refuses the signature");
    const parameters = new graphene.RsaPssParams(graphene.MechanismEnum.SHA256, graphene.RsaMgf.MGF1_SHA256, 32);
    const pss = { name: "SHA256_RSA_PKCS_PSS", params: parameters };
    const parts = session.createSign(pss, pair.privateKey);
    parts.update(MESSAGE.subarray(0, 9));
    parts.update(MESSAGE.subarray(9));
    assert(session.createVerify(pss, pair.publicKey).once(MESSAGE, parts.final()), "PSS");
    const sealed = crypto.publicEncrypt({ key, oaepHash: "sha256" }, MESSAGE);
    const oaep = new graphene.RsaOaepParams(graphene.MechanismEnum.SHA256, graphene.RsaMgf.MGF1_SHA256);
    const opened = session.createDecipher({ name: "RSA_PKCS_OAEP", params: oaep }, pair.privateKey).once(sealed, Buffer.alloc(256));
    assert(opened.equals(MESSAGE), "OAEP");
}

function curve(session) {
    const pair = session.generateKeyPair(
        KeyGenMechanism.ECDSA,
        { keyType: KeyType.ECDSA, verify: true, paramsECDSA: graphene.NamedCurve.getByName("secp256r1").value },
        { keyType: KeyType.ECDSA, token: true, label: "ec", private: true, sensitive: true, sign: true, derive: true },
    );
    const point = pair.publicKey.getAttribute("pointEC").subarray(-64);
    const [x, y] = [point.subarray(0, 32), point.subarray(32)].map((half) => half.toString("base64url"));
    const key = crypto.createPublicKey({ key: { kty: "EC", crv: "P-256", x, y }, format: "jwk" });
    const signature = session.createSign("ECDSA_SHA256", pair.privateKey).once(MESSAGE);
    assert(crypto.verify("sha256", MESSAGE, { key, dsaEncoding: "ieee-p1363" }, signature), "Node refuses the signature");
    const other = crypto.createECDH("prime256v1");
    const theirs = other.generateKeys();
    const agreed = session.deriveKey(
        { name: "ECDH1_DERIVE", params: new graphene.EcdhParams(graphene.EcKdf.NULL, null, theirs) },
        pair.privateKey,
        { class: ObjectClass.SECRET_KEY, keyType: KeyType.GENERIC_SECRET, valueLen: 32, sensitive: false, extractable: true },
    );
    const secret = other.computeSecret(Buffer.concat([Buffer.from([4]), point]));
    assert(agreed.getAttribute("value").equals(secret), "ECDH");
}

function ciphers(session) {
    const key = session.generateKey(KeyGenMechanism.AES, {
        keyType: KeyType.AES, valueLen: 32, token: true, label: "aes", private: true, encrypt: true, decrypt: true,
    });
    const gcm = { name: "AES_GCM", params: new graphene.AesGcm240Params(session.generateRandom(12), Buffer.from("with it"), 128) };
    const sealed = session.createCipher(gcm, key).once(MESSAGE, Buffer.alloc(MESSAGE.length + 16));
    assert(session.createDecipher(gcm, key).once(sealed, Buffer.alloc(sealed.length)).equals(MESSAGE), "AES-GCM");
    sealed[0] ^= 1;
    assert.throws(() => session.createDecipher(gcm, key).once(sealed, Buffer.alloc(sealed.length)), /CKR_ENCRYPTED_DATA_INVALID/);
    const cbc = { name: "AES_CBC_PAD", params: Buffer.alloc(16) };
    const cipher = session.createCipher(cbc, key);
    const parts = Buffer.concat([cipher.update(MESSAGE.subarray(0, 20)), cipher.update(MESSAGE.subarray(20)), cipher.final()]);
    const decipher = session.createDecipher(cbc, key);
    assert(Buffer.concat([decipher.update(parts), decipher.final()]).equals(MESSAGE), "AES-CBC in parts");
}

function finds(session) {
    const found = session.find({ class: ObjectClass.PRIVATE_KEY, label: "ec" });
    assert.strictEqual(found.length, 1);
    const key = found.items(0).toType();
    key.setAttribute({ label: "renamed" });
    assert.strictEqual(key.getAttribute("label"), "renamed");
    assert.throws(() => key.getAttribute("value"), /CKR_ATTRIBUTE_SENSITIVE/);
    session.destroy(key);
    assert.strictEqual(session.find({ label: "renamed" }).length, 0);
}

const [path, label, pin] = process.argv.slice(2);
const module_ = graphene.Module.load(path, "Metaslot");
module_.initialize();
const slots = module_.getSlots(true);
for (let at = 0; at < slots.length; at++) {
    if (slots.items(at).getToken().label.trim() !== label) {
        continue;
    }
    const session = slots.items(at).open(graphene.SessionFlag.SERIAL_SESSION | graphene.SessionFlag.RW_SESSION);
    session.login(pin);
    const digest = session.createDigest("sha256");
    digest.update(MESSAGE.subarray(0, 9));
    digest.update(MESSAGE.subarray(9));
    assert(digest.final().equals(crypto.createHash("sha256").update(MESSAGE).digest()), "SHA-256");
    for (const work of [rsa, curve, ciphers, finds]) {
        work(session);
    }
    session.logout();
    session.close();
    console.log("done");
}
module_.finalize();
