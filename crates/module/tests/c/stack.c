// SPDX-License-Identifier: Apache-2.0
/* Everything works on a thread with 128 KiB of stack: log in, generate, sign, wrap, search. */
#include "common.h"

static void generate_and_sign(CK_SESSION_HANDLE session, CK_BBOOL token)
{
	CK_MECHANISM rsa = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0}, ec = {CKM_EC_KEY_PAIR_GEN, NULL, 0},
		     ed = {CKM_EC_EDWARDS_KEY_PAIR_GEN, NULL, 0};
	CK_MECHANISM pss = {CKM_SHA256_RSA_PKCS, NULL, 0}, ecdsa = {CKM_ECDSA_SHA256, NULL, 0},
		     eddsa = {CKM_EDDSA, NULL, 0};
	CK_MECHANISM lattice = {CKM_ML_DSA_KEY_PAIR_GEN, NULL, 0}, mldsa = {CKM_ML_DSA, NULL, 0};
	CK_SIGN_ADDITIONAL_CONTEXT fixed = {CKH_DETERMINISTIC_REQUIRED, NULL, 0};
	CK_MECHANISM hashed = {CKM_HASH_ML_DSA_SHAKE256, &fixed, sizeof fixed};
	CK_ML_DSA_PARAMETER_SET_TYPE largest = CKP_ML_DSA_87;
	CK_BYTE p521[] = {6, 5, 0x2b, 0x81, 4, 0, 0x23}, ed25519[] = {6, 3, 0x2b, 0x65, 0x70};
	CK_ULONG bits = 4096, length;
	CK_ATTRIBUTE size = {CKA_MODULUS_BITS, &bits, sizeof bits};
	CK_ATTRIBUTE curve = {CKA_EC_PARAMS, p521, sizeof p521};
	CK_ATTRIBUTE edwards = {CKA_EC_PARAMS, ed25519, sizeof ed25519};
	CK_ATTRIBUTE set = {CKA_PARAMETER_SET, &largest, sizeof largest};
	CK_ATTRIBUTE place[] = {{CKA_TOKEN, &token, 1}, {CKA_PRIVATE, &token, 1}};
	struct {
		CK_MECHANISM *generate, *sign;
		CK_ATTRIBUTE *template;
	} kinds[] = {{&rsa, &pss, &size}, {&ec, &ecdsa, &curve}, {&ed, &eddsa, &edwards},
		     {&lattice, &mldsa, &set}, {&lattice, &hashed, &set}};
	for (int i = 0; i < 5; i++) {
		CK_OBJECT_HANDLE public, private;
		CK_BYTE signature[4627];
		length = sizeof signature;
		OK(p11->C_GenerateKeyPair(session, kinds[i].generate, kinds[i].template, 1, place, 2,
					  &public, &private));
		OK(p11->C_SignInit(session, kinds[i].sign, private));
		OK(p11->C_Sign(session, (CK_BYTE *)"data", 4, signature, &length));
		OK(p11->C_VerifyInit(session, kinds[i].sign, public));
		OK(p11->C_Verify(session, (CK_BYTE *)"data", 4, signature, length));
	}
}

static void *small(void *unused)
{
	CK_SESSION_HANDLE session;
	CK_OBJECT_HANDLE found[8];
	CK_ULONG count;
	(void)unused;
	OK(p11->C_Initialize(NULL));
	make_token();
	session = open_session();
	check_works(session);
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	generate_and_sign(session, CK_FALSE);
	generate_and_sign(session, CK_TRUE);
	OK(p11->C_FindObjectsInit(session, NULL, 0));
	OK(p11->C_FindObjects(session, found, 8, &count));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(count > 0);
	OK(p11->C_Logout(session));
	OK(p11->C_Finalize(NULL));
	return NULL;
}

int main(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	alarm(120);
	load();
	CHECK(pthread_attr_init(&attributes) == 0);
	CHECK(pthread_attr_setstacksize(&attributes, 128 * 1024) == 0);
	CHECK(pthread_create(&thread, &attributes, small, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	return 0;
}
