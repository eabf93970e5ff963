/* SPDX-License-Identifier: Apache-2.0 */
/* The judge: OpenSSL, loaded when the program runs, so that neither its headers nor its library are needed to compile. The
 * prototypes are those of its manual pages. */
#include "load.h"
#include <dlfcn.h>

#define FUNCTIONS(X) \
	X(const char *, OpenSSL_version, (int)) \
	X(void *, d2i_PUBKEY, (void **, const unsigned char **, long)) \
	X(void *, EVP_PKEY_CTX_new, (void *, void *)) \
	X(void *, EVP_PKEY_CTX_new_from_name, (void *, const char *, const char *)) \
	X(void, EVP_PKEY_CTX_free, (void *)) \
	X(int, EVP_PKEY_CTX_set_group_name, (void *, const char *)) \
	X(int, EVP_PKEY_keygen_init, (void *)) \
	X(int, EVP_PKEY_generate, (void *, void **)) \
	X(size_t, EVP_PKEY_get1_encoded_public_key, (void *, unsigned char **)) \
	X(int, EVP_PKEY_sign_init, (void *)) \
	X(int, EVP_PKEY_sign, (void *, unsigned char *, size_t *, const unsigned char *, size_t)) \
	X(int, EVP_PKEY_verify_init, (void *)) \
	X(int, EVP_PKEY_verify, \
	  (void *, const unsigned char *, size_t, const unsigned char *, size_t)) \
	X(int, EVP_PKEY_derive_init, (void *)) \
	X(int, EVP_PKEY_derive_set_peer, (void *, void *)) \
	X(int, EVP_PKEY_derive, (void *, unsigned char *, size_t *)) \
	X(void *, EVP_MD_CTX_new, (void)) \
	X(void, EVP_MD_CTX_free, (void *)) \
	X(int, EVP_DigestVerifyInit, (void *, void **, const void *, void *, void *)) \
	X(int, EVP_DigestVerify, \
	  (void *, const unsigned char *, size_t, const unsigned char *, size_t)) \
	X(const void *, EVP_get_digestbyname, (const char *)) \
	X(int, EVP_Digest, \
	  (const void *, size_t, unsigned char *, unsigned *, const void *, void *)) \
	X(unsigned char *, HMAC, \
	  (const void *, const void *, int, const unsigned char *, size_t, unsigned char *, unsigned *)) \
	X(const void *, EVP_get_cipherbyname, (const char *)) \
	X(void *, EVP_CIPHER_CTX_new, (void)) \
	X(void, EVP_CIPHER_CTX_free, (void *)) \
	X(int, EVP_CipherInit_ex, \
	  (void *, const void *, void *, const unsigned char *, const unsigned char *, int)) \
	X(int, EVP_CIPHER_CTX_set_padding, (void *, int)) \
	X(int, EVP_CipherUpdate, (void *, unsigned char *, int *, const unsigned char *, int)) \
	X(int, EVP_CipherFinal_ex, (void *, unsigned char *, int *)) \
	X(int, EVP_CIPHER_CTX_ctrl, (void *, int, int, void *)) \
	X(void, RC4_set_key, (void *, int, const unsigned char *)) \
	X(void, RC4, (void *, size_t, const unsigned char *, unsigned char *))

#define DECLARE(result, name, arguments) static result(*name) arguments;
FUNCTIONS(DECLARE)

static void *find(void *library, const char *name)
{
	void *found = dlsym(library, name);
	if (found == NULL) die("libcrypto.so.3 lacks a function", 0);
	return found;
}

void load_openssl(void)
{
	void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) die("libcrypto.so.3 cannot be loaded: install OpenSSL 3", 0);
#define FIND(result, name, arguments) *(void **)&name = find(library, #name);
	FUNCTIONS(FIND)
}

const char *openssl_version(void)
{
	return OpenSSL_version(0);
}

/* Curves: object identifiers as CKA_EC_PARAMS has them. */
static const struct {
	const char *name;
	CK_ULONG length;
	CK_BYTE oid[10];
} curves[] = {
	{"sect233k1", 7, {6, 5, 0x2b, 0x81, 4, 0, 26}},
	{"sect571r1", 7, {6, 5, 0x2b, 0x81, 4, 0, 39}},
	{"P-256", 10, {6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7}},
	{"P-384", 7, {6, 5, 0x2b, 0x81, 4, 0, 34}},
	{"ED25519", 5, {6, 3, 0x2b, 0x65, 0x70}},
	{"X25519", 5, {6, 3, 0x2b, 0x65, 0x6e}},
};

const CK_BYTE *curve_oid(const char *name, CK_ULONG *length)
{
	for (size_t at = 0; at < sizeof(curves) / sizeof(curves[0]); at++) {
		if (strcmp(curves[at].name, name) != 0) continue;
		*length = curves[at].length;
		return curves[at].oid;
	}
	die("an unknown curve", 0);
}

/* A value of ASN.1 in DER; gives the length of the whole. */
static CK_ULONG der(CK_BYTE tag, const CK_BYTE *content, CK_ULONG length, CK_BYTE *out)
{
	CK_ULONG head = 0;
	out[head++] = tag;
	if (length > 127) out[head++] = length > 255 ? 0x82 : 0x81;
	if (length > 255) out[head++] = (CK_BYTE)(length >> 8);
	out[head++] = (CK_BYTE)length;
	memmove(out + head, content, length);
	return head + length;
}

void *public_key_of(const CK_BYTE *info, CK_ULONG length)
{
	const unsigned char *at = info;
	void *key = d2i_PUBKEY(NULL, &at, (long)length);
	int may_lack = operation && operation->family == LATTICE;
	if (key == NULL && !may_lack) die("OpenSSL does not take the module's CKA_PUBLIC_KEY_INFO", 0);
	return key;
}

/* SubjectPublicKeyInfo (RFC 5480 §2) around a point. */
void *public_key_on(const char *curve, const CK_BYTE *point, CK_ULONG length)
{
	static const CK_BYTE ec[] = {6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1};
	CK_BYTE algorithm[40], bits[256], info[400], whole[420];
	CK_ULONG oid_length;
	const CK_BYTE *oid = curve_oid(curve, &oid_length);
	memcpy(algorithm, ec, sizeof(ec));
	memcpy(algorithm + sizeof(ec), oid, oid_length);
	CK_ULONG used = der(0x30, algorithm, sizeof(ec) + oid_length, info);
	bits[0] = 0;
	memcpy(bits + 1, point, length);
	used += der(3, bits, length + 1, info + used);
	return public_key_of(whole, der(0x30, info, used, whole));
}

static void *generate(const char *curve)
{
	void *key = NULL;
	int named = strcmp(curve, "X25519") != 0;
	void *context = EVP_PKEY_CTX_new_from_name(NULL, named ? "EC" : curve, NULL);
	int good = context && EVP_PKEY_keygen_init(context) == 1 &&
		   (!named || EVP_PKEY_CTX_set_group_name(context, curve) == 1) &&
		   EVP_PKEY_generate(context, &key) == 1;
	EVP_PKEY_CTX_free(context);
	if (!good) die("OpenSSL makes no key on the curve", 0);
	return key;
}

static struct {
	void *key;
	unsigned char *point;
	CK_ULONG length;
} peers[PEERS];

void make_peers(void)
{
	for (int at = 0; at < PEERS; at++) {
		peers[at].key = generate(operation->detail);
		peers[at].length = EVP_PKEY_get1_encoded_public_key(peers[at].key, &peers[at].point);
		if (peers[at].length == 0) die("OpenSSL shows no public key", 0);
	}
}

const CK_BYTE *peer_point(int peer, CK_ULONG *length)
{
	*length = peers[peer].length;
	return peers[peer].point;
}

static CK_ULONG derive(void *own, void *other, CK_BYTE out[80])
{
	size_t length = 80;
	void *context = EVP_PKEY_CTX_new(own, NULL);
	int good = context && EVP_PKEY_derive_init(context) == 1 &&
		   EVP_PKEY_derive_set_peer(context, other) == 1 &&
		   EVP_PKEY_derive(context, out, &length) == 1;
	EVP_PKEY_CTX_free(context);
	if (!good) die("OpenSSL derives no secret", 0);
	return length;
}

CK_ULONG shared_with(int peer, void *key, CK_BYTE out[80])
{
	return derive(peers[peer].key, key, out);
}

/* Half of a signature as an INTEGER, which has no zeros in front but one where it would be negative. */
static CK_ULONG integer(const CK_BYTE *half, CK_ULONG length, CK_BYTE *out)
{
	CK_BYTE number[80];
	while (length > 1 && half[0] == 0) half++, length--;
	CK_ULONG zero = half[0] > 127;
	number[0] = 0;
	memcpy(number + zero, half, length);
	return der(2, number, length + zero, out);
}

int ecdsa_verifies(void *key, const CK_BYTE *digest, CK_ULONG length, const CK_BYTE *signature,
		   CK_ULONG signature_length)
{
	CK_BYTE pair[200], whole[220];
	CK_ULONG half = signature_length / 2, used = integer(signature, half, pair);
	used += integer(signature + half, half, pair + used);
	used = der(0x30, pair, used, whole);
	void *context = EVP_PKEY_CTX_new(key, NULL);
	int good = context && EVP_PKEY_verify_init(context) == 1 &&
		   EVP_PKEY_verify(context, whole, used, digest, length) == 1;
	EVP_PKEY_CTX_free(context);
	return good;
}

/* RSA and Ed25519: over the message itself. */
static int message_verifies(void *key, const void *hash, const CK_BYTE *message, CK_ULONG length,
			    const CK_BYTE *signature, CK_ULONG signature_length)
{
	void *context = EVP_MD_CTX_new();
	int good = context && EVP_DigestVerifyInit(context, NULL, hash, NULL, key) == 1 &&
		   EVP_DigestVerify(context, signature, signature_length, message, length) == 1;
	EVP_MD_CTX_free(context);
	return good;
}

int signature_verifies(void *key, const CK_BYTE *message, CK_ULONG length, const CK_BYTE *signature,
		       CK_ULONG signature_length)
{
	if (operation->family == EC)
		return ecdsa_verifies(key, message, length, signature, signature_length);
	const void *hash = operation->family == RSA ? EVP_get_digestbyname("SHA256") : NULL;
	return message_verifies(key, hash, message, length, signature, signature_length);
}

static CK_ULONG cipher(const struct key *key, const CK_BYTE *message, const CK_BYTE *iv, CK_BYTE *out)
{
	int length = 0, last = 0, tag = operation->mechanism == CKM_CHACHA20_POLY1305 ? TAIL : 0;
	void *context = EVP_CIPHER_CTX_new();
	const void *type = EVP_get_cipherbyname(operation->detail);
	int good = context && type &&
		   EVP_CipherInit_ex(context, type, NULL, key->secret, iv, operation->kind == ENCRYPT) == 1 &&
		   EVP_CIPHER_CTX_set_padding(context, 0) == 1 &&
		   EVP_CipherUpdate(context, out, &length, message, (int)operation->message) == 1;
	/* EVP_CTRL_AEAD_GET_TAG */
	good = good && (tag == 0 || (EVP_CipherFinal_ex(context, out + length, &last) == 1 &&
				     EVP_CIPHER_CTX_ctrl(context, 0x10, tag, out + length) == 1));
	EVP_CIPHER_CTX_free(context);
	if (!good) die("OpenSSL has no such cipher", 0);
	return (CK_ULONG)(length + tag);
}

static CK_ULONG rc4(const struct key *key, const CK_BYTE *message, CK_BYTE *out)
{
	unsigned state[258];
	RC4_set_key(state, (int)operation->number, key->secret);
	RC4(state, operation->message, message, out);
	return operation->message;
}

/* What a cipher, a digest or a MAC should give. */
CK_ULONG plain_result(const struct key *key, const CK_BYTE *message, const CK_BYTE iv[16], CK_BYTE *out)
{
	unsigned length = 0;
	if (operation->mechanism == CKM_RC4) return rc4(key, message, out);
	if (operation->kind == ENCRYPT || operation->kind == DECRYPT) return cipher(key, message, iv, out);
	const void *hash = EVP_get_digestbyname(operation->detail);
	int good = operation->kind == DIGEST
			   ? EVP_Digest(message, operation->message, out, &length, hash, NULL) == 1
			   : HMAC(hash, key->secret, (int)operation->number, message, operation->message,
				  out, &length) != NULL;
	if (!good) die("OpenSSL does not hash", 0);
	return length;
}

static double thread_time(void)
{
	struct timespec at;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
	return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* What is timed, made anew when something else is asked for. */
static struct {
	char name[40];
	void *context;
	int signs;
} timed;

static void prepare(const char *curve, const char *what)
{
	char name[40];
	snprintf(name, sizeof(name), "%s %s", curve, what);
	if (strcmp(name, timed.name) == 0) return;
	void *own = generate(curve);
	memcpy(timed.name, name, sizeof(name));
	timed.signs = strcmp(what, "sign") == 0;
	EVP_PKEY_CTX_free(timed.context);
	timed.context = EVP_PKEY_CTX_new(own, NULL);
	int good = timed.signs ? EVP_PKEY_sign_init(timed.context) == 1
			       : EVP_PKEY_derive_init(timed.context) == 1 &&
					 EVP_PKEY_derive_set_peer(timed.context, generate(curve)) == 1;
	if (!good) die("OpenSSL cannot be timed on the curve", 0);
}

/* CPU nanoseconds of one signature or one shared secret on a curve, one at a time with everything prepared. */
double time_openssl(const char *curve, const char *what, double seconds)
{
	static const unsigned char digest[32] = "a digest of thirty-two bytes ...";
	prepare(curve, what);
	double start = thread_time(), spent = 0;
	long calls = 0;
	for (; spent < seconds || calls == 0; calls++) {
		unsigned char out[200];
		size_t length = sizeof(out);
		int good = timed.signs ? EVP_PKEY_sign(timed.context, out, &length, digest, sizeof(digest)) == 1
				       : EVP_PKEY_derive(timed.context, out, &length) == 1;
		if (!good) die("OpenSSL cannot be timed on the curve", 0);
		spent = thread_time() - start;
	}
	return 1e9 * spent / (double)calls;
}
