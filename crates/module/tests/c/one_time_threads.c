/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen threads sign with one key until it has nothing left: each of its one-time keys has signed once. Argument: the kind. */
#include "one_time.h"

enum { THREADS = 16, ALL = 1 << 10, TREE = 12 + 24 * (1 + 26 + 5), PUBLIC = 48 };

static CK_OBJECT_HANDLE public_key, private_key;
static atomic_ulong uses[ALL], signatures;

static void *sign(void *unused)
{
	CK_BYTE signature[8000];
	CK_SESSION_HANDLE own = open_session();
	(void)unused;
	for (;;) {
		CK_ULONG length = sizeof(signature);
		CK_RV rv = p11->C_SignInit(own, &one_time, private_key);
		if (rv == CKR_OK) rv = p11->C_Sign(own, (CK_BYTE *)"message", 7, signature, &length);
		if (rv == CKR_KEY_EXHAUSTED) return NULL;
		OK(rv);
		CK_ULONG number = number_in(signature, TREE + PUBLIC);
		CHECK(number < ALL);
		CHECK(atomic_fetch_add(&uses[number], 1) == 0);
		if (atomic_fetch_add(&signatures, 1) % 16) continue;
		OK(p11->C_VerifyInit(own, &one_time, public_key));
		OK(p11->C_Verify(own, (CK_BYTE *)"message", 7, signature, length));
	}
}

int main(int argc, char **argv)
{
	CK_ULONG trees[] = {10, 10}, chains[] = {8, 8}, left = 1;
	CK_ATTRIBUTE remaining = {CKA_HSS_KEYS_REMAINING, &left, sizeof(left)};
	CK_OBJECT_HANDLE keys[2];
	pthread_t threads[THREADS];
	CHECK(argc == 2);
	choose(argv[1]);
	CK_SESSION_HANDLE session = begin_as_user();
	OK(make_one_time(session, "key", 2, trees, chains, keys));
	public_key = keys[0];
	private_key = keys[1];
	for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, sign, NULL) == 0);
	for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
	OK(p11->C_GetAttributeValue(session, private_key, &remaining, 1));
	CHECK(left == 0 && signatures == ALL);
	for (int i = 0; i < ALL; i++) CHECK(uses[i] == 1);
	OK(p11->C_Finalize(NULL));
	return 0;
}
