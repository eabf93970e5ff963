/* SPDX-License-Identifier: Apache-2.0 */
/* What ends stays ended, and what was acknowledged stays done: logout and destruction with more objects than any
 * cache holds, under operations that are active, and threads that change and destroy the same objects. */
#include "common.h"

#define MANY 1300
#define ACTIVE 40
#define ROUNDS 3000

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE keys[MANY];
static CK_SESSION_HANDLE active[ACTIVE];
static CK_BYTE block[16], out[16];

static CK_OBJECT_HANDLE make_key(CK_SESSION_HANDLE in, CK_BBOOL *token)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG length = 32;
	CK_OBJECT_HANDLE key;
	CK_ATTRIBUTE template[] = {
		{CKA_VALUE_LEN, &length, sizeof length}, {CKA_TOKEN, token, 1},
		{CKA_PRIVATE, token, 1}, {CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1},
	};
	OK(p11->C_GenerateKey(in, &generate, template, 5, &key));
	return key;
}

static CK_RV begin(CK_SESSION_HANDLE in, CK_OBJECT_HANDLE key)
{
	CK_MECHANISM mechanism = {CKM_AES_ECB, NULL, 0};
	return p11->C_EncryptInit(in, &mechanism, key);
}

static CK_RV finish(CK_SESSION_HANDLE in)
{
	CK_ULONG length = 16;
	return p11->C_Encrypt(in, block, 16, out, &length);
}

static CK_RV use(CK_SESSION_HANDLE in, CK_OBJECT_HANDLE key)
{
	CK_RV rv = begin(in, key);
	return rv == CKR_OK ? finish(in) : rv;
}

static void log_in(void)
{
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
}

/* Every key is used, so that caches hold what they hold, and then some have an operation each. */
static void use_all(void)
{
	for (int i = 0; i < MANY; i++) OK(use(active[i % ACTIVE], keys[i]));
	for (int i = 0; i < ACTIVE; i++) OK(begin(active[i], keys[i * (MANY / ACTIVE)]));
	for (int i = 0; i < MANY; i++) OK(use(session, keys[i]));
}

static void everything_is_over(void)
{
	for (int i = 0; i < ACTIVE; i++) EXPECT(finish(active[i]), CKR_OPERATION_NOT_INITIALIZED);
	for (int i = 0; i < MANY; i++) EXPECT(use(active[i % ACTIVE], keys[i]), CKR_KEY_HANDLE_INVALID);
}

static void find_again(void)
{
	CK_ULONG count;
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_ATTRIBUTE query = {CKA_CLASS, &class, sizeof class};
	OK(p11->C_FindObjectsInit(session, &query, 1));
	OK(p11->C_FindObjects(session, keys, MANY, &count));
	CHECK(count == MANY);
	OK(p11->C_FindObjectsFinal(session));
}

static void *destroy_all(void *unused)
{
	CK_SESSION_HANDLE own = open_session();
	for (int i = 0; i < MANY; i++) OK(p11->C_DestroyObject(own, keys[i]));
	OK(p11->C_CloseSession(own));
	return unused;
}

static void many_objects(void)
{
	pthread_t thread;
	for (int i = 0; i < ACTIVE; i++) active[i] = open_session();
	log_in();
	for (int i = 0; i < MANY; i++) keys[i] = make_key(session, &yes);
	use_all();
	OK(p11->C_Logout(session));
	everything_is_over();
	log_in();
	everything_is_over();
	find_again();
	use_all();
	CHECK(pthread_create(&thread, NULL, destroy_all, NULL) == 0 && pthread_join(thread, NULL) == 0);
	everything_is_over();
}

static pthread_barrier_t together;
static CK_OBJECT_HANDLE shared;
static CK_RV answers[2];
static CK_BBOOL *on_token;
static int destroying;

/* One thread protects or destroys what the other renames. */
static void *change(void *number)
{
	int which = number != NULL;
	CK_SESSION_HANDLE own = open_session();
	CK_UTF8CHAR name[] = "name";
	CK_ATTRIBUTE changes[] = {{CKA_LABEL, name, 4}, {CKA_SENSITIVE, &yes, 1}};
	for (int round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&together);
		answers[which] = which && destroying ? p11->C_DestroyObject(own, shared)
						     : p11->C_SetAttributeValue(own, shared, &changes[which], 1);
		pthread_barrier_wait(&together);
	}
	OK(p11->C_CloseSession(own));
	return NULL;
}

static void two_threads(void)
{
	pthread_t threads[2];
	for (intptr_t i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, change, (void *)i) == 0);
	for (int round = 0; round < ROUNDS; round++) {
		CK_BYTE value[32];
		CK_ATTRIBUTE wanted[] = {{CKA_VALUE, value, 32}, {CKA_LABEL, value, 32}};
		shared = make_key(session, on_token);
		pthread_barrier_wait(&together);
		pthread_barrier_wait(&together);
		OK(answers[1]);
		if (destroying) {
			CHECK(answers[0] == CKR_OK || answers[0] == CKR_OBJECT_HANDLE_INVALID);
			EXPECT(p11->C_GetAttributeValue(session, shared, &wanted[1], 1), CKR_OBJECT_HANDLE_INVALID);
			EXPECT(use(session, shared), CKR_KEY_HANDLE_INVALID);
			continue;
		}
		OK(answers[0]);
		EXPECT(p11->C_GetAttributeValue(session, shared, &wanted[0], 1), CKR_ATTRIBUTE_SENSITIVE);
		OK(p11->C_GetAttributeValue(session, shared, &wanted[1], 1));
		CHECK(wanted[1].ulValueLen == 4);
		OK(p11->C_DestroyObject(session, shared));
	}
	for (int i = 0; i < 2; i++) CHECK(pthread_join(threads[i], NULL) == 0);
}

int main(void)
{
	alarm(240);
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	session = open_session();
	many_objects();
	CHECK(pthread_barrier_init(&together, NULL, 3) == 0);
	for (int variant = 0; variant < 4; variant++) {
		on_token = variant & 1 ? &yes : &no;
		destroying = variant & 2;
		two_threads();
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
