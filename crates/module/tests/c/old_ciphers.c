/* SPDX-License-Identifier: Apache-2.0 */
/* Triple DES and RC4, where the policy allows them: in one call, in asynchronous sessions and in many threads at the same
 * time they give what they give in parts, which are not computed side by side. No counter comes round. */
#include "common.h"

#define THREADS 64
#define SESSIONS 40
#define LONGEST 9016

struct cipher {
	CK_MECHANISM mechanism;
	CK_KEY_TYPE type;
	CK_ULONG key_length, block;
	int pad;
};

static CK_BYTE iv[8] = "8 bytes";
static struct cipher ciphers[] = {
	{{CKM_DES3_ECB, NULL, 0}, CKK_DES3, 24, 8, 0},
	{{CKM_DES3_ECB, NULL, 0}, CKK_DES2, 16, 8, 0},
	{{CKM_DES3_CBC, iv, sizeof(iv)}, CKK_DES3, 24, 8, 0},
	{{CKM_DES3_CBC_PAD, iv, sizeof(iv)}, CKK_DES2, 16, 8, 1},
	{{CKM_RC4, NULL, 0}, CKK_RC4, 16, 1, 0},
};

static struct cipher *cipher;
static CK_OBJECT_HANDLE keys[2];
static CK_BYTE plain[LONGEST];
static pthread_barrier_t barrier;

/* Multi-part, cut at a third. */
static CK_ULONG reference(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key, CK_ULONG size, CK_BYTE *out)
{
	CK_ULONG first = LONGEST, second = LONGEST, last = 64;
	OK(p11->C_EncryptInit(session, &cipher->mechanism, key));
	OK(p11->C_EncryptUpdate(session, plain, size / 3, out, &first));
	OK(p11->C_EncryptUpdate(session, plain + size / 3, size - size / 3, out + first, &second));
	OK(p11->C_EncryptFinal(session, out + first + second, &last));
	return first + second + last;
}

static CK_RV decrypt(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE key, CK_BYTE *sealed, CK_ULONG length,
		     CK_BYTE *out, CK_ULONG *out_length)
{
	OK(p11->C_DecryptInit(session, &cipher->mechanism, key));
	return p11->C_Decrypt(session, sealed, length, out, out_length);
}

/* What is wrong with a ciphertext is said as by multi-part operations, and nothing of it is shown. */
static void damage(CK_SESSION_HANDLE session, CK_BYTE *sealed, CK_ULONG length)
{
	CK_BYTE out[LONGEST + 64];
	CK_ULONG out_length = sizeof(out);
	if (cipher->block == 1) return;
	EXPECT(decrypt(session, keys[0], sealed, length - 1, out, &out_length),
	       CKR_ENCRYPTED_DATA_LEN_RANGE);
	if (!cipher->pad) return;
	memset(out, 0, sizeof(out));
	sealed[length - 9] ^= 0x80; /* the length of the padding becomes impossible */
	out_length = sizeof(out);
	EXPECT(decrypt(session, keys[0], sealed, length, out, &out_length), CKR_ENCRYPTED_DATA_INVALID);
	for (size_t at = 0; at < sizeof(out); at++) CHECK(out[at] == 0);
	sealed[length - 9] ^= 0x80;
}

static void one_call(CK_SESSION_HANDLE session)
{
	static CK_BYTE right[LONGEST + 64], sealed[LONGEST + 64], opened[LONGEST + 64];
	for (CK_ULONG size = 0; size <= 9000; size += cipher->pad ? 187 : 8 * 23) {
		CK_ULONG length = sizeof(sealed), wanted = reference(session, keys[0], size, right);
		OK(p11->C_EncryptInit(session, &cipher->mechanism, keys[0]));
		OK(p11->C_Encrypt(session, plain, size, sealed, &length));
		CHECK(length == wanted && memcmp(sealed, right, length) == 0);
		CK_ULONG opened_length = sizeof(opened);
		OK(decrypt(session, keys[0], sealed, length, opened, &opened_length));
		CHECK(opened_length == size && memcmp(opened, plain, size) == 0);
		if (size > 0) damage(session, sealed, length);
	}
}

static void asynchronous(CK_SESSION_HANDLE session)
{
	static CK_BYTE data[SESSIONS][LONGEST + 64], right[LONGEST + 64];
	CK_SESSION_HANDLE sessions[SESSIONS];
	CK_ULONG lengths[SESSIONS];
	int pending[SESSIONS], count = 0;
	for (int at = 0; at < SESSIONS; at++) {
		OK(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_ASYNC_SESSION, NULL, NULL, &sessions[at]));
		CK_ULONG size = (CK_ULONG)at * (cipher->pad ? 201 : 200);
		memcpy(data[at], plain, size);
		lengths[at] = sizeof(data[at]);
		OK(p11->C_EncryptInit(sessions[at], &cipher->mechanism, keys[at % 2]));
		CK_RV rv = p11->C_Encrypt(sessions[at], data[at], size, data[at], &lengths[at]);
		pending[at] = rv == CKR_PENDING;
		count += pending[at];
		if (rv != CKR_OK && rv != CKR_PENDING) FAIL("C_Encrypt: 0x%lx", rv);
	}
	printf("0x%lx: %d of %d pending\n", cipher->mechanism.mechanism, count, SESSIONS);
	for (int at = 0; at < SESSIONS; at++) {
		CK_ULONG size = (CK_ULONG)at * (cipher->pad ? 201 : 200);
		CK_ULONG wanted = reference(session, keys[at % 2], size, right);
		CK_ASYNC_DATA result = {0, NULL, lengths[at], 1, 1};
		CK_RV rv = CKR_PENDING;
		while (pending[at] && rv == CKR_PENDING)
			rv = p11->C_AsyncComplete(sessions[at], (CK_UTF8CHAR *)"C_Encrypt", &result);
		CHECK(!pending[at] || (rv == CKR_OK && result.pValue == data[at]));
		CHECK((pending[at] ? result.ulValue : lengths[at]) == wanted);
		CHECK(memcmp(data[at], right, wanted) == 0);
		OK(p11->C_CloseSession(sessions[at]));
	}
}

static void *encrypt(void *number)
{
	CK_SESSION_HANDLE session = open_session();
	CK_BYTE right[LONGEST + 64], sealed[LONGEST + 64];
	CK_ULONG size = 2048 + 8 * (CK_ULONG)(intptr_t)number, length = sizeof(sealed);
	CK_OBJECT_HANDLE key = keys[size / 8 % 2];
	CK_ULONG wanted = reference(session, key, size, right);
	pthread_barrier_wait(&barrier);
	for (int round = 0; round < 4; round++) {
		length = sizeof(sealed);
		OK(p11->C_EncryptInit(session, &cipher->mechanism, key));
		OK(p11->C_Encrypt(session, plain, size, sealed, &length));
		CHECK(length == wanted && memcmp(sealed, right, length) == 0);
	}
	OK(p11->C_CloseSession(session));
	return NULL;
}

static void threads(void)
{
	pthread_t all[THREADS];
	for (intptr_t at = 0; at < THREADS; at++)
		CHECK(pthread_create(&all[at], NULL, encrypt, (void *)at) == 0);
	for (int at = 0; at < THREADS; at++) CHECK(pthread_join(all[at], NULL) == 0);
}

/* A counter that would come round in a call: nothing is written, however far the call would have come. `left` blocks are left. */
static void comes_round(CK_SESSION_HANDLE session, CK_MECHANISM mechanism, CK_KEY_TYPE type, CK_ULONG block, CK_ULONG left)
{
	CK_BYTE value[32] = {1}, data[256], out[256], none[256];
	CK_OBJECT_HANDLE key = import_key(session, type, value, 32);
	memset(none, 0x55, sizeof(none));
	for (CK_ULONG first = 0; first <= left * block; first += 7) {
		CK_ULONG length = sizeof(out), rest = left * block - first;
		memset(data, 0x55, sizeof(data));
		OK(p11->C_EncryptInit(session, &mechanism, key));
		OK(p11->C_EncryptUpdate(session, data, first, out, &length));
		length = sizeof(out);
		EXPECT(p11->C_EncryptUpdate(session, data, rest + 1, data, &length), CKR_DATA_LEN_RANGE);
		CHECK(memcmp(data, none, sizeof(data)) == 0);
		OK(p11->C_EncryptInit(session, &mechanism, key));
		OK(p11->C_EncryptUpdate(session, data, first, out, &length));
		length = sizeof(out);
		OK(p11->C_EncryptUpdate(session, data, rest, out, &length));
		length = sizeof(out);
		EXPECT(p11->C_EncryptUpdate(session, data, 1, data, &length), CKR_DATA_LEN_RANGE);
		CHECK(memcmp(data, none, sizeof(data)) == 0);
	}
	CK_ULONG length = sizeof(data);
	OK(p11->C_EncryptInit(session, &mechanism, key));
	EXPECT(p11->C_Encrypt(session, data, left * block + 1, data, &length), CKR_DATA_LEN_RANGE);
	CHECK(memcmp(data, none, sizeof(data)) == 0);
	OK(p11->C_DestroyObject(session, key));
}

static void counters(CK_SESSION_HANDLE session)
{
	CK_BYTE last[8] = {0xfe, 255, 255, 255, 255, 255, 255, 255};
	CK_AES_CTR_PARAMS ctr = {7, {0}};
	CK_SALSA20_PARAMS salsa = {last, iv, 64};
	ctr.cb[15] = 0x7d;
	comes_round(session, (CK_MECHANISM){CKM_AES_CTR, &ctr, sizeof(ctr)}, CKK_AES, 16, 3);
	comes_round(session, (CK_MECHANISM){CKM_CAMELLIA_CTR, &ctr, sizeof(ctr)}, CKK_CAMELLIA, 16, 3);
	comes_round(session, (CK_MECHANISM){CKM_SALSA20, &salsa, sizeof(salsa)}, CKK_SALSA20, 64, 2);
}

int main(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE keeper = open_session();
	OK(pthread_barrier_init(&barrier, NULL, THREADS));
	for (size_t at = 0; at < sizeof(plain); at++) plain[at] = (CK_BYTE)(at * at >> 3);
	for (size_t which = 0; which < sizeof(ciphers) / sizeof(ciphers[0]); which++) {
		CK_BYTE value[24] = {1, 2, 4, 7, 8, 11, 13, 14, 16, 19, 21, 22, 25, 26, 28, 31, 32};
		memset(value + 17, 0x23, 7);
		cipher = &ciphers[which];
		keys[0] = import_key(keeper, cipher->type, value, cipher->key_length);
		value[3] ^= 3;
		keys[1] = import_key(keeper, cipher->type, value, cipher->key_length);
		one_call(keeper);
		asynchronous(keeper);
		threads();
	}
	counters(keeper);
	OK(p11->C_Finalize(NULL));
	return 0;
}
