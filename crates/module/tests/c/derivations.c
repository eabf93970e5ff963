/* SPDX-License-Identifier: Apache-2.0 */
/* Derivations that are pending: many of one thread in sessions of its own, with the keys that an ordinary session derives,
 * and every wrong order of calls. Where nothing is pending, because the processor has no lanes for it, everything is
 * answered at once. */
#include "common.h"

#define SESSIONS 40
#define KEY ((CK_UTF8CHAR *)"C_DeriveKey")

static CK_BYTE p256[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
static CK_BYTE p384[] = {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22};
static CK_BYTE x25519[] = {0x06, 0x03, 0x2b, 0x65, 0x6e};
static CK_BYTE sect233k1[] = {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x1a};

static CK_SESSION_HANDLE keeper;
static _Atomic CK_OBJECT_HANDLE base;
static CK_BYTE point[256];
static CK_ULONG point_length;

static CK_OBJECT_CLASS secret_class = CKO_SECRET_KEY;
static CK_KEY_TYPE generic = CKK_GENERIC_SECRET, aes = CKK_AES;
static CK_ULONG sixteen = 16, eighty = 80;

/* Templates of the key. */
static CK_ATTRIBUTE whole[] = {{CKA_CLASS, &secret_class, sizeof(secret_class)},
			       {CKA_KEY_TYPE, &generic, sizeof(generic)},
			       {CKA_SENSITIVE, &no, 1},
			       {CKA_EXTRACTABLE, &yes, 1},
			       {CKA_PRIVATE, &no, 1}};
static CK_ATTRIBUTE short_one[] = {{CKA_CLASS, &secret_class, sizeof(secret_class)},
				   {CKA_KEY_TYPE, &aes, sizeof(aes)},
				   {CKA_VALUE_LEN, &sixteen, sizeof(sixteen)},
				   {CKA_SENSITIVE, &no, 1},
				   {CKA_EXTRACTABLE, &yes, 1}};
static CK_ATTRIBUTE long_one[] = {{CKA_CLASS, &secret_class, sizeof(secret_class)},
				  {CKA_KEY_TYPE, &generic, sizeof(generic)},
				  {CKA_VALUE_LEN, &eighty, sizeof(eighty)},
				  {CKA_SENSITIVE, &no, 1},
				  {CKA_EXTRACTABLE, &yes, 1}};

static CK_SESSION_HANDLE open_asynchronous(CK_FLAGS more)
{
	CK_SESSION_HANDLE session;
	CK_FLAGS flags = CKF_SERIAL_SESSION | CKF_ASYNC_SESSION | more;
	OK(p11->C_OpenSession(0, flags, NULL, NULL, &session));
	return session;
}

/* A base key of `session` and another one's public point. */
static void make(CK_SESSION_HANDLE session, CK_BYTE *curve, CK_ULONG length, CK_BBOOL private)
{
	CK_MECHANISM mechanism = {curve == x25519 ? CKM_EC_MONTGOMERY_KEY_PAIR_GEN : CKM_EC_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_EC_PARAMS, curve, length}};
	CK_ATTRIBUTE template[] = {{CKA_DERIVE, &yes, 1}, {CKA_PRIVATE, &private, 1}};
	CK_OBJECT_HANDLE peer, other, own;
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 1, template, 2, &peer, &other));
	CK_ATTRIBUTE value = {CKA_EC_POINT, point, sizeof(point)};
	OK(p11->C_GetAttributeValue(session, peer, &value, 1));
	point_length = value.ulValueLen;
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 1, template, 2, &peer, &own));
	base = own;
}

static CK_RV derive_by(CK_SESSION_HANDLE session, CK_EC_KDF_TYPE kdf, int bad, CK_ATTRIBUTE *template, CK_ULONG count,
		       CK_OBJECT_HANDLE *key)
{
	/* What the caller gives is its own again when the call has returned. */
	CK_BYTE sent[256], shared[] = "shared";
	CK_ATTRIBUTE given[8];
	memcpy(sent, point, point_length);
	memcpy(given, template, count * sizeof(*template));
	if (bad) memset(sent + 2, 0, point_length - 2);
	CK_ECDH1_DERIVE_PARAMS params = {kdf, 0, NULL, point_length, sent};
	if (kdf != CKD_NULL) {
		params.ulSharedDataLen = sizeof(shared);
		params.pSharedData = shared;
	}
	CK_MECHANISM mechanism = {CKM_ECDH1_DERIVE, &params, sizeof(params)};
	CK_RV rv = p11->C_DeriveKey(session, &mechanism, base, given, count, key);
	memset(sent, 0x55, sizeof(sent));
	memset(shared, 0x55, sizeof(shared));
	memset(&params, 0x55, sizeof(params));
	memset(given, 0x55, sizeof(given));
	return rv;
}

static CK_RV derive(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE *key)
{
	return derive_by(session, CKD_NULL, 0, whole, 5, key);
}

static CK_RV complete(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE *key)
{
	CK_ASYNC_DATA result = {9, point, 9, 9, 9};
	CK_RV rv;
	while ((rv = p11->C_AsyncComplete(session, KEY, &result)) == CKR_PENDING)
		;
	if (rv == CKR_OK)
		CHECK(result.ulVersion == 0 && result.pValue == NULL && result.ulValue == 0 &&
		      result.hAdditionalObject == CK_INVALID_HANDLE);
	*key = result.hObject;
	return rv;
}

static CK_ULONG value_of(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key, CK_BYTE *to)
{
	CK_ATTRIBUTE value = {CKA_VALUE, to, 128};
	OK(p11->C_GetAttributeValue(session, key, &value, 1));
	return value.ulValueLen;
}

static CK_BBOOL truth(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key, CK_ATTRIBUTE_TYPE type)
{
	CK_BBOOL value = 7;
	CK_ATTRIBUTE wanted = {type, &value, 1};
	OK(p11->C_GetAttributeValue(session, key, &wanted, 1));
	return value;
}

static CK_ULONG secret_keys(CK_SESSION_HANDLE session)
{
	CK_OBJECT_HANDLE found[200];
	CK_ULONG count;
	OK(p11->C_FindObjectsInit(session, whole, 1));
	OK(p11->C_FindObjects(session, found, 200, &count));
	OK(p11->C_FindObjectsFinal(session));
	return count;
}

/* Many at a time, every fourth with a point that is none, completed in another order. */
static int many(CK_EC_KDF_TYPE kdf, CK_ATTRIBUTE *template)
{
	CK_SESSION_HANDLE sessions[SESSIONS];
	CK_OBJECT_HANDLE keys[SESSIONS], one;
	CK_BYTE right[128], value[128];
	int pending[SESSIONS], count = 0;
	OK(derive_by(keeper, kdf, 0, template, 5, &one));
	CK_ULONG length = value_of(keeper, one, right);
	CK_RV refused = derive_by(keeper, kdf, 1, template, 5, &one);
	CHECK(refused != CKR_OK && refused != CKR_PENDING);
	CK_ULONG before = secret_keys(keeper);
	for (int at = 0; at < SESSIONS; at++) {
		sessions[at] = open_asynchronous(0);
		keys[at] = 77;
		CK_RV rv = derive_by(sessions[at], kdf, at % 4 == 3, template, 5, &keys[at]);
		pending[at] = rv == CKR_PENDING;
		if (!pending[at] && rv != (at % 4 == 3 ? refused : CKR_OK)) FAIL("C_DeriveKey: 0x%lx", rv);
		if (pending[at]) CHECK(keys[at] == 77);
		count += pending[at];
	}
	if (count == SESSIONS) CHECK(secret_keys(keeper) == before);
	for (int step = 0; step < SESSIONS; step++) {
		int at = step * 7 % SESSIONS;
		if (pending[at]) {
			EXPECT(complete(sessions[at], &keys[at]), at % 4 == 3 ? refused : CKR_OK);
			EXPECT(complete(sessions[at], &one), CKR_OPERATION_NOT_INITIALIZED);
		}
		if (at % 4 == 3) continue;
		CHECK(value_of(sessions[at], keys[at], value) == length);
		CHECK(memcmp(value, right, length) == 0);
		CHECK(!truth(sessions[at], keys[at], CKA_LOCAL));
		CHECK(!truth(sessions[at], keys[at], CKA_ALWAYS_SENSITIVE));
	}
	CHECK(secret_keys(keeper) == before + SESSIONS - SESSIONS / 4);
	/* The next one of a session whose last failed. */
	CK_RV rv = derive_by(sessions[3], kdf, 0, template, 5, &one);
	if (rv == CKR_PENDING) rv = complete(sessions[3], &one);
	OK(rv);
	for (int at = 0; at < SESSIONS; at++) OK(p11->C_CloseSession(sessions[at]));
	CHECK(secret_keys(keeper) == before);
	return count;
}

static void curve(const char *name, CK_BYTE *oid, CK_ULONG length)
{
	make(keeper, oid, length, CK_TRUE);
	int count = many(CKD_NULL, whole);
	CHECK(many(CKD_NULL, short_one) == count);
	CHECK(many(CKD_SHA256_KDF, long_one) == count);
	printf("%s: %d of %d pending\n", name, count, SESSIONS);
}

/* What may only be called when nothing is pending says so, what is another operation goes on, and nothing is lost by it. */
static void refuse(void)
{
	CK_SESSION_HANDLE session = open_asynchronous(CKF_RW_SESSION);
	CK_OBJECT_HANDLE key;
	CK_ULONG id, length = 32;
	CK_BYTE room[512], data[4] = {0}, digest[32];
	EXPECT(p11->C_AsyncComplete(session, KEY, (CK_ASYNC_DATA *)room), CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(p11->C_AsyncGetID(session, KEY, &id), CKR_OPERATION_NOT_INITIALIZED);
	/* Longer than what is agreed upon: nothing is begun. */
	EXPECT(derive_by(keeper, CKD_NULL, 0, long_one, 5, &key), CKR_KEY_SIZE_RANGE);
	EXPECT(derive_by(session, CKD_NULL, 0, long_one, 5, &key), CKR_KEY_SIZE_RANGE);
	EXPECT(derive(session, &key), CKR_PENDING);
	EXPECT(derive(session, &key), CKR_OPERATION_ACTIVE);
	CK_MECHANISM hkdf = {CKM_HKDF_DERIVE, NULL, 0}, sha = {CKM_SHA256, NULL, 0};
	EXPECT(p11->C_DeriveKey(session, &hkdf, base, whole, 5, &key), CKR_MECHANISM_PARAM_INVALID);
	EXPECT(p11->C_AsyncGetID(session, KEY, &id), CKR_STATE_UNSAVEABLE);
	EXPECT(p11->C_AsyncGetID(session, (CK_UTF8CHAR *)"C_Sign", &id), CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(p11->C_AsyncJoin(session, KEY, 1, room, sizeof(room)), CKR_SAVED_STATE_INVALID);
	EXPECT(p11->C_AsyncComplete(session, (CK_UTF8CHAR *)"C_Sign", (CK_ASYNC_DATA *)room),
	       CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(p11->C_AsyncComplete(session, (CK_UTF8CHAR *)"C_GenerateKey", (CK_ASYNC_DATA *)room),
	       CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(p11->C_AsyncComplete(session, KEY, NULL), CKR_ARGUMENTS_BAD);
	OK(p11->C_DigestInit(session, &sha));
	CK_RV rv = p11->C_Digest(session, data, sizeof(data), digest, &length);
	if (rv == CKR_PENDING) EXPECT(p11->C_AsyncComplete(session, (CK_UTF8CHAR *)"C_Digest", NULL), CKR_OK);
	length = sizeof(room);
	EXPECT(p11->C_GetOperationState(session, room, &length), CKR_STATE_UNSAVEABLE);
	OK(p11->C_SessionCancel(session, CKF_SIGN | CKF_DIGEST | CKF_FIND_OBJECTS));
	OK(complete(session, &key));
	OK(p11->C_DestroyObject(session, key));
	OK(p11->C_CloseSession(session));
}

/* Derivations that their caller abandons, or whose base key goes or changes meanwhile. */
static void abandon(void)
{
	CK_SESSION_HANDLE sessions[5];
	CK_OBJECT_HANDLE key;
	CK_ULONG before = secret_keys(keeper);
	for (int at = 0; at < 5; at++) {
		sessions[at] = open_asynchronous(CKF_RW_SESSION);
		EXPECT(derive(sessions[at], &key), CKR_PENDING);
	}
	OK(p11->C_SessionCancel(sessions[0], CKF_DERIVE));
	EXPECT(complete(sessions[0], &key), CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(derive(sessions[0], &key), CKR_PENDING);
	OK(p11->C_CloseSession(sessions[1]));
	EXPECT(complete(sessions[1], &key), CKR_SESSION_HANDLE_INVALID);
	/* The key is as it is now, and so is what it may do. */
	CK_ATTRIBUTE label = {CKA_LABEL, "other", 5}, off = {CKA_DERIVE, &no, 1};
	OK(p11->C_SetAttributeValue(keeper, base, &label, 1));
	OK(complete(sessions[2], &key));
	OK(p11->C_DestroyObject(sessions[2], key));
	OK(p11->C_SetAttributeValue(keeper, base, &off, 1));
	EXPECT(complete(sessions[3], &key), CKR_KEY_FUNCTION_NOT_PERMITTED);
	EXPECT(complete(sessions[3], &key), CKR_OPERATION_NOT_INITIALIZED);
	OK(p11->C_DestroyObject(keeper, base));
	EXPECT(complete(sessions[4], &key), CKR_OPERATION_NOT_INITIALIZED);
	CHECK(secret_keys(keeper) == before);
	for (int at = 0; at < 5; at++)
		if (at != 1) OK(p11->C_CloseSession(sessions[at]));
}

/* The key is stored when it is complete, and not in a session that only reads. */
static void store(void)
{
	CK_SESSION_HANDLE reads = open_asynchronous(0), writes = open_asynchronous(CKF_RW_SESSION);
	CK_OBJECT_HANDLE key, found;
	CK_ULONG count;
	CK_ATTRIBUTE template[] = {{CKA_TOKEN, &yes, 1}, {CKA_LABEL, "stored", 6}, {CKA_ENCRYPT, &yes, 1}, whole[1]};
	EXPECT(derive_by(reads, CKD_NULL, 0, template, 4, &key), CKR_PENDING);
	EXPECT(complete(reads, &key), CKR_SESSION_READ_ONLY);
	EXPECT(derive_by(writes, CKD_NULL, 0, template, 4, &key), CKR_PENDING);
	OK(complete(writes, &key));
	OK(p11->C_CloseSession(writes));
	OK(p11->C_CloseSession(reads));
	OK(p11->C_FindObjectsInit(keeper, template, 2));
	OK(p11->C_FindObjects(keeper, &found, 1, &count));
	OK(p11->C_FindObjectsFinal(keeper));
	CHECK(count == 1 && found == key);
	CHECK(truth(keeper, key, CKA_TOKEN) && truth(keeper, key, CKA_PRIVATE) && truth(keeper, key, CKA_SENSITIVE));
	OK(p11->C_DestroyObject(keeper, key));
}

/* The login ends, or is another's, before the keys are complete. */
static void log_out(void)
{
	CK_SESSION_HANDLE sessions[3];
	CK_OBJECT_HANDLE key;
	CK_ATTRIBUTE private[] = {{CKA_PRIVATE, &yes, 1}, whole[1]}, trusted[] = {{CKA_TRUSTED, &yes, 1}, whole[1], whole[4]};
	make(keeper, x25519, sizeof(x25519), CK_TRUE);
	for (int at = 0; at < 3; at++) sessions[at] = open_asynchronous(CKF_RW_SESSION);
	EXPECT(derive(sessions[0], &key), CKR_PENDING);
	make(keeper, x25519, sizeof(x25519), CK_FALSE);
	EXPECT(derive_by(sessions[1], CKD_NULL, 0, private, 2, &key), CKR_PENDING);
	EXPECT(derive(sessions[2], &key), CKR_PENDING);
	OK(p11->C_Logout(keeper));
	EXPECT(complete(sessions[0], &key), CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(complete(sessions[1], &key), CKR_USER_NOT_LOGGED_IN);
	OK(complete(sessions[2], &key));
	OK(p11->C_Login(keeper, CKU_SO, so_pin, 8));
	EXPECT(derive_by(sessions[0], CKD_NULL, 0, trusted, 3, &key), CKR_PENDING);
	EXPECT(derive_by(sessions[1], CKD_NULL, 0, trusted, 3, &key), CKR_PENDING);
	OK(complete(sessions[0], &key));
	CHECK(truth(sessions[0], key, CKA_TRUSTED));
	OK(p11->C_Logout(keeper));
	EXPECT(complete(sessions[1], &key), CKR_ATTRIBUTE_READ_ONLY);
	for (int at = 0; at < 3; at++) OK(p11->C_CloseSession(sessions[at]));
	OK(p11->C_Login(keeper, CKU_USER, user_pin, 4));
}

/* Several threads, each with several pending, of one base key. */
static void *thread(void *given)
{
	CK_SESSION_HANDLE sessions[8];
	CK_OBJECT_HANDLE key;
	CK_BYTE value[128];
	for (int at = 0; at < 8; at++) sessions[at] = open_asynchronous(0);
	for (int round = 0; round < 20; round++) {
		for (int at = 0; at < 8; at++) EXPECT(derive(sessions[at], &key), CKR_PENDING);
		for (int at = 7; at >= 0; at--) {
			OK(complete(sessions[at], &key));
			CHECK(value_of(sessions[at], key, value) == 32 && memcmp(value, given, 32) == 0);
			OK(p11->C_DestroyObject(sessions[at], key));
		}
	}
	/* Those of the last round are left pending. */
	for (int at = 0; at < 8; at++) EXPECT(derive(sessions[at], &key), CKR_PENDING);
	return NULL;
}

static void threads(void)
{
	pthread_t all[4];
	CK_OBJECT_HANDLE key;
	CK_BYTE right[128];
	make(keeper, x25519, sizeof(x25519), CK_TRUE);
	OK(derive(keeper, &key));
	value_of(keeper, key, right);
	for (int at = 0; at < 4; at++) CHECK(pthread_create(&all[at], NULL, thread, right) == 0);
	for (int at = 0; at < 4; at++) CHECK(pthread_join(all[at], NULL) == 0);
}

static atomic_int over, derived;

/* Derives while the base key and the login come and go: what is made is right. */
static void *racer(void *given)
{
	CK_SESSION_HANDLE session = open_asynchronous(CKF_RW_SESSION);
	CK_BYTE value[128];
	while (!over) {
		CK_OBJECT_HANDLE key;
		CK_RV rv = derive(session, &key);
		if (rv == CKR_PENDING && (rv = complete(session, &key)) == CKR_OK) {
			CHECK(value_of(session, key, value) == 32 && memcmp(value, given, 32) == 0);
			OK(p11->C_DestroyObject(session, key));
			derived++;
		} else if (rv != CKR_KEY_HANDLE_INVALID && rv != CKR_OPERATION_NOT_INITIALIZED) {
			FAIL("C_DeriveKey: 0x%lx", rv);
		}
	}
	OK(p11->C_CloseSession(session));
	return NULL;
}

static void race(void)
{
	pthread_t all[3];
	CK_OBJECT_HANDLE key, stored, copy;
	CK_BYTE right[128];
	CK_ULONG count, before;
	CK_ATTRIBUTE token[] = {{CKA_TOKEN, &yes, 1}, {CKA_LABEL, "race", 4}}, session_object = {CKA_TOKEN, &no, 1};
	make(keeper, x25519, sizeof(x25519), CK_TRUE);
	OK(derive(keeper, &key));
	value_of(keeper, key, right);
	OK(p11->C_CopyObject(keeper, base, token, 2, &stored));
	before = secret_keys(keeper);
	base = stored;
	for (int at = 0; at < 3; at++) CHECK(pthread_create(&all[at], NULL, racer, right) == 0);
	for (int round = 0; round < 60; round++) {
		OK(p11->C_CopyObject(keeper, stored, &session_object, 1, &copy));
		base = round % 3 ? copy : stored;
		pause_ms(2);
		OK(p11->C_DestroyObject(keeper, copy));
		if (round % 20 != 5) continue;
		OK(p11->C_Logout(keeper));
		OK(p11->C_Login(keeper, CKU_USER, user_pin, 4));
		OK(p11->C_FindObjectsInit(keeper, token, 2));
		OK(p11->C_FindObjects(keeper, &stored, 1, &count));
		OK(p11->C_FindObjectsFinal(keeper));
		CHECK(count == 1);
	}
	over = 1;
	for (int at = 0; at < 3; at++) CHECK(pthread_join(all[at], NULL) == 0);
	CHECK(derived > 0 && secret_keys(keeper) == before);
	base = stored;
}

/* A child finds nothing of its parent's pending, and the parent loses nothing. */
static void child(void)
{
	CK_SESSION_HANDLE session = open_asynchronous(0);
	CK_OBJECT_HANDLE key;
	EXPECT(derive(session, &key), CKR_PENDING);
	pid_t pid = fork();
	if (pid == 0) {
		CK_ASYNC_DATA result;
		EXPECT(p11->C_AsyncComplete(session, KEY, &result), CKR_CRYPTOKI_NOT_INITIALIZED);
		_exit(0);
	}
	CHECK(ended(pid) == 0);
	OK(complete(session, &key));
}

int main(void)
{
	keeper = begin_as_user();
	curve("P-384", p384, sizeof(p384));
	curve("sect233k1", sect233k1, sizeof(sect233k1));
	curve("P-256", p256, sizeof(p256));
	curve("X25519", x25519, sizeof(x25519));
	CK_SESSION_HANDLE probe = open_asynchronous(0);
	CK_OBJECT_HANDLE key;
	CK_RV rv = derive(probe, &key);
	OK(p11->C_CloseSession(probe));
	if (rv == CKR_PENDING) {
		refuse();
		store();
		abandon();
		log_out();
		threads();
		race();
		child();
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
