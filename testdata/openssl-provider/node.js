// SPDX-License-Identifier: Apache-2.0
// What Node.js does with libcrypto, printed where it is the same each time: so it can be compared with what Node.js does without a provider.
'use strict';
const assert = require('assert');
const crypto = require('crypto');
const fs = require('fs');
const https = require('https');
const data = Buffer.from('what is signed and sealed. '.repeat(400));

function digests() {
  for (const name of ['sha1', 'sha256', 'sha512', 'sha3-256', 'md5', 'blake2b512', 'shake256']) {
    const hash = crypto.createHash(name).update(data.subarray(0, 100));
    const copy = hash.copy().digest('hex');
    console.log(name, copy, hash.update(data).digest('hex'));
  }
  for (const name of ['sha256', 'sha512', 'sha3-256']) {
    console.log('hmac', name, crypto.createHmac(name, 'key').update(data).digest('hex'));
  }
}

function ciphers() {
  for (const [name, key, iv] of [
    ['aes-128-gcm', 16, 12], ['aes-256-gcm', 32, 12], ['chacha20-poly1305', 32, 12],
    ['aes-128-ccm', 16, 12], ['aes-256-cbc', 32, 16], ['aes-128-ctr', 16, 16],
  ]) {
    const made = [name, Buffer.alloc(key, 7), Buffer.alloc(iv, 9), { authTagLength: 16 }];
    const tagged = /gcm|ccm|poly/.test(name);
    const aad = cipher => {
      if (tagged) cipher.setAAD(Buffer.from('aad'), { plaintextLength: data.length });
    };
    const sealer = crypto.createCipheriv(...made);
    aad(sealer);
    const sealed = Buffer.concat([sealer.update(data), sealer.final()]);
    const opener = crypto.createDecipheriv(...made);
    if (tagged) opener.setAuthTag(sealer.getAuthTag());
    aad(opener);
    const opened = Buffer.concat([opener.update(sealed), opener.final()]);
    assert(opened.equals(data), name);
    console.log(name, crypto.createHash('sha256').update(sealed).digest('hex'));
  }
}

function derivations() {
  console.log('hkdf', Buffer.from(crypto.hkdfSync('sha256', 'key', 'salt', 'info', 48)).toString('hex'));
  console.log('pbkdf2', crypto.pbkdf2Sync('secret', 'salt', 1000, 48, 'sha256').toString('hex'));
  console.log('scrypt', crypto.scryptSync('secret', 'salt', 48).toString('hex'));
}

function pairs() {
  const { constants } = crypto;
  for (const [type, options, signing, hash] of [
    ['rsa', { modulusLength: 2048 }, {}, 'sha256'],
    ['rsa', { modulusLength: 2048 }, { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }, 'sha256'],
    ['ec', { namedCurve: 'P-256' }, {}, 'sha256'],
    ['ec', { namedCurve: 'P-384' }, { dsaEncoding: 'ieee-p1363' }, 'sha384'],
    ['ed25519', {}, {}, null],
  ]) {
    const pair = crypto.generateKeyPairSync(type, options);
    const pem = pair.privateKey.export({ type: 'pkcs8', format: 'pem' });
    const signature = crypto.sign(hash, data, { key: crypto.createPrivateKey(pem), ...signing });
    assert(crypto.verify(hash, data, { key: pair.publicKey, ...signing }, signature), type);
    signature[9] ^= 1;
    assert(!crypto.verify(hash, data, { key: pair.publicKey, ...signing }, signature), type);
  }
  const rsa = crypto.generateKeyPairSync('rsa', { modulusLength: 2048 });
  const oaep = crypto.publicEncrypt({ key: rsa.publicKey, oaepHash: 'sha256' }, data.subarray(0, 32));
  const opened = crypto.privateDecrypt({ key: rsa.privateKey, oaepHash: 'sha256' }, oaep);
  assert(opened.equals(data.subarray(0, 32)));
  const [one, other] = [0, 1].map(() => crypto.generateKeyPairSync('x25519'));
  const agreed = (own, peer) => crypto.diffieHellman({ privateKey: own.privateKey, publicKey: peer.publicKey });
  assert(agreed(one, other).equals(agreed(other, one)));
  const [a, b] = [0, 1].map(() => crypto.createECDH('prime256v1'));
  b.generateKeys();
  assert(a.computeSecret(b.getPublicKey(null, a.generateKeys() && 'uncompressed')).equals(b.computeSecret(a.getPublicKey())));
}

// A server whose key and certificate are files, and a client, in one process.
async function tls() {
  const [key, cert] = ['site.key', 'site.pem'].map(name => fs.readFileSync(name));
  const server = https.createServer({ key, cert }, (request, response) => response.end(data));
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  for (const version of ['TLSv1.2', 'TLSv1.3']) {
    const options = { host: '127.0.0.1', servername: 'localhost', port: server.address().port, ca: cert, agent: false };
    const got = await new Promise((resolve, reject) => {
      const versions = { minVersion: version, maxVersion: version };
      https.get({ ...options, ...versions }, response => {
        const parts = [];
        response.on('data', part => parts.push(part));
        response.on('end', () => resolve(Buffer.concat(parts)));
      }).on('error', reject);
    });
    assert(got.equals(data));
    console.log(version);
  }
  server.close();
}

// The key itself, which may be a token's: then it stays there.
function key() {
  const pair = crypto.createPrivateKey(fs.readFileSync('site.key'));
  const own = new crypto.X509Certificate(fs.readFileSync('site.pem')).publicKey;
  const signature = crypto.sign('sha256', data, pair);
  assert(crypto.verify('sha256', data, own, signature));
  console.log(pair.asymmetricKeyType);
  if (process.argv[3] === 'stays') {
    assert.throws(() => pair.export({ type: 'pkcs8', format: 'der' }));
    // What asks for the numbers of a public key gets them of one that is no half of a token's pair.
    const half = crypto.createPublicKey(pair).export({ type: 'spki', format: 'pem' });
    const again = crypto.createPublicKey(half);
    assert(again.equals(own) && again.export({ format: 'jwk' }).kty);
    assert(Object.keys(again.asymmetricKeyDetails).length > 0);
  }
}

const parts = { digests, ciphers, derivations, pairs, key, tls };
(async () => {
  for (const name of process.argv[2].split(',')) {
    await parts[name]();
  }
  console.log('done');
})();
