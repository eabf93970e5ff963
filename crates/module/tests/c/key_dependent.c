// SPDX-License-Identifier: Apache-2.0
/* What a call leaves on the host's stack depends on no key alone. Each is made twice with one key and other data, and once with another
 * key: what is the same of the first two and not of the third is the key in some form, as its schedule, the state of a MAC or a hash key. */
#include "common.h"

#define DEPTH (64 * 1024)
#define COUNT(array) (sizeof(array) / sizeof *(array))

enum action { SIGN_INIT, SIGN, SIGN_UPDATE, SIGN_FINAL, VERIFY, ENCRYPT_INIT, ENCRYPT, ENCRYPT_UPDATE, DECRYPT };
static const char *const actions[] = {"C_SignInit", "C_Sign", "C_SignUpdate", "C_SignFinal", "C_Verify",
				      "C_EncryptInit", "C_Encrypt", "C_EncryptUpdate", "C_Decrypt"};

static CK_SESSION_HANDLE session;
static uint64_t seen[3][DEPTH / 8];
static CK_BYTE data[2][400], iv[16], out[600], sealed[600];
static CK_ULONG length, text = 320;

static void __attribute__((noinline)) clear_below(void)
{
	volatile uint64_t below[DEPTH / 8];
	for (size_t i = 0; i < COUNT(below); i++) below[i] = 0;
}

/* Clears what is below this frame, calls, and looks, without a call that would write there. */
static CK_RV __attribute__((noinline)) look(enum action action, CK_MECHANISM *by, CK_OBJECT_HANDLE key, CK_BYTE *bytes,
					    uint64_t *to)
{
	const volatile uint64_t *below = (uint64_t *)__builtin_frame_address(0) - DEPTH / 8;
	CK_RV rv = CKR_FUNCTION_NOT_SUPPORTED;
	clear_below();
	switch (action) {
	case SIGN_INIT: rv = p11->C_SignInit(session, by, key); break;
	case SIGN: rv = p11->C_Sign(session, bytes, 300, out, &length); break;
	case SIGN_UPDATE: rv = p11->C_SignUpdate(session, bytes, 300); break;
	case SIGN_FINAL: rv = p11->C_SignFinal(session, out, &length); break;
	case VERIFY: rv = p11->C_Verify(session, bytes, 300, out, length); break;
	case ENCRYPT_INIT: rv = p11->C_EncryptInit(session, by, key); break;
	case ENCRYPT: rv = p11->C_Encrypt(session, bytes, text, out, &length); break;
	case ENCRYPT_UPDATE: rv = p11->C_EncryptUpdate(session, bytes, text, out, &length); break;
	case DECRYPT: rv = p11->C_Decrypt(session, sealed, length, out, &length); break;
	}
	for (size_t i = 0; i < DEPTH / 8; i++) to[i] = below[i];
	return rv;
}

static void prepare(enum action action, CK_MECHANISM *by, CK_OBJECT_HANDLE key, CK_BYTE *bytes)
{
	CK_ULONG size = sizeof sealed;
	memcpy(iv, bytes, sizeof iv);
	length = sizeof out;
	switch (action) {
	case SIGN_INIT:
	case ENCRYPT_INIT: return;
	case SIGN:
	case SIGN_UPDATE: OK(p11->C_SignInit(session, by, key)); return;
	case SIGN_FINAL:
		OK(p11->C_SignInit(session, by, key));
		OK(p11->C_SignUpdate(session, bytes, 300));
		return;
	case VERIFY:
		OK(p11->C_SignInit(session, by, key));
		OK(p11->C_Sign(session, bytes, 300, out, &length));
		OK(p11->C_VerifyInit(session, by, key));
		return;
	case ENCRYPT:
	case ENCRYPT_UPDATE: OK(p11->C_EncryptInit(session, by, key)); return;
	case DECRYPT:
		if (by->mechanism == CKM_DES3_CBC) {
			memcpy(sealed, bytes, size = 64);
		} else {
			OK(p11->C_EncryptInit(session, by, key));
			OK(p11->C_Encrypt(session, bytes, text, sealed, &size));
		}
		length = size;
		OK(p11->C_DecryptInit(session, by, key));
	}
}

/* How many of eight bytes differ from each other; none where it is an address. */
static int variety(uint64_t word)
{
	int different = 0;
	if (word >> 47 == 0) return 0;
	for (int i = 0; i < 8; i++) {
		int before = 0;
		for (int j = 0; j < i; j++) before |= (word >> 8 * i & 255) == (word >> 8 * j & 255);
		different += !before;
	}
	return different;
}

static int is_of_the_key(size_t at)
{
	return seen[0][at] == seen[1][at] && seen[0][at] != seen[2][at] && variety(seen[0][at]) > 5 && variety(seen[2][at]) > 5;
}

static int left(enum action action, CK_MECHANISM *by, const CK_OBJECT_HANDLE keys[2])
{
	/* Each key once before: what is done once is none of this. */
	for (int run = -2; run < 3; run++) {
		CK_OBJECT_HANDLE key = keys[run == 2 || run == -2];
		CK_BYTE *bytes = data[run == 1];
		prepare(action, by, key, bytes);
		OK(look(action, by, key, bytes, seen[run < 0 ? 0 : run]));
		p11->C_SessionCancel(session, CKF_SIGN | CKF_VERIFY | CKF_ENCRYPT | CKF_DECRYPT);
	}
	/* A word alone may be of a lock or a clock. */
	for (size_t i = 0; i + 1 < DEPTH / 8; i++) {
		if (!is_of_the_key(i) || !is_of_the_key(i + 1)) continue;
		printf("%s by 0x%lx leaves something of the key %zu bytes below\n", actions[action], by->mechanism, DEPTH - 8 * i);
		return 1;
	}
	return 0;
}

static void keys_of(CK_KEY_TYPE type, size_t size, CK_OBJECT_HANDLE keys[2])
{
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_BYTE value[64];
	for (unsigned which = 0; which < 2; which++) {
		int is_mac = type == CKK_GENERIC_SECRET;
		CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},
					   {CKA_VALUE, value, size}, {is_mac ? CKA_VERIFY : CKA_ENCRYPT, &yes, 1},
					   {is_mac ? CKA_SIGN : CKA_DECRYPT, &yes, 1}, {CKA_SIGN, &yes, 1}, {CKA_VERIFY, &yes, 1}};
		for (unsigned i = 0; i < size; i++) {
			value[i] = (CK_BYTE)((i + 3) * (i + 17 + 90 * which) >> (i & 1));
			if (type == CKK_DES3) value[i] ^= !__builtin_parity(value[i]);
		}
		OK(p11->C_CreateObject(session, template, type == CKK_AES ? 7 : 5, &keys[which]));
	}
}

int main(void)
{
	static CK_GCM_PARAMS gcm = {iv, 12, 96, NULL, 0, 128};
	static CK_CCM_PARAMS ccm = {320, iv, 12, NULL, 0, 16};
	static CK_AES_CTR_PARAMS ctr = {64, {0}};
	static CK_SALSA20_CHACHA20_POLY1305_PARAMS poly = {iv, 12, NULL, 0};
	static const CK_MECHANISM_TYPE hmacs[] = {CKM_MD5_HMAC,	   CKM_SHA_1_HMAC,  CKM_SHA256_HMAC,  CKM_SHA384_HMAC,
						  CKM_SHA512_HMAC, CKM_SHA3_256_HMAC, CKM_SHA3_512_HMAC, CKM_BLAKE2B_512_HMAC};
	static CK_MECHANISM macs[] = {{CKM_AES_CMAC, NULL, 0}, {CKM_AES_GMAC, iv, 12}};
	static CK_MECHANISM ciphers[] = {{CKM_AES_ECB, NULL, 0}, {CKM_AES_CBC, iv, 16}, {CKM_AES_GCM, &gcm, sizeof gcm},
					 {CKM_AES_CCM, &ccm, sizeof ccm}, {CKM_AES_CTR, &ctr, sizeof ctr}, {CKM_AES_OFB, iv, 16}};
	static CK_MECHANISM chacha = {CKM_CHACHA20_POLY1305, &poly, sizeof poly}, des = {CKM_DES3_CBC, iv, 8};
	CK_OBJECT_HANDLE keys[2];
	int found = 0, looked = 0;
	alarm(120);
	session = begin_as_user();
	for (size_t i = 0; i < sizeof data[0]; i++) {
		data[0][i] = (CK_BYTE)(i * i * 7 + i / 3);
		data[1][i] = (CK_BYTE)(i * i * 11 + i / 5 + 77);
	}
	keys_of(CKK_GENERIC_SECRET, 40, keys);
	for (size_t i = 0; i < COUNT(hmacs); i++)
		for (enum action action = SIGN_INIT; action <= VERIFY; action++, looked++) {
			CK_MECHANISM hmac = {hmacs[i], NULL, 0};
			found += left(action, &hmac, keys);
		}
	keys_of(CKK_AES, 32, keys);
	for (size_t i = 0; i < COUNT(macs); i++)
		for (enum action action = SIGN_INIT; action <= VERIFY; action++, looked++) found += left(action, &macs[i], keys);
	for (size_t i = 0; i < COUNT(ciphers); i++)
		for (enum action action = ENCRYPT_INIT; action <= DECRYPT; action++, looked++)
			found += left(action, &ciphers[i], keys);
	/* The library has other code for short and for long data. */
	static CK_BYTE more[1000];
	static const CK_ULONG texts[] = {0, 16, 112, 128, 129, 144, 256, 257}, mores[] = {0, 300, sizeof more};
	for (size_t i = 0; i < COUNT(texts) * COUNT(mores); i++) {
		CK_GCM_PARAMS with = {iv, 12, 96, more, mores[i % COUNT(mores)], 128};
		CK_MECHANISM by = {CKM_AES_GCM, &with, sizeof with};
		text = texts[i / COUNT(mores)];
		for (enum action action = ENCRYPT_INIT; action <= DECRYPT; action++, looked++) found += left(action, &by, keys);
	}
	text = 320;
	keys_of(CKK_CHACHA20, 32, keys);
	for (enum action action = ENCRYPT_INIT; action <= DECRYPT; action++, looked++) found += left(action, &chacha, keys);
	keys_of(CKK_DES3, 24, keys);
	found += left(DECRYPT, &des, keys);
	printf("%d calls looked at, %d leave something of a key\n", looked + 1, found);
	return found > 0;
}
