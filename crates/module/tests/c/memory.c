// SPDX-License-Identifier: Apache-2.0
/* Copies of keys in this process's memory: none after the key is destroyed, after logout, and after
 * C_Finalize. What is looked for is never itself in memory in the form that is looked for: each
 * pattern is kept inverted. */
#include "common.h"

#define MOST_PATTERNS 64
struct pattern {
	const char *what;
	size_t length;
	int found;
	unsigned char inverted[64];
};
static struct pattern patterns[MOST_PATTERNS];
static int pattern_count;

static void __attribute__((noinline)) look_for(const char *what, const unsigned char *bytes, size_t length)
{
	struct pattern *pattern = &patterns[pattern_count++];
	CHECK(pattern_count < MOST_PATTERNS);
	pattern->what = what;
	pattern->length = length > 32 ? 32 : length;
	for (size_t i = 0; i < pattern->length; i++) pattern->inverted[i] = (unsigned char)~bytes[i];
}

/* Each pattern in both orders of bytes: libraries keep big numbers with the least word first. */
static void __attribute__((noinline)) look_for_number(const char *what, const unsigned char *bytes,
						      size_t length)
{
	unsigned char turned[32];
	look_for(what, bytes + length - 32, 32);
	for (int i = 0; i < 32; i++) turned[i] = bytes[length - 1 - (size_t)i];
	look_for(what, turned, 32);
	explicit_bzero(turned, sizeof turned);
}

static int matches(const unsigned char *at, const struct pattern *pattern)
{
	for (size_t i = 0; i < pattern->length; i++)
		if (at[i] + pattern->inverted[i] != 0xff) return 0;
	return 1;
}

/* Reads through /proc/self/mem, so that unmapped and guarded pages are errors, not crashes. */
static int scan(int report)
{
	static unsigned char page[1 << 16];
	unsigned char *own_start = page, *own_end = page + sizeof page;
	unsigned char begins[256] = {0};
	int found = 0, memory = open("/proc/self/mem", O_RDONLY);
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	CHECK(memory >= 0 && maps != NULL);
	for (int p = 0; p < pattern_count; p++) {
		begins[0xff - patterns[p].inverted[0]] = 1;
		patterns[p].found = 0;
	}
	while (fgets(line, sizeof line, maps) != NULL) {
		unsigned long start, end;
		char mode[5];
		CHECK(sscanf(line, "%lx-%lx %4s", &start, &end, mode) == 3);
		if (mode[0] != 'r' || strstr(line, "[v") != NULL) continue;
		for (unsigned long at = start; at < end;) {
			size_t wanted = end - at < sizeof page ? end - at : sizeof page;
			ssize_t there = pread(memory, page, wanted, (off_t)at);
			if (there <= 0) {
				at += 4096;
				continue;
			}
			for (ssize_t i = 0; i + 16 <= there; i++) {
				unsigned char *real = (unsigned char *)at + i;
				if (!begins[page[i]]) continue;
				if (real >= own_start - 64 && real < own_end) continue;
				for (int p = 0; p < pattern_count; p++) {
					if (i + (ssize_t)patterns[p].length > there) continue;
					if (page[i] + patterns[p].inverted[0] != 0xff) continue;
					if (!matches(page + i, &patterns[p])) continue;
					found++;
					patterns[p].found++;
					if (report) printf("%s at %p in %s", patterns[p].what, (void *)real, line);
				}
			}
			/* A pattern may lie across two reads. */
			at += (unsigned long)(there > 64 && at + (unsigned long)there < end ? there - 64 : there);
		}
	}
	fclose(maps);
	close(memory);
	explicit_bzero(page, sizeof page);
	return found;
}

static CK_SESSION_HANDLE session;

/* A recognisable secret: the caller wipes it. */
static void __attribute__((noinline)) invent(unsigned char *bytes, size_t length)
{
	int random = open("/dev/urandom", O_RDONLY);
	CHECK(read(random, bytes, length) == (ssize_t)length);
	close(random);
}

/* The last round keys of AES-256, computed on their own: what an expanded schedule ends with. */
static const unsigned char *box(void)
{
	static unsigned char sbox[256];
	unsigned char p = 1, q = 1;
	do {
		p = (unsigned char)(p ^ (p << 1) ^ (p & 0x80 ? 0x1b : 0));
		q = (unsigned char)(q ^ (q << 1));
		q = (unsigned char)(q ^ (q << 2));
		q = (unsigned char)(q ^ (q << 4));
		q = (unsigned char)(q ^ (q & 0x80 ? 0x09 : 0));
		unsigned char x = (unsigned char)(q ^ (q << 1 | q >> 7) ^ (q << 2 | q >> 6) ^
						  (q << 3 | q >> 5) ^ (q << 4 | q >> 4));
		sbox[p] = x ^ 0x63;
	} while (p != 1);
	sbox[0] = 0x63;
	return sbox;
}

static void __attribute__((noinline)) look_for_schedule(const unsigned char key[32])
{
	const unsigned char *sbox = box();
	unsigned char w[60][4], rcon = 1;
	memcpy(w, key, 32);
	for (int i = 8; i < 60; i++) {
		unsigned char t[4];
		memcpy(t, w[i - 1], 4);
		if (i % 8 == 0) {
			unsigned char first = t[0];
			for (int j = 0; j < 3; j++) t[j] = sbox[t[j + 1]];
			t[3] = sbox[first];
			t[0] ^= rcon;
			rcon = (unsigned char)(rcon << 1 ^ (rcon & 0x80 ? 0x1b : 0));
		} else if (i % 8 == 4) {
			for (int j = 0; j < 4; j++) t[j] = sbox[t[j]];
		}
		for (int j = 0; j < 4; j++) w[i][j] = w[i - 8][j] ^ t[j];
	}
	look_for("AES key schedule", w[12], 16);
	look_for("AES key schedule", w[56], 16);
	explicit_bzero(w, sizeof w);
}

static CK_OBJECT_HANDLE __attribute__((noinline)) import_aes(CK_BBOOL token)
{
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_AES;
	unsigned char value[32];
	CK_OBJECT_HANDLE key;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},
		{CKA_VALUE, value, sizeof value},  {CKA_TOKEN, &token, 1},
		{CKA_PRIVATE, &token, 1},	   {CKA_SENSITIVE, &yes, 1},
	};
	invent(value, sizeof value);
	look_for("AES key", value, sizeof value);
	look_for_schedule(value);
	OK(p11->C_CreateObject(session, template, 6, &key));
	explicit_bzero(value, sizeof value);
	return key;
}

static void use_aes(CK_OBJECT_HANDLE key)
{
	CK_BYTE iv[16] = {0}, data[64] = {0}, out[96];
	CK_ULONG length = sizeof out;
	CK_GCM_PARAMS gcm = {iv, 12, 96, NULL, 0, 128};
	CK_MECHANISM mechanisms[] = {{CKM_AES_ECB, NULL, 0}, {CKM_AES_CBC_PAD, iv, 16},
				     {CKM_AES_GCM, &gcm, sizeof gcm}};
	CK_MECHANISM mac = {CKM_AES_CMAC, NULL, 0};
	for (int i = 0; i < 3; i++) {
		length = sizeof out;
		OK(p11->C_EncryptInit(session, &mechanisms[i], key));
		OK(p11->C_Encrypt(session, data, sizeof data, out, &length));
		OK(p11->C_DecryptInit(session, &mechanisms[i], key));
		OK(p11->C_Decrypt(session, out, length, out, &length));
		OK(p11->C_EncryptInit(session, &mechanisms[i], key));
		length = sizeof out;
		OK(p11->C_EncryptUpdate(session, data, 32, out, &length));
		/* And one that is left in the middle. */
		p11->C_SessionCancel(session, CKF_ENCRYPT);
	}
	length = sizeof out;
	OK(p11->C_SignInit(session, &mac, key));
	OK(p11->C_Sign(session, data, sizeof data, out, &length));
}

/* An RSA key that may be read once, to know what to look for, and then is made unreadable. */
static CK_OBJECT_HANDLE __attribute__((noinline)) generate_rsa(CK_BBOOL token, CK_OBJECT_HANDLE *public)
{
	CK_MECHANISM generate = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
	CK_ULONG bits = 2048;
	CK_BYTE exponent[] = {1, 0, 1};
	static unsigned char d[256], p[128], q[128], dp[128];
	CK_OBJECT_HANDLE private;
	CK_ATTRIBUTE publics[] = {{CKA_MODULUS_BITS, &bits, sizeof bits},
				  {CKA_PUBLIC_EXPONENT, exponent, 3}};
	CK_ATTRIBUTE privates[] = {{CKA_TOKEN, &token, 1}, {CKA_PRIVATE, &token, 1},
				   {CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1}};
	CK_ATTRIBUTE values[] = {{CKA_PRIVATE_EXPONENT, d, sizeof d},
				 {CKA_PRIME_1, p, sizeof p},
				 {CKA_PRIME_2, q, sizeof q},
				 {CKA_EXPONENT_1, dp, sizeof dp}};
	OK(p11->C_GenerateKeyPair(session, &generate, publics, 2, privates, 4, public, &private));
	OK(p11->C_GetAttributeValue(session, private, values, 4));
	look_for_number("RSA d", d, values[0].ulValueLen);
	look_for_number("RSA p", p, values[1].ulValueLen);
	look_for_number("RSA q", q, values[2].ulValueLen);
	look_for_number("RSA d mod p-1", dp, values[3].ulValueLen);
	explicit_bzero(d, sizeof d);
	explicit_bzero(p, sizeof p);
	explicit_bzero(q, sizeof q);
	explicit_bzero(dp, sizeof dp);
	return private;
}

static CK_OBJECT_HANDLE __attribute__((noinline)) generate_ec(CK_BBOOL token, CK_OBJECT_HANDLE *public)
{
	CK_MECHANISM generate = {CKM_EC_KEY_PAIR_GEN, NULL, 0};
	CK_BYTE p256[] = {6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7};
	static unsigned char d[32];
	CK_OBJECT_HANDLE private;
	CK_ATTRIBUTE publics[] = {{CKA_EC_PARAMS, p256, sizeof p256}};
	CK_ATTRIBUTE privates[] = {{CKA_TOKEN, &token, 1}, {CKA_PRIVATE, &token, 1},
				   {CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1}};
	CK_ATTRIBUTE value = {CKA_VALUE, d, sizeof d};
	OK(p11->C_GenerateKeyPair(session, &generate, publics, 1, privates, 4, public, &private));
	OK(p11->C_GetAttributeValue(session, private, &value, 1));
	CHECK(value.ulValueLen == 32);
	look_for_number("EC d", d, 32);
	explicit_bzero(d, sizeof d);
	return private;
}

/* A private key of SLH-DSA, of which two nodes are secret, or of ML-KEM, which is its seed. */
static CK_OBJECT_HANDLE __attribute__((noinline)) generate_of_set(CK_BBOOL token, CK_MECHANISM_TYPE type, CK_ULONG set,
								  CK_OBJECT_HANDLE *public)
{
	CK_MECHANISM generate = {type, NULL, 0};
	static unsigned char bytes[128];
	int hashes = type == CKM_SLH_DSA_KEY_PAIR_GEN;
	CK_OBJECT_HANDLE private;
	CK_ATTRIBUTE publics[] = {{CKA_PARAMETER_SET, &set, sizeof set}};
	CK_ATTRIBUTE privates[] = {{CKA_TOKEN, &token, 1}, {CKA_PRIVATE, &token, 1},
				   {CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1}};
	CK_ATTRIBUTE value = {hashes ? CKA_VALUE : CKA_SEED, bytes, sizeof bytes};
	OK(p11->C_GenerateKeyPair(session, &generate, publics, 1, privates, 4, public, &private));
	OK(p11->C_GetAttributeValue(session, private, &value, 1));
	CHECK(value.ulValueLen == (hashes ? 128 : 64));
	look_for(hashes ? "SLH-DSA seed" : "ML-KEM d", bytes, 32);
	look_for(hashes ? "SLH-DSA prf" : "ML-KEM z", bytes + 32, 32);
	explicit_bzero(bytes, sizeof bytes);
	return private;
}

/* Both sides of an agreement, destroyed at once. */
static void __attribute__((noinline)) agree(CK_OBJECT_HANDLE public, CK_OBJECT_HANDLE private)
{
	CK_MECHANISM kem = {CKM_ML_KEM, NULL, 0};
	static CK_BYTE ciphertext[1568];
	unsigned char bytes[32];
	CK_ULONG length = sizeof ciphertext;
	CK_ATTRIBUTE open[] = {{CKA_SENSITIVE, &no, 1}, {CKA_EXTRACTABLE, &yes, 1}}, value = {CKA_VALUE, bytes, sizeof bytes};
	CK_OBJECT_HANDLE sealed, opened;
	OK(p11->C_EncapsulateKey(session, &kem, public, open, 2, ciphertext, &length, &sealed));
	OK(p11->C_DecapsulateKey(session, &kem, private, open, 2, ciphertext, length, &opened));
	OK(p11->C_GetAttributeValue(session, opened, &value, 1));
	look_for("agreed secret", bytes, sizeof bytes);
	explicit_bzero(bytes, sizeof bytes);
	OK(p11->C_DestroyObject(session, sealed));
	OK(p11->C_DestroyObject(session, opened));
}

static void sign(CK_MECHANISM_TYPE type, CK_OBJECT_HANDLE key)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	static CK_BYTE signature[49856];
	CK_ULONG length = sizeof signature;
	OK(p11->C_SignInit(session, &mechanism, key));
	OK(p11->C_Sign(session, (CK_BYTE *)"message", 7, signature, &length));
	length = sizeof signature;
	OK(p11->C_SignInit(session, &mechanism, key));
	OK(p11->C_SignUpdate(session, (CK_BYTE *)"message", 7));
	OK(p11->C_SignFinal(session, signature, &length));
}

struct keys {
	CK_OBJECT_HANDLE aes, rsa, rsa_public, ec, ec_public, slh[2], kem, public;
};

static struct keys make(CK_BBOOL token)
{
	struct keys keys;
	keys.aes = import_aes(token);
	keys.rsa = generate_rsa(token, &keys.rsa_public);
	keys.ec = generate_ec(token, &keys.ec_public);
	use_aes(keys.aes);
	sign(CKM_SHA256_RSA_PKCS, keys.rsa);
	sign(CKM_ECDSA_SHA256, keys.ec);
	for (int shake = 0; shake < 2; shake++) {
		CK_ULONG set = shake ? CKP_SLH_DSA_SHAKE_256F : CKP_SLH_DSA_SHA2_256F;
		keys.slh[shake] = generate_of_set(token, CKM_SLH_DSA_KEY_PAIR_GEN, set, &keys.public);
		sign(CKM_SLH_DSA, keys.slh[shake]);
	}
	keys.kem = generate_of_set(token, CKM_ML_KEM_KEY_PAIR_GEN, CKP_ML_KEM_1024, &keys.public);
	agree(keys.public, keys.kem);
	return keys;
}

/* The scanner works: it finds a key of each kind while the keys are there. */
static void all_kinds_are_found(void)
{
	static const char *const kinds[] = {"AES key", "AES key schedule", "RSA p", "RSA q", "EC d",
					   "SLH-DSA seed", "SLH-DSA prf", "ML-KEM d"};
	scan(0);
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		int found = 0;
		for (int p = 0; p < pattern_count; p++)
			if (strcmp(patterns[p].what, kinds[k]) == 0) found += patterns[p].found;
		if (found == 0) FAIL("no %s is found although it is there", kinds[k]);
	}
}

static void destroy(struct keys keys)
{
	OK(p11->C_DestroyObject(session, keys.aes));
	OK(p11->C_DestroyObject(session, keys.rsa));
	OK(p11->C_DestroyObject(session, keys.ec));
	for (int shake = 0; shake < 2; shake++) OK(p11->C_DestroyObject(session, keys.slh[shake]));
	OK(p11->C_DestroyObject(session, keys.kem));
}

static int gone(const char *when)
{
	int found = scan(1);
	printf("%d copies after %s\n", found, when);
	return found;
}

int main(void)
{
	struct keys keys;
	int left = 0;
	alarm(280);
	session = begin_as_user();

	keys = make(CK_FALSE);
	all_kinds_are_found();
	destroy(keys);
	left += gone("destroying session objects");

	pattern_count = 0;
	keys = make(CK_TRUE);
	all_kinds_are_found();
	destroy(keys);
	left += gone("destroying token objects");

	pattern_count = 0;
	make(CK_TRUE);
	OK(p11->C_Logout(session));
	left += gone("logout");

	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	make(CK_FALSE);
	make(CK_TRUE);
	OK(p11->C_Finalize(NULL));
	left += gone("finalize");
	return left > 0;
}
