/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen threads sign with one key until it has nothing left: each of its one-time keys has signed once. */
#include "common.h"

enum { THREADS = 16, ALL = 1 << 10, BELOW = 5, TREE = 12 + 24 * (1 + 26 + 5), PUBLIC = 48 };

static CK_OBJECT_HANDLE public_key, private_key;
static atomic_ulong uses[ALL], signatures;

static CK_ULONG word(const CK_BYTE *bytes)
{
	return (CK_ULONG)bytes[0] << 24 | (CK_ULONG)bytes[1] << 16 | (CK_ULONG)bytes[2] << 8 | bytes[3];
}

static void *sign(void *unused)
{
	CK_MECHANISM mechanism = {CKM_HSS, NULL, 0};
	CK_BYTE signature[8000];
	CK_SESSION_HANDLE own = open_session();
	(void)unused;
	for (;;) {
		CK_ULONG length = sizeof(signature);
		CK_RV rv = p11->C_SignInit(own, &mechanism, private_key);
		if (rv == CKR_OK) rv = p11->C_Sign(own, (CK_BYTE *)"message", 7, signature, &length);
		if (rv == CKR_KEY_EXHAUSTED) return NULL;
		OK(rv);
		CK_ULONG number = word(signature + 4) << BELOW | word(signature + 4 + TREE + PUBLIC);
		CHECK(number < ALL);
		CHECK(atomic_fetch_add(&uses[number], 1) == 0);
		if (atomic_fetch_add(&signatures, 1) % 16) continue;
		OK(p11->C_VerifyInit(own, &mechanism, public_key));
		OK(p11->C_Verify(own, (CK_BYTE *)"message", 7, signature, length));
	}
}

int main(void)
{
	CK_MECHANISM mechanism = {CKM_HSS_KEY_PAIR_GEN, NULL, 0};
	CK_ULONG trees[] = {10, 10}, chains[] = {8, 8}, left = 1;
	CK_ATTRIBUTE public[] = {{CKA_TOKEN, &yes, 1}}, remaining = {CKA_HSS_KEYS_REMAINING, &left, sizeof(left)};
	CK_ATTRIBUTE private[] = {{CKA_TOKEN, &yes, 1}, {CKA_HSS_LMS_TYPES, trees, sizeof(trees)},
				  {CKA_HSS_LMOTS_TYPES, chains, sizeof(chains)}};
	pthread_t threads[THREADS];
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	CK_SESSION_HANDLE session = open_session();
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 1, private, 3, &public_key, &private_key));
	for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, sign, NULL) == 0);
	for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
	OK(p11->C_GetAttributeValue(session, private_key, &remaining, 1));
	CHECK(left == 0 && signatures == ALL);
	for (int i = 0; i < ALL; i++) CHECK(uses[i] == 1);
	OK(p11->C_Finalize(NULL));
	return 0;
}
