/* SPDX-License-Identifier: Apache-2.0 */
/* `Whole` of our own interface beside the two functions that it stands for. Prints how many digests and encryptions were
 * made, how many of those failed, and how many MACs were made. */
#include "common.h"

#define LENGTH 48
#define TAG 16
#define TIMES 1000

static METASLOT_FUNCTION_LIST *metaslot;
static CK_SESSION_HANDLE session;
static CK_MECHANISM hash = {CKM_SHA256, NULL, 0};
static CK_MECHANISM hmac = {CKM_SHA256_HMAC, NULL, 0};
static atomic_int digests, ciphers, macs;

static CK_RV whole(CK_FLAGS what, CK_MECHANISM *mechanism, CK_OBJECT_HANDLE key, void *data, CK_ULONG length, CK_BYTE *out,
		   CK_ULONG *room)
{
	return metaslot->Whole(session, what, mechanism, key, data, length, out, room);
}

static void digests_are_the_same(void)
{
	CK_BYTE data[3000] = {7}, one[32], other[33];
	for (CK_ULONG length = 0; length <= sizeof data; length += 500) {
		CK_ULONG room = sizeof other;
		sha256(session, data, length, one);
		OK(whole(CKF_DIGEST, &hash, 0, data, length, other, &room));
		CHECK(room == 32 && memcmp(one, other, 32) == 0);
		digests += 2;
	}
}

static void macs_are_the_same(CK_OBJECT_HANDLE key)
{
	CK_BYTE data[3000] = {5}, one[32], other[33];
	for (CK_ULONG length = 0; length <= sizeof data; length += 500) {
		CK_ULONG room = sizeof one;
		OK(p11->C_SignInit(session, &hmac, key));
		OK(p11->C_Sign(session, data, length, one, &room));
		room = sizeof other;
		OK(whole(CKF_SIGN, &hmac, key, data, length, other, &room));
		CHECK(room == 32 && memcmp(one, other, 32) == 0);
		macs += 2;
	}
}

/* One that is active stays, and is finished by its own calls. */
static void macs_do_not_meet(CK_OBJECT_HANDLE key)
{
	CK_BYTE data[LENGTH] = {6}, one[32], other[32];
	CK_ULONG room = 0;
	OK(p11->C_SignInit(session, &hmac, key));
	OK(p11->C_SignUpdate(session, data, 7));
	OK(whole(CKF_SIGN, &hmac, key, data, LENGTH, NULL, &room));
	CHECK(room == 32);
	room = 31;
	EXPECT(whole(CKF_SIGN, &hmac, key, data, LENGTH, one, &room), CKR_BUFFER_TOO_SMALL);
	OK(whole(CKF_SIGN, &hmac, key, data, LENGTH, one, (room = 32, &room)));
	OK(p11->C_SignUpdate(session, data + 7, LENGTH - 7));
	OK(p11->C_SignFinal(session, other, &room));
	CHECK(memcmp(one, other, 32) == 0);
	macs += 2;
}

/* Whatever goes on in the session goes on. */
static void what_is_active_stays(CK_MECHANISM *gcm, CK_OBJECT_HANDLE key)
{
	CK_BYTE out[LENGTH + TAG], one[32], other[32], data[LENGTH] = {1};
	CK_ULONG room = 32;
	OK(p11->C_DigestInit(session, &hash));
	OK(p11->C_DigestUpdate(session, data, 5));
	OK(p11->C_EncryptInit(session, gcm, key));
	OK(whole(CKF_DIGEST, &hash, 0, data, LENGTH, one, &room));
	OK(p11->C_DigestUpdate(session, data + 5, LENGTH - 5));
	OK(p11->C_DigestFinal(session, other, &room));
	CHECK(memcmp(one, other, 32) == 0);
	room = sizeof out;
	OK(whole(CKF_ENCRYPT, gcm, key, data, LENGTH, out, &room));
	OK(p11->C_Encrypt(session, data, LENGTH, out, &room));
	digests += 2;
	ciphers += 2;
}

static void ciphers_are_the_same(CK_MECHANISM *gcm, CK_OBJECT_HANDLE key)
{
	CK_BYTE data[LENGTH + TAG] = {2}, one[LENGTH + TAG], other[LENGTH + TAG];
	CK_ULONG room = sizeof one;
	OK(p11->C_EncryptInit(session, gcm, key));
	OK(p11->C_Encrypt(session, data, LENGTH, one, &room));
	OK(whole(CKF_ENCRYPT, gcm, key, data, LENGTH, other, &room));
	CHECK(room == sizeof one && memcmp(one, other, room) == 0);
	/* In its place. */
	OK(whole(CKF_DECRYPT, gcm, key, other, LENGTH + TAG, other, &room));
	CHECK(room == LENGTH && memcmp(other, data, LENGTH) == 0);
	one[3] ^= 1;
	EXPECT(whole(CKF_DECRYPT, gcm, key, one, LENGTH + TAG, other, &room), CKR_ENCRYPTED_DATA_INVALID);
	ciphers += 4;
}

static void what_is_wrong_is_refused(CK_MECHANISM *gcm, CK_OBJECT_HANDLE key)
{
	CK_BYTE data[LENGTH] = {3}, out[LENGTH + TAG];
	CK_ULONG room = 0;
	CK_MECHANISM none = {0x7fff0000, NULL, 0}, empty = {CKM_AES_GCM, NULL, 0};
	OK(whole(CKF_DIGEST, &hash, 0, data, LENGTH, NULL, &room));
	CHECK(room == 32);
	room = 31;
	EXPECT(whole(CKF_DIGEST, &hash, 0, data, LENGTH, out, &room), CKR_BUFFER_TOO_SMALL);
	CHECK(room == 32);
	EXPECT(whole(CKF_ENCRYPT, gcm, key, data, LENGTH, out, &room), CKR_BUFFER_TOO_SMALL);
	CHECK(room == LENGTH + TAG);
	EXPECT(whole(CKF_DIGEST, &none, 0, data, LENGTH, out, &room), CKR_MECHANISM_INVALID);
	EXPECT(whole(CKF_DIGEST, NULL, 0, data, LENGTH, out, &room), CKR_ARGUMENTS_BAD);
	EXPECT(whole(CKF_VERIFY, gcm, key, data, LENGTH, out, &room), CKR_ARGUMENTS_BAD);
	EXPECT(whole(CKF_SIGN, &hmac, key, data, LENGTH, out, (room = 32, &room)), CKR_KEY_TYPE_INCONSISTENT);
	EXPECT(whole(CKF_SIGN, &hmac, key + 40, data, LENGTH, out, &room), CKR_KEY_HANDLE_INVALID);
	EXPECT(whole(CKF_ENCRYPT, &empty, key, data, LENGTH, out, &room), CKR_MECHANISM_PARAM_INVALID);
	EXPECT(whole(CKF_ENCRYPT, gcm, key + 40, data, LENGTH, out, &room), CKR_KEY_HANDLE_INVALID);
	EXPECT(whole(CKF_ENCRYPT, gcm, key, NULL, LENGTH, out, &room), CKR_ARGUMENTS_BAD);
	EXPECT(metaslot->Whole(session + 1, CKF_DIGEST, &hash, 0, data, LENGTH, out, &room), CKR_SESSION_HANDLE_INVALID);
	EXPECT(metaslot->Whole(session + 1, CKF_ENCRYPT, gcm, key, data, LENGTH, out, &room), CKR_SESSION_HANDLE_INVALID);
}

static void *in_the_same_session(void *with)
{
	CK_BYTE data[LENGTH] = {4}, first[LENGTH + TAG], out[LENGTH + TAG];
	CK_OBJECT_HANDLE key = *(CK_OBJECT_HANDLE *)((void **)with)[1];
	for (int at = 0; at < TIMES; at++) {
		CK_ULONG room = sizeof out;
		OK(whole(CKF_DIGEST, &hash, 0, data, LENGTH, out, &room));
		OK(whole(CKF_ENCRYPT, ((void **)with)[0], key, data, LENGTH, at ? out : first, (room = sizeof out, &room)));
		CHECK(at == 0 || memcmp(out, first, sizeof out) == 0);
	}
	digests += TIMES;
	ciphers += TIMES;
	return NULL;
}

int main(void)
{
	CK_RV (*get)(CK_UTF8CHAR *, CK_VERSION *, CK_INTERFACE **, CK_FLAGS);
	CK_INTERFACE *interface;
	CK_BYTE value[16] = {9}, iv[12] = {8};
	CK_GCM_PARAMS params = {iv, 12, 96, NULL, 0, 8 * TAG};
	CK_MECHANISM gcm = {CKM_AES_GCM, &params, sizeof params};
	CK_OBJECT_HANDLE key;
	pthread_t threads[4];
	void *with[] = {&gcm, &key};
	load();
	*(void **)&get = dlsym(library, "C_GetInterface");
	OK(get((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	metaslot = interface->pFunctionList;
	CHECK(metaslot->version.major == 1 && metaslot->version.minor >= 9);
	OK(p11->C_Initialize(NULL));
	session = open_session();
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_AES;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},
				   {CKA_VALUE, value, sizeof value},  {CKA_PRIVATE, &no, 1}};
	OK(p11->C_CreateObject(session, template, 4, &key));
	type = CKK_GENERIC_SECRET;
	CK_OBJECT_HANDLE secret;
	OK(p11->C_CreateObject(session, template, 4, &secret));
	digests_are_the_same();
	macs_are_the_same(secret);
	macs_do_not_meet(secret);
	ciphers_are_the_same(&gcm, key);
	what_is_active_stays(&gcm, key);
	what_is_wrong_is_refused(&gcm, key);
	for (int at = 0; at < 4; at++) CHECK(pthread_create(&threads[at], NULL, in_the_same_session, with) == 0);
	for (int at = 0; at < 4; at++) CHECK(pthread_join(threads[at], NULL) == 0);
	printf("%d %d 1 %d\n", digests, ciphers, macs);
	/* The counters are read from what a living process or a dead one leaves. */
	return 0;
}
