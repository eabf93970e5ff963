#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes keyfile/*: files of keys as OpenSSL and OpenSSH write them, small and cheap to open, under the passphrase 'a phrase'.
set -eu
cd "$(dirname "$0")/keyfile"
rm -f -- *
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
pass=pass:'a phrase'
openssl genpkey -quiet -algorithm rsa -pkeyopt rsa_keygen_bits:1024 -outform der -out pkcs8-rsa
openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:P-256 -outform der -out pkcs8-p256
openssl genpkey -algorithm ed25519 -outform der -out pkcs8-ed25519
openssl genpkey -algorithm x25519 -outform der -out pkcs8-x25519
openssl rsa -in pkcs8-rsa -traditional -outform der -out pkcs1
openssl ec -in pkcs8-p256 -outform der -out sec1
openssl ec -in pkcs8-p256 -conv_form compressed -pubout -outform der -out public
openssl ec -in pkcs8-p256 -aes128 -passout "$pass" -out traditional.pem
openssl pkcs8 -topk8 -in pkcs8-p256 -iter 1000 -passout "$pass" -outform der -out encrypted
openssl pkcs8 -topk8 -in pkcs8-p256 -iter 1000 -v2 des3 -v2prf hmacWithSHA512 -passout "$pass" -outform der -out encrypted-des3
openssl pkcs8 -topk8 -in pkcs8-p256 -iter 500 -v1 PBE-SHA1-3DES -passout "$pass" -outform der -out encrypted-v1
openssl pkcs8 -topk8 -in pkcs8-p256 -scrypt -passout "$pass" -outform der -out encrypted-scrypt
openssl req -x509 -key pkcs8-p256 -subj /CN=site -days 9 -out "$work/crt"
openssl ec -in pkcs8-p256 -out "$work/key"
p12() { openssl pkcs12 -export -inkey "$work/key" -iter 500 -passout "$pass" "$@"; }
p12 -in "$work/crt" -name site -out p12
p12 -nocerts -macalg sha512 -out p12-sha512
p12 -nocerts -keypbe NONE -nomac -out p12-open
p12 -legacy -in "$work/crt" -out p12-legacy
ssh() { ssh-keygen -q -C it -a 1 -f "$work/it" "$@"; sed 1d\;\$d "$work/it" | base64 -d > "$name"; rm "$work/it"; }
name=openssh-rsa ssh -t rsa -b 1024 -N ''
name=openssh-ecdsa ssh -t ecdsa -N ''
name=openssh-ed25519 ssh -t ed25519 -N ''
for cipher in aes256-ctr aes128-cbc aes256-gcm@openssh.com chacha20-poly1305@openssh.com; do
    name=openssh-${cipher%@*} ssh -t ed25519 -N 'a phrase' -Z "$cipher"
done
cat "$work/key" "$work/crt" > both.pem
/usr/bin/python3 ../../python/pbmac1.py p12-open p12-pbmac1 sha256 sha256 'a phrase'
