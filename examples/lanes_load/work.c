/* SPDX-License-Identifier: Apache-2.0 */
/* The operations, through the module. */
#include "load.h"
#include <dlfcn.h>

static const struct operation operations[] = {
	{"rsa1024-sign", SIGN, CKM_SHA256_RSA_PKCS, RSA, 1024, 0, NULL, 32},
	{"rsa2048-sign", SIGN, CKM_SHA256_RSA_PKCS, RSA, 2048, 0, NULL, 32},
	{"rsa3072-sign", SIGN, CKM_SHA256_RSA_PKCS, RSA, 3072, 0, NULL, 32},
	{"rsa4096-sign", SIGN, CKM_SHA256_RSA_PKCS, RSA, 4096, 0, NULL, 32},
	{"rsa2048-verify", VERIFY, CKM_SHA256_RSA_PKCS, RSA, 2048, 0, NULL, 32},
	{"sect233k1-sign", SIGN, CKM_ECDSA, EC, 0, 0, "sect233k1", 32},
	{"sect233k1-ecdh", DERIVE, CKM_ECDH1_DERIVE, EC, 0, 0, "sect233k1", 32},
	{"sect571r1-sign", SIGN, CKM_ECDSA, EC, 0, 0, "sect571r1", 32},
	{"sect571r1-ecdh", DERIVE, CKM_ECDH1_DERIVE, EC, 0, 0, "sect571r1", 32},
	{"p256-sign", SIGN, CKM_ECDSA, EC, 0, 0, "P-256", 32},
	{"p256-verify", VERIFY, CKM_ECDSA, EC, 0, 0, "P-256", 32},
	{"p256-ecdh", DERIVE, CKM_ECDH1_DERIVE, EC, 0, 0, "P-256", 32},
	{"p384-sign", SIGN, CKM_ECDSA, EC, 0, 0, "P-384", 48},
	{"x25519", DERIVE, CKM_ECDH1_DERIVE, MONTGOMERY, 0, 0, "X25519", 32},
	{"ed25519-sign", SIGN, CKM_EDDSA, EDWARDS, 0, 0, "ED25519", 32},
	{"ed25519-verify", VERIFY, CKM_EDDSA, EDWARDS, 0, 0, "ED25519", 32},
	{"ml-dsa-65-sign", SIGN, CKM_ML_DSA, LATTICE, CKP_ML_DSA_65, 0, NULL, 32},
	{"aes128-cbc-encrypt-8k", ENCRYPT, CKM_AES_CBC, SECRET, 16, CKK_AES, "AES-128-CBC", 8192},
	{"aes128-ctr-8k", ENCRYPT, CKM_AES_CTR, SECRET, 16, CKK_AES, "AES-128-CTR", 8192},
	{"aes128-cbc-decrypt-8k", DECRYPT, CKM_AES_CBC, SECRET, 16, CKK_AES, "AES-128-CBC", 8192},
	{"chacha20-poly1305-8k", ENCRYPT, CKM_CHACHA20_POLY1305, SECRET, 32, CKK_CHACHA20, "ChaCha20-Poly1305", 8192},
	{"md5-8k", DIGEST, CKM_MD5, KEYLESS, 0, 0, "MD5", 8192},
	{"sha1-8k", DIGEST, CKM_SHA_1, KEYLESS, 0, 0, "SHA1", 8192},
	{"sha256-8k", DIGEST, CKM_SHA256, KEYLESS, 0, 0, "SHA256", 8192},
	{"sha512-8k", DIGEST, CKM_SHA512, KEYLESS, 0, 0, "SHA512", 8192},
	{"sha3-256-8k", DIGEST, CKM_SHA3_256, KEYLESS, 0, 0, "SHA3-256", 8192},
	{"hmac-sha256-8k", SIGN, CKM_SHA256_HMAC, SECRET, 32, CKK_GENERIC_SECRET, "SHA256", 8192},
	{"rc4-8k", ENCRYPT, CKM_RC4, SECRET, 16, CKK_RC4, "RC4", 8192},
	{"3des-cbc-encrypt-8k", ENCRYPT, CKM_DES3_CBC, SECRET, 24, CKK_DES3, "DES-EDE3-CBC", 8192},
};

CK_FUNCTION_LIST_3_2 *p11;
const struct operation *operation;
struct key keys[MOST_KEYS];
CK_ULONG kept;

static CK_SLOT_ID token_slot;
static CK_SESSION_HANDLE keeper;
static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;

#define COUNT (sizeof(operations) / sizeof(operations[0]))

const struct operation *operation_named(const char *name)
{
	for (size_t at = 0; at < COUNT; at++)
		if (strcmp(operations[at].name, name) == 0) return &operations[at];
	die("no such operation", 0);
}

void list_operations(void)
{
	for (size_t at = 0; at < COUNT; at++) printf("%s\n", operations[at].name);
}

void load_module(const char *path)
{
	CK_RV (*get)(CK_UTF8CHAR *, CK_VERSION *, CK_INTERFACE **, CK_FLAGS);
	CK_INTERFACE *interface;
	CK_VERSION version = {3, 2};
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) die("the module cannot be loaded", 0);
	*(void **)&get = dlsym(library, "C_GetInterface");
	if (get == NULL) die("the module has no C_GetInterface", 0);
	OK(get((CK_UTF8CHAR *)"PKCS 11", &version, &interface, 0));
	p11 = interface->pFunctionList;
	CK_C_INITIALIZE_ARGS arguments = {.flags = CKF_OS_LOCKING_OK};
	CK_ULONG count = 1;
	OK(p11->C_Initialize(&arguments));
	CK_RV rv = p11->C_GetSlotList(CK_FALSE, &token_slot, &count);
	if (rv != CKR_OK && rv != CKR_BUFFER_TOO_SMALL) die("C_GetSlotList", rv);
	OK(p11->C_OpenSession(token_slot, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &keeper));
}

/* Why the module does not do the operation; NULL when it does. */
const char *not_served(void)
{
	static char why[64];
	static const CK_FLAGS flags[] = {[SIGN] = CKF_SIGN,	  [VERIFY] = CKF_VERIFY,
					 [DERIVE] = CKF_DERIVE,	  [ENCRYPT] = CKF_ENCRYPT,
					 [DECRYPT] = CKF_DECRYPT, [DIGEST] = CKF_DIGEST};
	CK_MECHANISM_INFO info;
	CK_RV rv = p11->C_GetMechanismInfo(token_slot, operation->mechanism, &info);
	if (rv == CKR_OK && (info.flags & flags[operation->kind])) return NULL;
	snprintf(why, sizeof(why), "C_GetMechanismInfo: 0x%lx", (unsigned long)rv);
	return why;
}

static void *attribute(CK_OBJECT_HANDLE object, CK_ATTRIBUTE_TYPE type, CK_ULONG *length)
{
	CK_ATTRIBUTE wanted = {type, NULL, 0};
	OK(p11->C_GetAttributeValue(keeper, object, &wanted, 1));
	wanted.pValue = malloc(wanted.ulValueLen + 1);
	OK(p11->C_GetAttributeValue(keeper, object, &wanted, 1));
	*length = wanted.ulValueLen;
	return wanted.pValue;
}

static void make_pair(struct key *key)
{
	static CK_BYTE exponent[] = {1, 0, 1};
	static const CK_MECHANISM_TYPE makes[] = {[RSA] = CKM_RSA_PKCS_KEY_PAIR_GEN,
						  [EC] = CKM_EC_KEY_PAIR_GEN,
						  [EDWARDS] = CKM_EC_EDWARDS_KEY_PAIR_GEN,
						  [MONTGOMERY] = CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
						  [LATTICE] = CKM_ML_DSA_KEY_PAIR_GEN};
	CK_MECHANISM mechanism = {makes[operation->family], NULL, 0};
	CK_ULONG bits = operation->number, oid_length = 0;
	const CK_BYTE *oid = operation->detail ? curve_oid(operation->detail, &oid_length) : NULL;
	CK_ATTRIBUTE rsa[] = {{CKA_MODULUS_BITS, &bits, sizeof(bits)},
			      {CKA_PUBLIC_EXPONENT, exponent, sizeof(exponent)}};
	CK_ATTRIBUTE curve[] = {{CKA_EC_PARAMS, (void *)oid, oid_length}};
	CK_ATTRIBUTE set[] = {{CKA_PARAMETER_SET, &bits, sizeof(bits)}};
	CK_ATTRIBUTE *wanted = operation->family == RSA ? rsa : operation->family == LATTICE ? set : curve;
	CK_ATTRIBUTE private[] = {{operation->kind == DERIVE ? CKA_DERIVE : CKA_SIGN, &yes, 1},
				  {CKA_SENSITIVE, &no, 1}};
	OK(p11->C_GenerateKeyPair(keeper, &mechanism, wanted, wanted == rsa ? 2 : 1, private, 2, &key->public,
				  &key->private));
	CK_ULONG length;
	CK_BYTE *info = attribute(key->public, CKA_PUBLIC_KEY_INFO, &length);
	key->openssl = public_key_of(info, length);
	free(info);
}

static void make_secret(struct key *key)
{
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = operation->type;
	OK(p11->C_GenerateRandom(keeper, key->secret, operation->number));
	/* DES keys have odd parity in every byte. */
	for (CK_ULONG at = 0; at < operation->number && type == CKK_DES3; at++)
		key->secret[at] ^= (CK_BYTE)!__builtin_parity(key->secret[at]);
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof(class)},
		{CKA_KEY_TYPE, &type, sizeof(type)},
		{CKA_VALUE, key->secret, operation->number},
		{operation->kind == SIGN      ? CKA_SIGN
		 : operation->kind == ENCRYPT ? CKA_ENCRYPT
					      : CKA_DECRYPT,
		 &yes, 1},
	};
	OK(p11->C_CreateObject(keeper, template, 4, &key->private));
}

/* At least so many keys, and with a key agreement what they agree upon with each peer. */
void make_keys(int count)
{
	static int made;
	for (; made < count; made++) {
		struct key *key = &keys[made];
		if (operation->family == SECRET) make_secret(key);
		if (operation->family < SECRET) make_pair(key);
		for (int peer = 0; peer < PEERS && operation->kind == DERIVE; peer++)
			kept = shared_with(peer, key->openssl, key->shared[peer]);
	}
}

void open_slot(struct slot *slot, int number, struct key *key, int asynchronous)
{
	CK_FLAGS flags = CKF_SERIAL_SESSION | (asynchronous ? CKF_ASYNC_SESSION : 0);
	OK(p11->C_OpenSession(token_slot, flags, NULL, NULL, &slot->session));
	slot->key = key;
	/* Whole lines of the cache, the output half a page further than the input; no two slots at the same place of a page, where
	 * they would compete for the same lines. */
	slot->room = aligned_alloc(4096, 6 * 4096);
	if (slot->room == NULL) die("memory", 0);
	memset(slot->room, 0x5a, 6 * 4096);
	slot->message = slot->room + number * 5 * 64 % 4096;
	slot->output = slot->message + 2 * 4096 + 2048;
	if (operation->kind != VERIFY) return;
	CK_MECHANISM mechanism = {operation->mechanism, NULL, 0};
	slot->signature_length = sizeof(slot->signature);
	OK(p11->C_SignInit(keeper, &mechanism, key->private));
	OK(p11->C_Sign(keeper, slot->message, operation->message, slot->signature, &slot->signature_length));
	if (!signature_verifies(key->openssl, slot->message, operation->message, slot->signature,
				slot->signature_length))
		die("wrong result: a signature to be verified does not verify", 0);
}

void close_slot(struct slot *slot)
{
	OK(p11->C_CloseSession(slot->session));
	free(slot->room);
}

/* Every message of a run is another one, by its first bytes. */
void number_message(CK_BYTE *message, uint64_t window, uint64_t at)
{
	uint64_t numbers[2] = {window, at};
	memcpy(message, numbers, sizeof(numbers));
}

static CK_RV sign(struct slot *slot, CK_MECHANISM *mechanism)
{
	CK_RV rv = p11->C_SignInit(slot->session, mechanism, slot->key->private);
	if (rv != CKR_OK) return rv;
	return p11->C_Sign(slot->session, slot->message, operation->message, slot->output, &slot->length);
}

static CK_RV verify(struct slot *slot, CK_MECHANISM *mechanism)
{
	CK_RV rv = p11->C_VerifyInit(slot->session, mechanism, slot->key->public);
	if (rv != CKR_OK) return rv;
	memcpy(slot->output, slot->signature, slot->signature_length);
	slot->output[slot->signature_length / 2 + 8] ^= slot->at % BAD_EVERY == BAD_EVERY - 1;
	return p11->C_Verify(slot->session, slot->message, operation->message, slot->output,
			     slot->signature_length);
}

static CK_RV encrypt(struct slot *slot, CK_MECHANISM *mechanism)
{
	CK_RV rv = p11->C_EncryptInit(slot->session, mechanism, slot->key->private);
	if (rv != CKR_OK) return rv;
	return p11->C_Encrypt(slot->session, slot->message, operation->message, slot->output, &slot->length);
}

static CK_RV decrypt(struct slot *slot, CK_MECHANISM *mechanism)
{
	CK_RV rv = p11->C_DecryptInit(slot->session, mechanism, slot->key->private);
	if (rv != CKR_OK) return rv;
	return p11->C_Decrypt(slot->session, slot->message, operation->message, slot->output, &slot->length);
}

static CK_RV digest(struct slot *slot, CK_MECHANISM *mechanism)
{
	CK_RV rv = p11->C_DigestInit(slot->session, mechanism);
	if (rv != CKR_OK) return rv;
	return p11->C_Digest(slot->session, slot->message, operation->message, slot->output, &slot->length);
}

/* A key is what comes out: its value is read and the object destroyed, in every run alike. */
static CK_RV take(struct slot *slot, CK_OBJECT_HANDLE secret)
{
	CK_ATTRIBUTE value = {CKA_VALUE, slot->output, 80};
	CK_RV rv = p11->C_GetAttributeValue(slot->session, secret, &value, 1);
	slot->length = value.ulValueLen;
	CK_RV destroyed = p11->C_DestroyObject(slot->session, secret);
	return rv == CKR_OK ? destroyed : rv;
}

static CK_RV derive(struct slot *slot)
{
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_GENERIC_SECRET;
	CK_ULONG length;
	CK_BYTE *point = (CK_BYTE *)peer_point((int)(slot->at % PEERS), &length);
	CK_ECDH1_DERIVE_PARAMS agree = {CKD_NULL, 0, NULL, length, point};
	CK_MECHANISM mechanism = {operation->mechanism, &agree, sizeof(agree)};
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)},
				   {CKA_KEY_TYPE, &type, sizeof(type)},
				   {CKA_SENSITIVE, &no, 1},
				   {CKA_EXTRACTABLE, &yes, 1}};
	CK_OBJECT_HANDLE secret;
	CK_RV rv = p11->C_DeriveKey(slot->session, &mechanism, slot->key->private, template, 4, &secret);
	return rv == CKR_OK ? take(slot, secret) : rv;
}

/* Starts the operation; in an ordinary session it is over then, in an asynchronous one perhaps CKR_PENDING. */
CK_RV begin(struct slot *slot, uint64_t window)
{
	CK_AES_CTR_PARAMS counter = {.ulCounterBits = 128};
	CK_SALSA20_CHACHA20_POLY1305_PARAMS sealed = {.pNonce = slot->iv, .ulNonceLen = 12};
	CK_MECHANISM mechanism = {operation->mechanism, NULL, 0};
	slot->length = 8192 + TAIL;
	if (operation->kind != VERIFY) number_message(slot->message, window, slot->at);
	number_message(slot->iv, window, slot->at);
	if (operation->mechanism == CKM_AES_CTR) {
		memcpy(counter.cb, slot->iv, 16);
		mechanism.pParameter = &counter;
		mechanism.ulParameterLen = sizeof(counter);
	} else if (operation->mechanism == CKM_CHACHA20_POLY1305) {
		mechanism.pParameter = &sealed;
		mechanism.ulParameterLen = sizeof(sealed);
	} else if (operation->mechanism == CKM_AES_CBC || operation->mechanism == CKM_DES3_CBC) {
		mechanism.pParameter = slot->iv;
		mechanism.ulParameterLen = operation->mechanism == CKM_AES_CBC ? 16 : 8;
	}
	switch (operation->kind) {
	case SIGN: return sign(slot, &mechanism);
	case VERIFY: return verify(slot, &mechanism);
	case ENCRYPT: return encrypt(slot, &mechanism);
	case DECRYPT: return decrypt(slot, &mechanism);
	case DIGEST: return digest(slot, &mechanism);
	case DERIVE: return derive(slot);
	}
	return CKR_FUNCTION_FAILED;
}

/* Fetches the result of a pending operation. */
CK_RV complete(struct slot *slot)
{
	static const char *const functions[] = {[SIGN] = "C_Sign",	 [VERIFY] = "C_Verify",
						[ENCRYPT] = "C_Encrypt", [DECRYPT] = "C_Decrypt",
						[DIGEST] = "C_Digest",	 [DERIVE] = "C_DeriveKey"};
	CK_ASYNC_DATA result = {0, NULL, 0, 0, 0};
	CK_UTF8CHAR *function = (CK_UTF8CHAR *)functions[operation->kind];
	CK_RV rv = p11->C_AsyncComplete(slot->session, function,
					operation->kind == VERIFY ? NULL : &result);
	if (rv != CKR_OK || operation->kind == VERIFY) return rv;
	if (operation->kind == DERIVE) return take(slot, result.hObject);
	slot->length = result.ulValue;
	return rv;
}

/* What is remembered of a result: all of it, the end of a ciphertext, which may be its tag, the answer of a verification. */
void keep(const struct slot *slot, CK_RV rv, CK_BYTE *to)
{
	if (operation->kind == VERIFY)
		to[0] = rv == CKR_OK;
	else if (operation->kind == ENCRYPT || operation->kind == DECRYPT)
		memcpy(to, slot->output + slot->length - TAIL, TAIL);
	else
		memcpy(to, slot->output, kept);
}

/* Of ML-DSA, which OpenSSL does not have before 3.5: the module verifies, in which the lanes have no part. */
static int module_verifies(const struct key *key, CK_BYTE *message, const CK_BYTE *signature)
{
	static __thread CK_SESSION_HANDLE session;
	CK_MECHANISM mechanism = {operation->mechanism, NULL, 0};
	if (session == 0) OK(p11->C_OpenSession(token_slot, CKF_SERIAL_SESSION, NULL, NULL, &session));
	OK(p11->C_VerifyInit(session, &mechanism, key->public));
	return p11->C_Verify(session, message, operation->message, (CK_BYTE *)signature, kept) == CKR_OK;
}

/* Compares what was kept with OpenSSL's word. `scratch`: two messages long, the first of them as in a slot. */
int is_right(const struct key *key, CK_BYTE *scratch, uint64_t window, uint64_t at, const CK_BYTE *result)
{
	CK_BYTE iv[16], *plain = scratch + operation->message;
	if (operation->kind == VERIFY) return result[0] == (at % BAD_EVERY != BAD_EVERY - 1);
	if (operation->kind == DERIVE) return memcmp(result, key->shared[at % PEERS], kept) == 0;
	number_message(scratch, window, at);
	number_message(iv, window, at);
	if (operation->kind == SIGN && operation->family != SECRET && key->openssl == NULL)
		return module_verifies(key, scratch, result);
	if (operation->kind == SIGN && operation->family != SECRET)
		return signature_verifies(key->openssl, scratch, operation->message, result, kept);
	CK_ULONG length = plain_result(key, scratch, iv, plain);
	return memcmp(result, plain + length - kept, kept) == 0;
}

/* The whole of the last ciphertext, of which `keep` remembers the end only. */
int whole_is_right(const struct slot *slot)
{
	static CK_BYTE plain[8192 + TAIL];
	if (operation->kind != ENCRYPT && operation->kind != DECRYPT) return 1;
	CK_ULONG length = plain_result(slot->key, slot->message, slot->iv, plain);
	return length == slot->length && memcmp(plain, slot->output, length) == 0;
}
