// SPDX-License-Identifier: Apache-2.0

// What a Go program does with a token by crypto11: crypto11 MODULE TOKEN PIN.
package main

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"math/big"
	"os"
	"time"

	"github.com/ThalesIgnite/crypto11"
)

var message = []byte("what is signed, sealed and sent")

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func require(holds bool, what string) {
	if !holds {
		log.Fatal(what)
	}
}

func main() {
	token := must(crypto11.Configure(&crypto11.Config{Path: os.Args[1], TokenLabel: os.Args[2], Pin: os.Args[3]}))
	rsaKey := must(token.GenerateRSAKeyPairWithLabel([]byte{1}, []byte("rsa"), 2048))
	ecKey := must(token.GenerateECDSAKeyPairWithLabel([]byte{2}, []byte("ec"), elliptic.P256()))
	signs(rsaKey, ecKey)
	decrypts(rsaKey)
	seals(token)
	authenticates(token)
	found := must(token.FindKeyPair(nil, []byte("ec")))
	require(found.Public().(*ecdsa.PublicKey).Equal(ecKey.Public()), "another key is found")
	serves(token, rsaKey, 1)
	serves(token, found, 2)
	check(rsaKey.Delete())
	require(must(token.FindKeyPair(nil, []byte("rsa"))) == nil, "the deleted key is found")
	check(token.Close())
	fmt.Println("done")
}

func signs(rsaKey, ecKey crypto.Signer) {
	digest := sha256.Sum256(message)
	public := rsaKey.Public().(*rsa.PublicKey)
	check(rsa.VerifyPKCS1v15(public, crypto.SHA256, digest[:], must(rsaKey.Sign(rand.Reader, digest[:], crypto.SHA256))))
	pss := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256}
	check(rsa.VerifyPSS(public, crypto.SHA256, digest[:], must(rsaKey.Sign(rand.Reader, digest[:], pss)), pss))
	signature := must(ecKey.Sign(rand.Reader, digest[:], crypto.SHA256))
	require(ecdsa.VerifyASN1(ecKey.Public().(*ecdsa.PublicKey), digest[:], signature), "ECDSA")
}

func decrypts(key crypto11.SignerDecrypter) {
	public := key.Public().(*rsa.PublicKey)
	sealed := must(rsa.EncryptPKCS1v15(rand.Reader, public, message))
	require(bytes.Equal(must(key.Decrypt(rand.Reader, sealed, nil)), message), "PKCS #1 v1.5")
	sealed = must(rsa.EncryptOAEP(sha256.New(), rand.Reader, public, message, nil))
	require(bytes.Equal(must(key.Decrypt(rand.Reader, sealed, &rsa.OAEPOptions{Hash: crypto.SHA256})), message), "OAEP")
}

func seals(token *crypto11.Context) {
	key := must(token.GenerateSecretKeyWithLabel([]byte{3}, []byte("aes"), 256, crypto11.CipherAES))
	aead := must(key.NewGCM())
	nonce := must(token.NewRandomReader())
	bytesOfNonce := make([]byte, aead.NonceSize())
	must(io.ReadFull(nonce, bytesOfNonce))
	sealed := aead.Seal(nil, bytesOfNonce, message, []byte("with it"))
	require(bytes.Equal(must(aead.Open(nil, bytesOfNonce, sealed, []byte("with it"))), message), "AES-GCM")
	sealed[0] ^= 1
	_, err := aead.Open(nil, bytesOfNonce, sealed, []byte("with it"))
	require(err != nil, "a changed text is opened")
	blocks := message[:len(message)/16*16]
	hidden := make([]byte, len(blocks))
	encrypter := must(key.NewCBCEncrypterCloser(make([]byte, 16)))
	encrypter.CryptBlocks(hidden, blocks)
	encrypter.Close()
	require(!bytes.Equal(hidden, blocks), "AES-CBC does nothing")
	decrypter := must(key.NewCBCDecrypterCloser(make([]byte, 16)))
	decrypter.CryptBlocks(hidden, hidden)
	decrypter.Close()
	require(bytes.Equal(hidden, blocks), "AES-CBC")
}

func authenticates(token *crypto11.Context) {
	key := must(token.GenerateSecretKeyWithLabel([]byte{4}, []byte("mac"), 256, crypto11.CipherGeneric))
	mac := must(key.NewHMAC(0x251, 32)) // CKM_SHA256_HMAC
	must(mac.Write(message))
	first := mac.Sum(nil)
	mac.Reset()
	must(mac.Write(message))
	require(len(first) == 32 && bytes.Equal(first, mac.Sum(nil)), "HMAC")
}

// serves answers one TLS 1.3 client with the key and a certificate that the token keeps.
func serves(token *crypto11.Context, key crypto.Signer, serial int64) {
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "localhost"},
		DNSNames: []string{"localhost"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der := must(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	certificate := must(x509.ParseCertificate(der))
	check(token.ImportCertificateWithLabel([]byte{byte(serial)}, []byte("server"), certificate))
	stored := must(token.FindCertificate([]byte{byte(serial)}, nil, nil))
	require(stored.Equal(certificate), "another certificate is found")
	chain := tls.Certificate{Certificate: [][]byte{stored.Raw}, PrivateKey: key}
	listener := must(tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{chain}}))
	go func() {
		connection := must(listener.Accept())
		must(io.Copy(connection, io.LimitReader(connection, int64(len(message)))))
		check(connection.Close())
	}()
	trusted := x509.NewCertPool()
	trusted.AddCert(stored)
	client := must(tls.Dial("tcp", listener.Addr().String(), &tls.Config{RootCAs: trusted, ServerName: "localhost"}))
	must(client.Write(message))
	require(bytes.Equal(must(io.ReadAll(client)), message), "the echo")
	require(client.ConnectionState().Version == tls.VersionTLS13, "not TLS 1.3")
	check(client.Close())
	check(listener.Close())
}
