// SPDX-License-Identifier: Apache-2.0

// What a Go program does with a token by miekg/pkcs11: miekg MODULE TOKEN PIN.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log"
	"os"

	p11 "github.com/miekg/pkcs11"
)

var message = []byte("what is signed, sealed and digested")

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

func mechanism(kind uint, parameter any) []*p11.Mechanism {
	return []*p11.Mechanism{p11.NewMechanism(kind, parameter)}
}

type client struct {
	*p11.Ctx
	session p11.SessionHandle
}

func main() {
	module := p11.New(os.Args[1])
	check(module.Initialize())
	for _, slot := range must(module.GetSlotList(true)) {
		if must(module.GetTokenInfo(slot)).Label != os.Args[2] {
			continue
		}
		session := must(module.OpenSession(slot, p11.CKF_SERIAL_SESSION|p11.CKF_RW_SESSION))
		check(module.Login(session, p11.CKU_USER, os.Args[3]))
		token := client{module, session}
		token.digests()
		token.rsa()
		token.wraps()
		token.finds()
		check(module.Logout(session))
		check(module.CloseSession(session))
	}
	check(module.Finalize())
	module.Destroy()
	fmt.Println("done")
}

func (c client) digests() {
	check(c.DigestInit(c.session, mechanism(p11.CKM_SHA256, nil)))
	check(c.DigestUpdate(c.session, message[:7]))
	check(c.DigestUpdate(c.session, message[7:]))
	expected := sha256.Sum256(message)
	require(bytes.Equal(must(c.DigestFinal(c.session)), expected[:]), "SHA-256")
}

func (c client) rsa() {
	public, private, err := c.GenerateKeyPair(c.session, mechanism(p11.CKM_RSA_PKCS_KEY_PAIR_GEN, nil),
		[]*p11.Attribute{p11.NewAttribute(p11.CKA_MODULUS_BITS, 2048),
			p11.NewAttribute(p11.CKA_PUBLIC_EXPONENT, []byte{1, 0, 1}), p11.NewAttribute(p11.CKA_VERIFY, true)},
		[]*p11.Attribute{p11.NewAttribute(p11.CKA_TOKEN, true), p11.NewAttribute(p11.CKA_LABEL, "rsa"),
			p11.NewAttribute(p11.CKA_SENSITIVE, true), p11.NewAttribute(p11.CKA_SIGN, true)})
	check(err)
	pss := p11.NewPSSParams(p11.CKM_SHA256, p11.CKG_MGF1_SHA256, 32)
	for _, signs := range [][]*p11.Mechanism{mechanism(p11.CKM_SHA256_RSA_PKCS, nil), mechanism(p11.CKM_SHA256_RSA_PKCS_PSS, pss)} {
		check(c.SignInit(c.session, signs, private))
		check(c.SignUpdate(c.session, message))
		signature := must(c.SignFinal(c.session))
		check(c.VerifyInit(c.session, signs, public))
		check(c.Verify(c.session, message, signature))
		signature[9] ^= 1
		check(c.VerifyInit(c.session, signs, public))
		require(errors.Is(c.Verify(c.session, message, signature), p11.Error(p11.CKR_SIGNATURE_INVALID)), "a changed signature")
	}
	oaep := mechanism(p11.CKM_RSA_PKCS_OAEP, p11.NewOAEPParams(p11.CKM_SHA256, p11.CKG_MGF1_SHA256, p11.CKZ_DATA_SPECIFIED, nil))
	check(c.EncryptInit(c.session, oaep, public))
	sealed := must(c.Encrypt(c.session, message))
	check(c.DecryptInit(c.session, oaep, private))
	require(bytes.Equal(must(c.Decrypt(c.session, sealed)), message), "OAEP")
}

func (c client) secret(label string, wraps bool) p11.ObjectHandle {
	return must(c.GenerateKey(c.session, mechanism(p11.CKM_AES_KEY_GEN, nil), []*p11.Attribute{
		p11.NewAttribute(p11.CKA_VALUE_LEN, 32), p11.NewAttribute(p11.CKA_LABEL, label),
		p11.NewAttribute(p11.CKA_EXTRACTABLE, !wraps), p11.NewAttribute(p11.CKA_SENSITIVE, true),
		p11.NewAttribute(p11.CKA_ENCRYPT, !wraps), p11.NewAttribute(p11.CKA_DECRYPT, !wraps),
		p11.NewAttribute(p11.CKA_WRAP, wraps), p11.NewAttribute(p11.CKA_UNWRAP, wraps)}))
}

// wraps carries a key out and in again; what it sealed before, it opens after.
func (c client) wraps() {
	carrier, carried := c.secret("carrier", true), c.secret("carried", false)
	cbc := mechanism(p11.CKM_AES_CBC_PAD, make([]byte, 16))
	check(c.EncryptInit(c.session, cbc, carried))
	sealed := must(c.Encrypt(c.session, message))
	wraps := mechanism(p11.CKM_AES_KEY_WRAP, nil)
	wrapped := must(c.WrapKey(c.session, wraps, carrier, carried))
	require(len(wrapped) == 40, "not a wrapped key")
	back := must(c.UnwrapKey(c.session, wraps, carrier, wrapped, []*p11.Attribute{
		p11.NewAttribute(p11.CKA_CLASS, p11.CKO_SECRET_KEY), p11.NewAttribute(p11.CKA_KEY_TYPE, p11.CKK_AES),
		p11.NewAttribute(p11.CKA_DECRYPT, true)}))
	check(c.DecryptInit(c.session, cbc, back))
	require(bytes.Equal(must(c.Decrypt(c.session, sealed)), message), "the key that came back")
}

func (c client) finds() {
	check(c.FindObjectsInit(c.session, []*p11.Attribute{p11.NewAttribute(p11.CKA_LABEL, "rsa")}))
	found, _, err := c.FindObjects(c.session, 10)
	check(err)
	check(c.FindObjectsFinal(c.session))
	require(len(found) == 1, fmt.Sprint(len(found), " keys"))
	check(c.SetAttributeValue(c.session, found[0], []*p11.Attribute{p11.NewAttribute(p11.CKA_LABEL, "renamed")}))
	read := must(c.GetAttributeValue(c.session, found[0], []*p11.Attribute{p11.NewAttribute(p11.CKA_LABEL, nil)}))
	require(string(read[0].Value) == "renamed", "the label")
	_, err = c.GetAttributeValue(c.session, found[0], []*p11.Attribute{p11.NewAttribute(p11.CKA_PRIVATE_EXPONENT, nil)})
	require(errors.Is(err, p11.Error(p11.CKR_ATTRIBUTE_SENSITIVE)), "a private exponent is shown")
	check(c.DestroyObject(c.session, found[0]))
}
