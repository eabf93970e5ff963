// SPDX-License-Identifier: Apache-2.0
/* The dynamic linker writes vector registers to the stack when the host calls a function for the first time. Nothing of a key or a PIN
 * is there after a call of ours has returned, nor on the stack that the call itself has left. To be linked with -z lazy. */
#include "common.h"

#define DEPTH (64 * 1024)
#define WINDOW 8
#define MOST 8

/* What is looked for, inverted: it is never itself in this program's memory when a call begins. */
static struct {
	const char *what;
	unsigned char inverted[64];
	size_t length;
} secrets[MOST];
static int secret_count, found, bound;
static CK_SESSION_HANDLE session;

static void look_for(const char *what, unsigned char *bytes, size_t length)
{
	CHECK(secret_count < MOST && length <= 64);
	secrets[secret_count].what = what;
	secrets[secret_count].length = length;
	for (size_t i = 0; i < length; i++) secrets[secret_count].inverted[i] = (unsigned char)~bytes[i];
	secret_count++;
}

/* Eight bytes from anywhere in a secret, in either order. */
static const char *holds(const volatile unsigned char *at)
{
	for (int s = 0; s < secret_count; s++)
		for (size_t from = 0; from + WINDOW <= secrets[s].length; from++) {
			size_t same = 0, turned = 0;
			while (same < WINDOW && at[same] + secrets[s].inverted[from + same] == 0xff) same++;
			while (turned < WINDOW && at[WINDOW - 1 - turned] + secrets[s].inverted[from + turned] == 0xff)
				turned++;
			if (same == WINDOW || turned == WINDOW) return secrets[s].what;
		}
	return NULL;
}

static unsigned char seen[DEPTH];

/* What lay below the caller's frame, read without a call that would write there. */
#define SEE() \
	do { \
		const volatile unsigned char *below_ = (unsigned char *)__builtin_frame_address(0) - DEPTH; \
		for (size_t i_ = 0; i_ < DEPTH; i_++) seen[i_] = below_[i_]; \
	} while (0)

static void report(const char *call, const char *function)
{
	for (size_t i = 0; i + WINDOW <= DEPTH; i++) {
		const char *what = holds(seen + i);
		if (what == NULL) continue;
		printf("after %s and %s: %s, %zu bytes below\n", call, function, what, DEPTH - i);
		found++;
		break;
	}
	bound++;
	memset(seen, 0, sizeof seen);
}

/* A call, and then a function of the C library that was never called before. */
static void __attribute__((noinline)) clear_below(void)
{
	volatile unsigned char below[DEPTH];
	for (size_t i = 0; i < sizeof below; i++) below[i] = 0;
}

#define THEN(call, function, ...) \
	static void __attribute__((noinline)) then_##function(const char *what, CK_RV expected) \
	{ \
		CK_RV rv; \
		clear_below(); \
		rv = call; \
		(void)function(__VA_ARGS__); \
		SEE(); \
		if (rv != expected) FAIL("%s: 0x%lx", what, rv); \
		report(what, #function); \
	}

static CK_OBJECT_CLASS secret_class = CKO_SECRET_KEY, private_class = CKO_PRIVATE_KEY;
static CK_KEY_TYPE aes_type = CKK_AES, generic_type = CKK_GENERIC_SECRET, edwards_type = CKK_EC_EDWARDS;
static CK_BYTE value[64], out[5000], ciphertext[1568], iv[16], ed25519[] = {6, 3, 0x2b, 0x65, 0x70};
static CK_ULONG length, ciphertext_length = sizeof ciphertext;
static CK_OBJECT_HANDLE key, other, public, private, shared;
static CK_ATTRIBUTE aes_key[] = {{CKA_CLASS, &secret_class, sizeof secret_class}, {CKA_KEY_TYPE, &aes_type, sizeof aes_type},
				 {CKA_VALUE, value, 32}};
static CK_ATTRIBUTE generic_key[] = {{CKA_CLASS, &secret_class, sizeof secret_class},
				     {CKA_KEY_TYPE, &generic_type, sizeof generic_type}, {CKA_VALUE, value, 64}};
static CK_ATTRIBUTE edwards_key[] = {{CKA_CLASS, &private_class, sizeof private_class},
				     {CKA_KEY_TYPE, &edwards_type, sizeof edwards_type},
				     {CKA_EC_PARAMS, ed25519, sizeof ed25519}, {CKA_VALUE, value, 32}};
static CK_ATTRIBUTE readable[] = {{CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1}};
static CK_GCM_PARAMS gcm_params = {iv, 12, 96, NULL, 0, 128};
static CK_MECHANISM cmac = {CKM_AES_CMAC, NULL, 0}, hmac = {CKM_SHA256_HMAC, NULL, 0}, hmac3 = {CKM_SHA3_256_HMAC, NULL, 0},
		    hmac512 = {CKM_SHA512_HMAC, NULL, 0}, gcm = {CKM_AES_GCM, &gcm_params, sizeof gcm_params},
		    kem = {CKM_ML_KEM, NULL, 0}, eddsa = {CKM_EDDSA, NULL, 0};
static CK_UTF8CHAR pin[] = "a PIN of many letters";

#define ROOM (length = sizeof out, out), &length
THEN(p11->C_Login(session, CKU_USER, pin, sizeof pin - 1), lrand48)
THEN(p11->C_CreateObject(session, aes_key, 3, &key), mrand48)
THEN(p11->C_SignInit(session, &cmac, key), random)
THEN(p11->C_Sign(session, iv, 16, ROOM), geteuid)
THEN(p11->C_SignInit(session, &cmac, key), getegid)
THEN(p11->C_SignUpdate(session, iv, 16), getgid)
THEN(p11->C_SignFinal(session, ROOM), getuid)
THEN(p11->C_EncryptInit(session, &gcm, key), getppid)
THEN(p11->C_Encrypt(session, iv, 16, ROOM), getpgrp)
THEN(p11->C_CreateObject(session, generic_key, 3, &key), rand)
THEN(p11->C_SignInit(session, &hmac, key), ctermid, (char *)out)
THEN(p11->C_SignInit(session, &hmac512, key), clock)
THEN(p11->C_SignInit(session, &hmac3, key), getdtablesize)
THEN(p11->C_CreateObject(session, edwards_key, 4, &key), getpagesize)
THEN(p11->C_SignInit(session, &eddsa, key), gethostid)
THEN(p11->C_Sign(session, iv, 16, ROOM), getsid, 0)
THEN(p11->C_DecapsulateKey(session, &kem, private, readable, 2, ciphertext, ciphertext_length, &other), sched_yield)
THEN(p11->C_DestroyObject(session, other), isatty, 0)
THEN(p11->C_CloseSession(session), tzset)

static void invent(const char *what, size_t size)
{
	int file = open("/dev/urandom", O_RDONLY);
	CHECK(read(file, value, size) == (ssize_t)size);
	close(file);
	secret_count = 0;
	look_for(what, value, size);
	explicit_bzero(out, sizeof out);
}


/* The key of AES-GCM's hash, as it is and as code for carry-less multiplication has it. */
static void look_for_hash_key(void)
{
	CK_MECHANISM ecb = {CKM_AES_ECB, NULL, 0};
	CK_BYTE zero[16] = {0}, hash_key[16];
	uint64_t words[2], carry;
	length = sizeof hash_key;
	OK(p11->C_EncryptInit(session, &ecb, key));
	OK(p11->C_Encrypt(session, zero, 16, hash_key, &length));
	look_for("a hash key", hash_key, 16);
	for (int i = 0; i < 2; i++) {
		words[i] = 0;
		for (int j = 0; j < 8; j++) words[i] = words[i] << 8 | hash_key[8 * i + j];
	}
	carry = words[0] >> 63;
	words[0] = words[0] << 1 | words[1] >> 63;
	words[1] = words[1] << 1;
	if (carry) {
		words[0] ^= 0xc200000000000000;
		words[1] ^= 1;
	}
	look_for("a hash key", (unsigned char *)words, 16);
}

static void look_for_pads(void)
{
	unsigned char padded[64];
	for (int pad = 0x36; pad <= 0x5c; pad += 0x5c - 0x36) {
		for (int i = 0; i < 64; i++) padded[i] = value[i] ^ pad;
		look_for("a padded key", padded, 64);
	}
}

static void look_for_shared(CK_OBJECT_HANDLE of)
{
	CK_ATTRIBUTE shown = {CKA_VALUE, out, 32};
	OK(p11->C_GetAttributeValue(session, of, &shown, 1));
	secret_count = 0;
	look_for("a shared secret", out, 32);
	explicit_bzero(out, sizeof out);
}

static void edwards(void)
{
	CK_MECHANISM sha512 = {CKM_SHA512, NULL, 0};
	invent("a key of Ed25519", 32);
	then_getpagesize("C_CreateObject of Ed25519", CKR_OK);
	/* What it signs with. */
	OK(p11->C_DigestInit(session, &sha512));
	OK(p11->C_Digest(session, value, 32, ROOM));
	look_for("a hashed key", out, 64);
	out[0] &= 248;
	out[31] = (out[31] & 127) | 64;
	look_for("a number", out, 32);
	explicit_bzero(out, sizeof out);
	then_gethostid("C_SignInit of Ed25519", CKR_OK);
	then_getsid("C_Sign of Ed25519", CKR_OK);
}

int main(void)
{
	CK_MECHANISM generate = {CKM_ML_KEM_KEY_PAIR_GEN, NULL, 0};
	CK_ML_KEM_PARAMETER_SET_TYPE set = CKP_ML_KEM_1024;
	CK_ATTRIBUTE size = {CKA_PARAMETER_SET, &set, sizeof set};
	CK_UTF8CHAR label[33] = "boundary                        ";
	alarm(120);
	load();
	OK(p11->C_Initialize(NULL));
	OK(p11->C_InitToken(0, so_pin, 8, label));
	session = open_session();
	OK(p11->C_Login(session, CKU_SO, so_pin, 8));
	OK(p11->C_InitPIN(session, pin, sizeof pin - 1));
	OK(p11->C_Logout(session));
	look_for("the PIN", pin, sizeof pin - 1);
	then_lrand48("C_Login", CKR_OK);

	invent("an AES key", 32);
	then_mrand48("C_CreateObject of AES", CKR_OK);
	look_for_hash_key();
	then_random("C_SignInit of CMAC", CKR_OK);
	then_geteuid("C_Sign of CMAC", CKR_OK);
	then_getegid("C_SignInit of CMAC", CKR_OK);
	then_getgid("C_SignUpdate of CMAC", CKR_OK);
	then_getuid("C_SignFinal of CMAC", CKR_OK);
	then_getppid("C_EncryptInit of GCM", CKR_OK);
	then_getpgrp("C_Encrypt of GCM", CKR_OK);

	invent("a MAC key", 64);
	look_for_pads();
	then_rand("C_CreateObject of a MAC key", CKR_OK);
	then_ctermid("C_SignInit of HMAC-SHA-256", CKR_OK);
	OK(p11->C_SignInit(session, NULL, 0));
	then_clock("C_SignInit of HMAC-SHA-512", CKR_OK);
	OK(p11->C_SignInit(session, NULL, 0));
	then_getdtablesize("C_SignInit of HMAC-SHA3-256", CKR_OK);
	OK(p11->C_SignInit(session, NULL, 0));
	edwards();

	OK(p11->C_GenerateKeyPair(session, &generate, &size, 1, NULL, 0, &public, &private));
	OK(p11->C_EncapsulateKey(session, &kem, public, readable, 2, ciphertext, &ciphertext_length, &shared));
	look_for_shared(shared);
	/* Of a ciphertext that is there already, what comes out is known before. */
	then_sched_yield("C_DecapsulateKey", CKR_OK);
	then_isatty("C_DestroyObject", CKR_OK);
	then_tzset("C_CloseSession", CKR_OK);
	printf("%d functions bound, %d secrets found\n", bound, found);
	return found > 0;
}
