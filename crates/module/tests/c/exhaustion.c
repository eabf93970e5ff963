/* SPDX-License-Identifier: Apache-2.0 */
/* Memory runs out in the middle of calls whose lengths the caller chooses: such a call says so, harms nothing else,
 * and works when there is memory again. */
#include "common.h"
#include <malloc.h>
#include <sys/resource.h>

#define LARGE (20UL << 20)

static CK_SESSION_HANDLE session;
static CK_BYTE *large;
static int refused;

static int is_memory(CK_RV rv)
{
	refused += rv == CKR_HOST_MEMORY || rv == CKR_DEVICE_MEMORY;
	return rv == CKR_HOST_MEMORY || rv == CKR_DEVICE_MEMORY;
}

#define OK_OR_MEMORY(call) \
	do { \
		CK_RV rv_ = (call); \
		if (rv_ != CKR_OK && !is_memory(rv_)) FAIL("%s: 0x%lx with %lu bytes left", #call, rv_, room); \
	} while (0)

static CK_OBJECT_HANDLE key(CK_KEY_TYPE type, CK_ULONG length)
{
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_OBJECT_HANDLE made;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},
		{CKA_VALUE, large, length}, {CKA_DERIVE, &yes, 1}, {CKA_SIGN, &yes, 1}, {CKA_SENSITIVE, &no, 1},
		{CKA_WRAP, &yes, 1}, {CKA_UNWRAP, &yes, 1},
	};
	OK(p11->C_CreateObject(session, template, type == CKK_AES ? 8 : 6, &made));
	return made;
}

/* An object, large in an attribute that is secret or in one that is not. */
static CK_RV create(CK_OBJECT_CLASS class, CK_BBOOL *token, CK_BBOOL *private, CK_OBJECT_HANDLE *made)
{
	CK_KEY_TYPE type = CKK_GENERIC_SECRET;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_TOKEN, token, 1}, {CKA_PRIVATE, private, 1},
		{CKA_VALUE, large, LARGE},	   {CKA_KEY_TYPE, &type, sizeof type},
	};
	return p11->C_CreateObject(session, template, class == CKO_DATA ? 4 : 5, made);
}

static void objects(CK_ULONG room)
{
	CK_OBJECT_CLASS classes[] = {CKO_DATA, CKO_SECRET_KEY};
	for (int i = 0; i < 8; i++) {
		CK_OBJECT_HANDLE made, copy;
		CK_UTF8CHAR name[] = "large";
		CK_ATTRIBUTE label = {CKA_LABEL, name, 5};
		CK_RV rv = create(classes[i & 1], i & 2 ? &yes : &no, i & 4 ? &yes : &no, &made);
		OK_OR_MEMORY(rv);
		if (rv != CKR_OK) continue;
		OK_OR_MEMORY(p11->C_SetAttributeValue(session, made, &label, 1));
		rv = p11->C_CopyObject(session, made, &label, 1, &copy);
		OK_OR_MEMORY(rv);
		if (rv == CKR_OK) OK(p11->C_DestroyObject(session, copy));
		OK(p11->C_DestroyObject(session, made));
	}
}

static void searches(CK_ULONG room)
{
	CK_OBJECT_HANDLE found;
	CK_ULONG count;
	CK_ATTRIBUTE query[] = {{CKA_VALUE, large, LARGE}, {CKA_APPLICATION, large, LARGE}};
	for (int i = 0; i < 2; i++) {
		CK_RV rv = p11->C_FindObjectsInit(session, &query[i], 1);
		OK_OR_MEMORY(rv);
		if (rv != CKR_OK) continue;
		OK_OR_MEMORY(p11->C_FindObjects(session, &found, 1, &count));
		OK(p11->C_FindObjectsFinal(session));
	}
}

static CK_OBJECT_HANDLE aes, half, secret, hmac;

static void ciphers(CK_ULONG room)
{
	CK_BYTE iv[16] = {0};
	CK_GCM_PARAMS gcm = {iv, 12, 96, large, LARGE / 2, 128};
	CK_MECHANISM mechanisms[] = {{CKM_AES_CBC_PAD, iv, 16}, {CKM_AES_CTR, NULL, 0}, {CKM_AES_GCM, &gcm, sizeof gcm}};
	CK_AES_CTR_PARAMS counter = {.ulCounterBits = 128};
	mechanisms[1].pParameter = &counter, mechanisms[1].ulParameterLen = sizeof counter;
	for (int i = 0; i < 3; i++) {
		CK_ULONG length = LARGE;
		CK_RV rv = p11->C_EncryptInit(session, &mechanisms[i], aes);
		OK_OR_MEMORY(rv);
		/* In place: the input is copied. */
		if (rv == CKR_OK) OK_OR_MEMORY(p11->C_Encrypt(session, large, LARGE - 100, large, &length));
		rv = p11->C_DecryptInit(session, &mechanisms[i], aes);
		OK_OR_MEMORY(rv);
		if (rv != CKR_OK) continue;
		length = LARGE;
		rv = p11->C_DecryptUpdate(session, large, LARGE / 2, large + LARGE / 2, &length);
		OK_OR_MEMORY(rv);
		if (rv != CKR_OK) continue;
		length = LARGE / 2;
		rv = p11->C_DecryptFinal(session, large + LARGE / 2, &length);
		if (rv != CKR_ENCRYPTED_DATA_INVALID) OK_OR_MEMORY(rv);
	}
}

/* Associated data, and keys that arrive, are as long as the caller says. */
static void messages(CK_ULONG room)
{
	CK_BYTE iv[12] = {0}, tag[16] = {0}, out[16];
	CK_ULONG length = sizeof out;
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_GENERIC_SECRET;
	CK_OBJECT_HANDLE made;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type}};
	CK_GCM_MESSAGE_PARAMS gcm = {iv, 12, 0, CKG_GENERATE, tag, 128};
	CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0}, apart = {CKM_AES_GCM, &gcm, sizeof gcm};
	CK_RV rv = p11->C_MessageEncryptInit(session, &mechanism, aes);
	OK_OR_MEMORY(rv);
	if (rv == CKR_OK) {
		OK_OR_MEMORY(p11->C_EncryptMessage(session, &gcm, sizeof gcm, large, LARGE, out, 16, out, &length));
		rv = p11->C_EncryptMessageBegin(session, &gcm, sizeof gcm, large, LARGE);
		OK_OR_MEMORY(rv);
		length = sizeof out;
		if (rv == CKR_OK)
			OK_OR_MEMORY(p11->C_EncryptMessageNext(session, &gcm, sizeof gcm, out, 16, out, &length, CKF_END_OF_MESSAGE));
		OK(p11->C_MessageEncryptFinal(session));
	}
	rv = p11->C_MessageDecryptInit(session, &mechanism, aes);
	OK_OR_MEMORY(rv);
	if (rv == CKR_OK) {
		rv = p11->C_DecryptMessage(session, &gcm, sizeof gcm, large, LARGE, out, 16, out, &length);
		if (rv != CKR_AEAD_DECRYPT_FAILED) OK_OR_MEMORY(rv);
		OK(p11->C_MessageDecryptFinal(session));
	}
	length = sizeof out;
	rv = p11->C_WrapKeyAuthenticated(session, &apart, aes, half, large, LARGE, out, &length);
	OK_OR_MEMORY(rv);
	CK_MECHANISM wraps[] = {{CKM_AES_KEY_WRAP_KWP, NULL, 0}, {CKM_AES_KEY_WRAP_PKCS7, NULL, 0}, {CKM_AES_KEY_WRAP, NULL, 0}};
	length = LARGE;
	OK_OR_MEMORY(p11->C_WrapKeyAuthenticated(session, &apart, aes, hmac, NULL, 0, large, &length));
	for (int i = 0; i < 3; i++) {
		length = LARGE;
		OK_OR_MEMORY(p11->C_WrapKey(session, &wraps[i], aes, hmac, large, &length));
		rv = p11->C_UnwrapKey(session, &wraps[i], aes, large, LARGE, template, 2, &made);
		if (rv != CKR_WRAPPED_KEY_INVALID && rv != CKR_WRAPPED_KEY_LEN_RANGE) OK_OR_MEMORY(rv);
	}
	memset(large, 0, LARGE);
	rv = p11->C_UnwrapKeyAuthenticated(session, &apart, aes, large, LARGE, template, 2, out, 16, &made);
	if (rv != CKR_WRAPPED_KEY_INVALID) OK_OR_MEMORY(rv);
}

static void derivations(CK_ULONG room)
{
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_GENERIC_SECRET;
	CK_ULONG length = 32;
	CK_OBJECT_HANDLE made;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type}, {CKA_VALUE_LEN, &length, sizeof length},
	};
	CK_HKDF_PARAMS hkdf = {CK_TRUE, CK_TRUE, CKM_SHA256, CKF_HKDF_SALT_DATA, large, LARGE, 0, large, LARGE / 2};
	CK_KEY_DERIVATION_STRING_DATA text = {large, LARGE};
	CK_PRF_DATA_PARAM data[] = {{CK_SP800_108_ITERATION_VARIABLE, NULL, 0}, {CK_SP800_108_BYTE_ARRAY, large, LARGE}};
	CK_SP800_108_FEEDBACK_KDF_PARAMS feedback = {CKM_SHA256_HMAC, 2, data, LARGE, large, 0, NULL};
	CK_PKCS5_PBKD2_PARAMS2 pbkd2 = {CKZ_SALT_SPECIFIED, large, LARGE, 1, CKP_PKCS5_PBKD2_HMAC_SHA256, NULL, 0, large, 4096};
	CK_MECHANISM derive[] = {
		{CKM_HKDF_DERIVE, &hkdf, sizeof hkdf}, {CKM_CONCATENATE_BASE_AND_DATA, &text, sizeof text},
		{CKM_XOR_BASE_AND_DATA, &text, sizeof text}, {CKM_SP800_108_FEEDBACK_KDF, &feedback, sizeof feedback},
	};
	CK_MECHANISM generate = {CKM_PKCS5_PBKD2, &pbkd2, sizeof pbkd2};
	for (int i = 0; i < 4; i++) {
		CK_RV rv = p11->C_DeriveKey(session, &derive[i], secret, template, 3, &made);
		if (rv == CKR_MECHANISM_INVALID || rv == CKR_MECHANISM_PARAM_INVALID || rv == CKR_KEY_FUNCTION_NOT_PERMITTED) {
			CHECK(i > 0);
			continue;
		}
		OK_OR_MEMORY(rv);
		if (rv == CKR_OK) OK(p11->C_DestroyObject(session, made));
	}
	CK_RV rv = p11->C_GenerateKey(session, &generate, template, 3, &made);
	OK_OR_MEMORY(rv);
	if (rv == CKR_OK) OK(p11->C_DestroyObject(session, made));
}

static void reads(CK_ULONG room, CK_OBJECT_HANDLE stored)
{
	CK_ATTRIBUTE value = {CKA_VALUE, large, LARGE};
	CK_SESSION_HANDLE own = open_session();
	OK_OR_MEMORY(p11->C_GetAttributeValue(own, stored, &value, 1));
	OK(p11->C_CloseSession(own));
}

static CK_ULONG in_use(void)
{
	CK_ULONG pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	return pages * (CK_ULONG)sysconf(_SC_PAGESIZE);
}

static void limit(CK_ULONG bytes)
{
	struct rlimit limit = {bytes, RLIM_INFINITY};
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}

/* Takes all that the heap has, down to pieces of so many bytes. */
static void *taken[1 << 18];
static int take_all(size_t smallest)
{
	int count = 0;
	limit(in_use());
	for (size_t bytes = 1 << 20; bytes >= smallest; bytes /= 2)
		while (count < 1 << 18 && (taken[count] = malloc(bytes)) != NULL) count++;
	return count;
}

static void give_back(int count)
{
	limit(RLIM_INFINITY);
	while (count > 0) free(taken[--count]);
}

/* What is as long as what a caller has opened and made: full lists, of which none can grow any more. */
static void long_lists(void)
{
	enum { OBJECTS = 8192, SESSIONS = 16384 };
	static CK_OBJECT_HANDLE found[2 * OBJECTS];
	static CK_SESSION_HANDLE opened[SESSIONS + 1];
	CK_OBJECT_CLASS class = CKO_DATA;
	CK_ATTRIBUTE template = {CKA_CLASS, &class, sizeof class};
	CK_SESSION_HANDLE own = open_session();
	CK_OBJECT_HANDLE made;
	CK_ULONG count, room = 0;
	int before = refused;
	for (int i = 0; i < OBJECTS; i++) OK(p11->C_CreateObject(own, &template, 1, &made));
	for (int i = 0; i < 100; i++) OK(p11->C_CreateObject(session, &template, 1, &made));
	for (int i = 0; i <= SESSIONS; i++) opened[i] = open_session();
	OK(p11->C_FindObjectsInit(own, &template, 1));
	int pieces = take_all(16);
	for (int i = 0; i < 50; i++) OK_OR_MEMORY(p11->C_CreateObject(own, &template, 1, &made));
	CHECK(refused > before);
	EXPECT(p11->C_FindObjects(own, found, 2 * OBJECTS, &count), CKR_HOST_MEMORY);
	EXPECT(p11->C_FindObjectsInit(session, &template, 1), CKR_HOST_MEMORY);
	OK(p11->C_FindObjectsFinal(own));
	for (int i = 0; i <= SESSIONS; i++) OK(p11->C_CloseSession(opened[i]));
	give_back(pieces);
	OK(p11->C_FindObjectsInit(own, &template, 1));
	OK(p11->C_FindObjects(own, found, 2 * OBJECTS, &count));
	CHECK(count >= OBJECTS + 100 && count < OBJECTS + 150);
	OK(p11->C_FindObjectsFinal(own));
	for (int i = 0; i <= SESSIONS; i++) opened[i] = open_session();
	pieces = take_all(16);
	OK(p11->C_CloseAllSessions(0));
	give_back(pieces);
	session = user_session();
}

/* What no caller's length decides: with all that the heap has taken away, a signature of some megabyte of hashes. */
static void signatures(void)
{
	static CK_BYTE signature[29792];
	CK_SLH_DSA_PARAMETER_SET_TYPE set = CKP_SLH_DSA_SHA2_256S;
	CK_MECHANISM generate = {CKM_SLH_DSA_KEY_PAIR_GEN, NULL, 0}, sign = {CKM_SLH_DSA, NULL, 0};
	CK_ATTRIBUTE template = {CKA_PARAMETER_SET, &set, sizeof set};
	CK_OBJECT_HANDLE public, private;
	int before = refused;
	OK(p11->C_GenerateKeyPair(session, &generate, &template, 1, NULL, 0, &public, &private));
	for (CK_ULONG room = 128 << 10; room < 2 << 20; room += 256 << 10) {
		CK_ULONG length = sizeof signature;
		OK(p11->C_SignInit(session, &sign, private));
		int count = take_all(4096);
		limit(in_use() + room);
		OK_OR_MEMORY(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
		give_back(count);
	}
	CHECK(refused > before);
	OK(p11->C_DestroyObject(session, private));
	OK(p11->C_DestroyObject(session, public));
}

/* Where the heap has nothing left at all, not a byte of it, the first use of a key is refused or works, and those that follow. */
static void first_uses(void)
{
	static CK_BYTE signature[5000];
	static CK_BYTE curve[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
	static CK_ULONG bits = 2048, set = CKP_ML_DSA_65;
	static struct {
		CK_MECHANISM_TYPE generate, sign;
		CK_ATTRIBUTE public;
	} kinds[] = {
		{CKM_RSA_PKCS_KEY_PAIR_GEN, CKM_SHA256_RSA_PKCS, {CKA_MODULUS_BITS, &bits, sizeof bits}},
		{CKM_EC_KEY_PAIR_GEN, CKM_ECDSA_SHA256, {CKA_EC_PARAMS, curve, sizeof curve}},
		{CKM_ML_DSA_KEY_PAIR_GEN, CKM_ML_DSA, {CKA_PARAMETER_SET, &set, sizeof set}},
	};
	for (int at = 0; at < 3; at++) {
		CK_MECHANISM generate = {kinds[at].generate, NULL, 0}, sign = {kinds[at].sign, NULL, 0};
		CK_OBJECT_HANDLE public, private;
		CK_ULONG length, room = 0;
		OK(p11->C_GenerateKeyPair(session, &generate, &kinds[at].public, 1, NULL, 0, &public, &private));
		int count = take_all(16);
		CK_SESSION_HANDLE own = 0;
		for (int round = 0; round < 50; round++) {
			/* Sessions that stay use up what there is for such times. */
			OK_OR_MEMORY(p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own));
			length = sizeof signature;
			CK_RV rv = p11->C_SignInit(session, &sign, private);
			OK_OR_MEMORY(rv);
			if (rv == CKR_OK) OK_OR_MEMORY(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
		}
		give_back(count);
		OK(p11->C_SignInit(session, &sign, private));
		length = sizeof signature;
		OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
	}
}

/* A key of one-time keys loses none where its lower tree, of some hundred kilobytes, has no room. */
static void one_time_keys(void)
{
	static CK_BYTE signature[10240];
	CK_ULONG trees[] = {5, 6}, chains[] = {4, 1}, left, length;
	CK_MECHANISM generate = {CKM_HSS_KEY_PAIR_GEN, NULL, 0}, sign = {CKM_HSS, NULL, 0};
	CK_ATTRIBUTE template[] = {{CKA_HSS_LMS_TYPES, trees, sizeof trees}, {CKA_HSS_LMOTS_TYPES, chains, sizeof chains},
				   {CKA_TOKEN, &yes, 1}};
	CK_ATTRIBUTE remaining = {CKA_HSS_KEYS_REMAINING, &left, sizeof left};
	CK_OBJECT_HANDLE public, private;
	OK(p11->C_GenerateKeyPair(session, &generate, NULL, 0, template, 3, &public, &private));
	OK(p11->C_SignInit(session, &sign, private));
	int count = take_all(4096);
	limit(in_use() + (512 << 10));
	length = sizeof signature;
	EXPECT(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length), CKR_HOST_MEMORY);
	give_back(count);
	OK(p11->C_GetAttributeValue(session, private, &remaining, 1));
	CHECK(left == 1UL << 15);
	OK(p11->C_SignInit(session, &sign, private));
	length = sizeof signature;
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
	OK(p11->C_GetAttributeValue(session, private, &remaining, 1));
	CHECK(left == (1UL << 15) - 1);
}

/* Protected memory ends without any limit. */
static void protected_memory_ends(void)
{
	CK_OBJECT_HANDLE made[100];
	int count = 0;
	CK_ULONG room = 0;
	for (CK_RV rv = CKR_OK; rv == CKR_OK && count < 100; count += rv == CKR_OK) {
		rv = create(CKO_SECRET_KEY, &no, &no, &made[count]);
		OK_OR_MEMORY(rv);
	}
	CHECK(count > 1 && count < 100);
	check_works(session);
	while (count > 0) OK(p11->C_DestroyObject(session, made[--count]));
}

int main(void)
{
	CK_OBJECT_HANDLE stored;
	alarm(240);
	/* What is large and freed goes back at once, and is not there for the next call. */
	CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
	session = begin_as_user();
	large = calloc(1, LARGE);
	CHECK(large != NULL);
	aes = key(CKK_AES, 32);
	half = key(CKK_AES, 16);
	secret = key(CKK_GENERIC_SECRET, 32);
	hmac = key(CKK_GENERIC_SECRET, 4 << 20);
	OK(create(CKO_DATA, &yes, &yes, &stored));
	protected_memory_ends();
	CHECK(refused > 0);
	refused = 0;
	for (CK_ULONG room = 0; room <= 12 * LARGE; room += room < LARGE ? LARGE / 2 : 2 * LARGE) {
		limit(in_use() + room + (4 << 20));
		objects(room);
		searches(room);
		ciphers(room);
		messages(room);
		derivations(room);
		reads(room, stored);
		limit(RLIM_INFINITY);
		check_works(session);
	}
	CHECK(refused > 0);
	first_uses();
	long_lists();
	signatures();
	one_time_keys();
	printf("memory was out %d times\n", refused);
	objects(0);
	OK(p11->C_Finalize(NULL));
	return 0;
}
