/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous sessions: many operations of one thread in flight, answered in any order, with the
 * results that an ordinary session gives. */
#include "common.h"

#define SESSIONS 40

static CK_OBJECT_HANDLE public_key, private_key;

static CK_SESSION_HANDLE open_asynchronous(void)
{
	CK_SESSION_HANDLE session;
	CK_SESSION_INFO info;
	OK(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_ASYNC_SESSION, NULL, NULL, &session));
	OK(p11->C_GetSessionInfo(session, &info));
	CHECK(info.flags & CKF_ASYNC_SESSION);
	return session;
}

static void make_rsa(CK_SESSION_HANDLE session)
{
	CK_MECHANISM mechanism = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
	CK_ULONG bits = 2048;
	CK_BYTE exponent[] = {1, 0, 1};
	CK_ATTRIBUTE public[] = {{CKA_MODULUS_BITS, &bits, sizeof(bits)},
				 {CKA_PUBLIC_EXPONENT, exponent, sizeof(exponent)}};
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 2, NULL, 0, &public_key, &private_key));
}

static void make_p256(CK_SESSION_HANDLE session)
{
	CK_MECHANISM mechanism = {CKM_EC_KEY_PAIR_GEN, NULL, 0};
	CK_BYTE curve[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
	CK_ATTRIBUTE public[] = {{CKA_EC_PARAMS, curve, sizeof(curve)}};
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 1, NULL, 0, &public_key, &private_key));
}

static void make_ed25519(CK_SESSION_HANDLE session)
{
	CK_MECHANISM mechanism = {CKM_EC_EDWARDS_KEY_PAIR_GEN, NULL, 0};
	CK_BYTE curve[] = {0x06, 0x03, 0x2b, 0x65, 0x70};
	CK_ATTRIBUTE public[] = {{CKA_EC_PARAMS, curve, sizeof(curve)}};
	OK(p11->C_GenerateKeyPair(session, &mechanism, public, 1, NULL, 0, &public_key, &private_key));
}

static CK_RV complete(CK_SESSION_HANDLE session, const char *function, CK_ASYNC_DATA *result)
{
	CK_RV rv;
	while ((rv = p11->C_AsyncComplete(session, (CK_UTF8CHAR *)function, result)) == CKR_PENDING)
		;
	return rv;
}

/* What may only be called when nothing is pending says so, and nothing is lost by it. */
static void refuse(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism)
{
	CK_ULONG id;
	CK_BYTE room[512], data[1] = {0};
	CK_ULONG length = sizeof(room);
	EXPECT(p11->C_SignInit(session, mechanism, private_key), CKR_OPERATION_ACTIVE);
	EXPECT(p11->C_Sign(session, data, 1, room, &length), CKR_OPERATION_ACTIVE);
	EXPECT(p11->C_AsyncGetID(session, (CK_UTF8CHAR *)"C_Sign", &id), CKR_STATE_UNSAVEABLE);
	EXPECT(p11->C_AsyncGetID(session, (CK_UTF8CHAR *)"C_Verify", &id),
	       CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(p11->C_AsyncJoin(session, (CK_UTF8CHAR *)"C_Sign", 1, room, length),
	       CKR_SAVED_STATE_INVALID);
	EXPECT(p11->C_AsyncJoin(session, (CK_UTF8CHAR *)"C_EncapsulateKey", 1, NULL, 0), CKR_SAVED_STATE_INVALID);
	EXPECT(p11->C_AsyncJoin(session, (CK_UTF8CHAR *)"", 1, NULL, 0), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_AsyncComplete(session, (CK_UTF8CHAR *)"C_Verify", NULL),
	       CKR_OPERATION_NOT_INITIALIZED);
	EXPECT(p11->C_AsyncComplete(session, NULL, NULL), CKR_ARGUMENTS_BAD);
}

static void sign_and_verify(CK_MECHANISM_TYPE type)
{
	CK_SESSION_HANDLE sessions[SESSIONS], plain = open_session();
	CK_MECHANISM mechanism = {type, NULL, 0};
	static CK_BYTE data[SESSIONS][32], signatures[SESSIONS][512];
	CK_ULONG lengths[SESSIONS];
	int pending = 0;
	for (int at = 0; at < SESSIONS; at++) {
		memset(data[at], at, sizeof(data[at]));
		memset(signatures[at], 0, sizeof(signatures[at]));
		sessions[at] = open_asynchronous();
		OK(p11->C_SignInit(sessions[at], &mechanism, private_key));
		lengths[at] = 0;
		OK(p11->C_Sign(sessions[at], data[at], 32, NULL, &lengths[at]));
		lengths[at] -= 1;
		EXPECT(p11->C_Sign(sessions[at], data[at], 32, signatures[at], &lengths[at]),
		       CKR_BUFFER_TOO_SMALL);
		CK_RV rv = p11->C_Sign(sessions[at], data[at], 32, signatures[at], &lengths[at]);
		if (rv == CKR_PENDING) {
			pending++;
			refuse(sessions[at], &mechanism);
		} else if (rv != CKR_OK) {
			FAIL("C_Sign: 0x%lx", rv);
		}
	}
	printf("0x%lx: %d of %d pending\n", type, pending, SESSIONS);
	for (int step = 0; step < SESSIONS && pending; step++) {
		int at = (step * 7) % SESSIONS; /* in another order */
		CK_ASYNC_DATA result = {0, NULL, 0, 1, 1};
		OK(complete(sessions[at], "C_Sign", &result));
		CHECK(result.pValue == signatures[at] && result.ulValue == lengths[at]);
		EXPECT(p11->C_AsyncComplete(sessions[at], (CK_UTF8CHAR *)"C_Sign", &result),
		       CKR_OPERATION_NOT_INITIALIZED);
	}
	for (int at = 0; at < SESSIONS; at++) {
		OK(p11->C_VerifyInit(plain, &mechanism, public_key));
		OK(p11->C_Verify(plain, data[at], 32, signatures[at], lengths[at]));
	}
	/* Verifications too, every fourth of a changed signature. */
	for (int at = 0; at < SESSIONS; at++) {
		if (at % 4 == 3) signatures[at][20] ^= 1;
		OK(p11->C_VerifyInit(sessions[at], &mechanism, public_key));
		CK_RV rv = p11->C_Verify(sessions[at], data[at], 32, signatures[at], lengths[at]);
		CK_RV right = at % 4 == 3 ? CKR_SIGNATURE_INVALID : CKR_OK;
		if (rv != CKR_PENDING && rv != right) FAIL("C_Verify: 0x%lx", rv);
		if (rv != CKR_PENDING) sessions[at] = CK_INVALID_HANDLE;
	}
	for (int at = 0; at < SESSIONS; at++) {
		CK_RV right = at % 4 == 3 ? CKR_SIGNATURE_INVALID : CKR_OK;
		if (sessions[at] != CK_INVALID_HANDLE) EXPECT(complete(sessions[at], "C_Verify", NULL), right);
	}
}

/* Messages of different lengths, the caller's copy changed while they are pending. */
static void digest(CK_MECHANISM_TYPE type)
{
	static CK_BYTE data[SESSIONS][9000], results[SESSIONS][64], right[SESSIONS][64];
	CK_SESSION_HANDLE sessions[SESSIONS], plain = open_session();
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_ULONG lengths[SESSIONS];
	int pending[SESSIONS], count = 0;
	for (int at = 0; at < SESSIONS; at++) {
		CK_ULONG size = (CK_ULONG)at * 225;
		memset(data[at], at + 1, sizeof(data[at]));
		lengths[at] = sizeof(right[at]);
		OK(p11->C_DigestInit(plain, &mechanism));
		OK(p11->C_Digest(plain, data[at], size, right[at], &lengths[at]));
		sessions[at] = open_asynchronous();
		OK(p11->C_DigestInit(sessions[at], &mechanism));
		CK_RV rv = p11->C_Digest(sessions[at], data[at], size, results[at], &lengths[at]);
		pending[at] = rv == CKR_PENDING;
		count += pending[at];
		if (rv != CKR_PENDING && rv != CKR_OK) FAIL("C_Digest: 0x%lx", rv);
		memset(data[at], 0, sizeof(data[at]));
	}
	printf("0x%lx: %d of %d pending\n", type, count, SESSIONS);
	for (int at = SESSIONS - 1; at >= 0; at--) {
		CK_ASYNC_DATA result = {0, NULL, 0, 1, 1};
		if (pending[at]) {
			OK(complete(sessions[at], "C_Digest", &result));
			CHECK(result.pValue == results[at] && result.ulValue == lengths[at]);
		}
		CHECK(memcmp(results[at], right[at], lengths[at]) == 0);
		OK(p11->C_CloseSession(sessions[at]));
	}
}

/* Messages of different lengths under two keys; then every fourth MAC is checked changed, every fourth cut. */
static void authenticate(CK_SESSION_HANDLE session, CK_MECHANISM *mechanism)
{
	static CK_BYTE data[SESSIONS][9000], macs[SESSIONS][64], right[SESSIONS][64];
	CK_SESSION_HANDLE sessions[SESSIONS];
	CK_BYTE values[2][200];
	CK_OBJECT_HANDLE keys[2];
	CK_ULONG lengths[SESSIONS];
	int pending[SESSIONS], count = 0;
	memset(values, 5, sizeof(values));
	keys[0] = import_key(session, CKK_GENERIC_SECRET, values[0], 20);
	keys[1] = import_key(session, CKK_GENERIC_SECRET, values[1], sizeof(values[1]));
	for (int at = 0; at < SESSIONS; at++) {
		CK_ULONG size = (CK_ULONG)at * 225;
		memset(data[at], at + 1, sizeof(data[at]));
		/* In two parts, which are not computed with others. */
		lengths[at] = sizeof(right[at]);
		OK(p11->C_SignInit(session, mechanism, keys[at % 2]));
		OK(p11->C_SignUpdate(session, data[at], size / 2));
		OK(p11->C_SignUpdate(session, data[at], size - size / 2));
		OK(p11->C_SignFinal(session, right[at], &lengths[at]));
		sessions[at] = open_asynchronous();
		OK(p11->C_SignInit(sessions[at], mechanism, keys[at % 2]));
		CK_RV rv = p11->C_Sign(sessions[at], data[at], size, macs[at], &lengths[at]);
		pending[at] = rv == CKR_PENDING;
		count += pending[at];
		if (rv != CKR_PENDING && rv != CKR_OK) FAIL("C_Sign: 0x%lx", rv);
		memset(data[at], 0, sizeof(data[at]));
	}
	printf("0x%lx: %d of %d pending\n", mechanism->mechanism, count, SESSIONS);
	for (int at = SESSIONS - 1; at >= 0; at--) {
		CK_ASYNC_DATA result = {0, NULL, 0, 1, 1};
		if (pending[at]) {
			OK(complete(sessions[at], "C_Sign", &result));
			CHECK(result.pValue == macs[at] && result.ulValue == lengths[at]);
		}
		CHECK(memcmp(macs[at], right[at], lengths[at]) == 0);
	}
	for (int at = 0; at < SESSIONS; at++) {
		memset(data[at], at + 1, sizeof(data[at]));
		macs[at][lengths[at] - 1] ^= at % 4 == 2;
		OK(p11->C_VerifyInit(sessions[at], mechanism, keys[at % 2]));
		CK_RV expected = at % 4 == 2   ? CKR_SIGNATURE_INVALID
				 : at % 4 == 3 ? CKR_SIGNATURE_LEN_RANGE
					       : CKR_OK;
		CK_RV rv = p11->C_Verify(sessions[at], data[at], (CK_ULONG)at * 225, macs[at],
					 lengths[at] - (at % 4 == 3));
		pending[at] = rv == CKR_PENDING;
		if (!pending[at]) CHECK(rv == expected);
		memset(macs[at], 0, sizeof(macs[at]));
	}
	for (int at = 0; at < SESSIONS; at++) {
		if (pending[at])
			EXPECT(complete(sessions[at], "C_Verify", NULL),
			       at % 4 == 2 ? CKR_SIGNATURE_INVALID : CKR_OK);
		OK(p11->C_CloseSession(sessions[at]));
	}
}

/* Messages of different lengths under keys of different lengths, encrypted in place. */
static void encrypt(CK_SESSION_HANDLE session)
{
	static CK_BYTE data[SESSIONS][9216], right[SESSIONS][9216];
	CK_SESSION_HANDLE sessions[SESSIONS];
	CK_OBJECT_HANDLE keys[3];
	CK_BYTE iv[16] = "0123456789abcde";
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0}, cbc = {CKM_AES_CBC, iv, sizeof(iv)};
	for (CK_ULONG at = 0; at < 3; at++) {
		CK_ULONG length = 16 + 8 * at;
		CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &length, sizeof(length)}};
		OK(p11->C_GenerateKey(session, &generate, template, 1, &keys[at]));
	}
	int count = 0;
	CK_ULONG lengths[SESSIONS];
	for (int at = 0; at < SESSIONS; at++) {
		CK_ULONG size = (CK_ULONG)at * 208;
		memset(data[at], at + 1, sizeof(data[at]));
		iv[0] = (CK_BYTE)at;
		lengths[at] = sizeof(right[at]);
		OK(p11->C_EncryptInit(session, &cbc, keys[at % 3]));
		OK(p11->C_Encrypt(session, data[at], size, right[at], &lengths[at]));
		sessions[at] = open_asynchronous();
		OK(p11->C_EncryptInit(sessions[at], &cbc, keys[at % 3]));
		lengths[at] = sizeof(data[at]);
		CK_RV rv = p11->C_Encrypt(sessions[at], data[at], size, data[at], &lengths[at]);
		if (rv == CKR_OK) sessions[at] = CK_INVALID_HANDLE;
		else if (rv != CKR_PENDING) FAIL("C_Encrypt: 0x%lx", rv);
		count += rv == CKR_PENDING;
	}
	printf("CKM_AES_CBC: %d of %d pending\n", count, SESSIONS);
	for (int at = 0; at < SESSIONS; at++) {
		CK_ULONG size = (CK_ULONG)at * 208;
		CK_ASYNC_DATA result = {0, NULL, 0, 1, 1};
		if (sessions[at] != CK_INVALID_HANDLE) {
			OK(complete(sessions[at], "C_Encrypt", &result));
			CHECK(result.pValue == data[at] && result.ulValue == size);
		}
		CHECK(memcmp(data[at], right[at], size) == 0);
		iv[0] = (CK_BYTE)at;
		CK_ULONG length = sizeof(data[at]);
		OK(p11->C_DecryptInit(session, &cbc, keys[at % 3]));
		OK(p11->C_Decrypt(session, right[at], size, data[at], &length));
		for (CK_ULONG byte = 0; byte < size; byte++) CHECK(data[at][byte] == at + 1);
	}
}

/* Operations that their caller abandons. */
static void abandon(CK_MECHANISM_TYPE type)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_BYTE data[32] = {1}, room[3][512];
	CK_SESSION_HANDLE sessions[3];
	for (int at = 0; at < 3; at++) {
		CK_ULONG length = sizeof(room[at]);
		sessions[at] = open_asynchronous();
		OK(p11->C_SignInit(sessions[at], &mechanism, private_key));
		CK_RV rv = p11->C_Sign(sessions[at], data, sizeof(data), room[at], &length);
		CHECK(rv == CKR_OK || rv == CKR_PENDING);
	}
	OK(p11->C_SessionCancel(sessions[0], CKF_SIGN));
	OK(p11->C_SignInit(sessions[0], &mechanism, private_key));
	OK(p11->C_CloseSession(sessions[1]));
	/* The key goes, and its pending operation with it. */
	OK(p11->C_DestroyObject(sessions[0], private_key));
	EXPECT(p11->C_AsyncComplete(sessions[2], (CK_UTF8CHAR *)"C_Sign", NULL),
	       CKR_OPERATION_NOT_INITIALIZED);
}

int main(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE keeper = open_session();
	make_rsa(keeper);
	sign_and_verify(CKM_SHA256_RSA_PKCS);
	sign_and_verify(CKM_RSA_PKCS);
	abandon(CKM_SHA256_RSA_PKCS);
	make_p256(keeper);
	sign_and_verify(CKM_ECDSA);
	sign_and_verify(CKM_ECDSA_SHA256);
	abandon(CKM_ECDSA_SHA256);
	make_ed25519(keeper);
	sign_and_verify(CKM_EDDSA);
	abandon(CKM_EDDSA);
	encrypt(keeper);
	CK_MECHANISM_TYPE hashes[] = {CKM_MD5, CKM_SHA_1, CKM_SHA256, CKM_SHA512, CKM_SHA3_256};
	for (size_t at = 0; at < sizeof(hashes) / sizeof(hashes[0]); at++) digest(hashes[at]);
	CK_ULONG cut = 20;
	CK_MECHANISM macs[] = {{CKM_MD5_HMAC, NULL, 0},
			       {CKM_SHA256_HMAC, NULL, 0},
			       {CKM_SHA512_HMAC, NULL, 0},
			       {CKM_SHA512_HMAC_GENERAL, &cut, sizeof(cut)},
			       {CKM_SHA3_256_HMAC_GENERAL, &cut, sizeof(cut)}};
	for (size_t at = 0; at < sizeof(macs) / sizeof(macs[0]); at++) authenticate(keeper, &macs[at]);
	OK(p11->C_Finalize(NULL));
	return 0;
}
