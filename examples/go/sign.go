// SPDX-License-Identifier: Apache-2.0

// Finds a key by its URI and signs with it; makes an AES key and seals with that.
//
//	go run . /usr/lib/x86_64-linux-gnu/pkcs11/libmetaslot.so 'pkcs11:token=web;object=site' pin-file
package main

import (
	"fmt"
	"log"
	"net/url"
	"os"
	"strings"

	"github.com/miekg/pkcs11"
)

// said is what a PKCS#11 URI (RFC 7512) says under a name.
func said(uri, name string) string {
	_, value, _ := strings.Cut(";"+strings.TrimPrefix(uri, "pkcs11:"), ";"+name+"=")
	value, _, _ = strings.Cut(value, ";")
	return must(url.PathUnescape(value))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func find(p11 *pkcs11.Ctx, session pkcs11.SessionHandle, class uint, label string) pkcs11.ObjectHandle {
	check(p11.FindObjectsInit(session, []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_CLASS, class), pkcs11.NewAttribute(pkcs11.CKA_LABEL, label)}))
	found, _, err := p11.FindObjects(session, 1)
	check(err)
	check(p11.FindObjectsFinal(session))
	return append(found, 0)[0]
}

func main() {
	uri, pin := os.Args[2], strings.TrimSpace(string(must(os.ReadFile(os.Args[3]))))
	p11 := pkcs11.New(os.Args[1])
	check(p11.Initialize())
	for _, slot := range must(p11.GetSlotList(true)) {
		if must(p11.GetTokenInfo(slot)).Label == said(uri, "token") {
			session := must(p11.OpenSession(slot, pkcs11.CKF_SERIAL_SESSION))
			check(p11.Login(session, pkcs11.CKU_USER, pin))
			use(p11, session, said(uri, "object"))
		}
	}
}

func use(p11 *pkcs11.Ctx, session pkcs11.SessionHandle, label string) {
	sign := []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_ECDSA_SHA256, nil)}
	check(p11.SignInit(session, sign, find(p11, session, pkcs11.CKO_PRIVATE_KEY, label)))
	signature := must(p11.Sign(session, []byte("message")))
	check(p11.VerifyInit(session, sign, find(p11, session, pkcs11.CKO_PUBLIC_KEY, label)))
	check(p11.Verify(session, []byte("message"), signature))
	fmt.Printf("signature: %x\n", signature)

	// A session object: it is gone when the program ends.
	generate := []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_AES_KEY_GEN, nil)}
	key := must(p11.GenerateKey(session, generate, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_VALUE_LEN, 32)}))
	gcm := pkcs11.NewGCMParams(must(p11.GenerateRandom(session, 12)), nil, 128)
	defer gcm.Free()
	seal := []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_AES_GCM, gcm)}
	check(p11.EncryptInit(session, seal, key))
	sealed := must(p11.Encrypt(session, []byte("secret")))
	check(p11.DecryptInit(session, seal, key))
	if string(must(p11.Decrypt(session, sealed))) != "secret" {
		log.Fatal("not what was sealed")
	}
	fmt.Println(len(sealed), "bytes sealed and opened")
}
