/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads at the same time: each gets what one thread alone gets, and what is wrong with one's input is told to
 * that one and to no other. */
#include "common.h"

#define THREADS 32
#define ROUNDS 12
#define PEERS 9
#define LONGEST 48

struct curve {
	const char *name;
	CK_MECHANISM_TYPE generate, derive;
	CK_BYTE oid[12];
	CK_ULONG oid_length, length;
};

static const struct curve curves[] = {
	{"P-256", CKM_EC_KEY_PAIR_GEN, CKM_ECDH1_DERIVE,
	 {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07}, 10, 32},
	{"P-384", CKM_EC_KEY_PAIR_GEN, CKM_ECDH1_COFACTOR_DERIVE,
	 {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22}, 7, 48},
	{"P-521", CKM_EC_KEY_PAIR_GEN, CKM_ECDH1_DERIVE,
	 {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23}, 7, 48},
	{"K-233", CKM_EC_KEY_PAIR_GEN, CKM_ECDH1_DERIVE,
	 {0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x1a}, 7, 30},
	{"X25519", CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKM_ECDH1_DERIVE,
	 {0x06, 0x03, 0x2b, 0x65, 0x6e}, 5, 32},
};

/* A point, and what comes of it: every third peer brings a point that is none. */
struct peer {
	CK_BYTE point[160];
	CK_ULONG length;
	CK_RV rv;
	CK_BYTE secret[LONGEST];
};

static const struct curve *curve;
static CK_OBJECT_HANDLE own;
static struct peer peers[PEERS];
static pthread_barrier_t barrier;

static CK_OBJECT_HANDLE make_pair(CK_SESSION_HANDLE session, struct peer *peer)
{
	CK_MECHANISM mechanism = {curve->generate, NULL, 0};
	CK_ATTRIBUTE template[] = {{CKA_EC_PARAMS, (void *)curve->oid, curve->oid_length}};
	CK_OBJECT_HANDLE public, private;
	OK(p11->C_GenerateKeyPair(session, &mechanism, template, 1, NULL, 0, &public, &private));
	CK_ATTRIBUTE point = {CKA_EC_POINT, peer->point, sizeof(peer->point)};
	OK(p11->C_GetAttributeValue(session, public, &point, 1));
	peer->length = point.ulValueLen;
	return private;
}

/* Half of the time through a derivation function. */
static CK_RV derive(CK_SESSION_HANDLE session, struct peer *peer, CK_EC_KDF_TYPE kdf, CK_BYTE *secret)
{
	CK_ECDH1_DERIVE_PARAMS params = {kdf, 0, NULL, peer->length, peer->point};
	CK_MECHANISM mechanism = {curve->derive, &params, sizeof(params)};
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_GENERIC_SECRET;
	CK_ULONG length = curve->length;
	CK_OBJECT_HANDLE key;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof(class)}, {CKA_KEY_TYPE, &type, sizeof(type)},
		{CKA_VALUE_LEN, &length, sizeof(length)}, {CKA_SENSITIVE, &no, 1},
		{CKA_EXTRACTABLE, &yes, 1},
	};
	CK_RV rv = p11->C_DeriveKey(session, &mechanism, own, template, 5, &key);
	if (rv != CKR_OK) return rv;
	CK_ATTRIBUTE value = {CKA_VALUE, secret, curve->length};
	OK(p11->C_GetAttributeValue(session, key, &value, 1));
	OK(p11->C_DestroyObject(session, key));
	return CKR_OK;
}

static CK_EC_KDF_TYPE kdf_of(int at)
{
	return at % 2 ? CKD_SHA256_KDF : CKD_NULL;
}

static void make_peers(CK_SESSION_HANDLE session)
{
	for (int at = 0; at < PEERS; at++) {
		struct peer *peer = &peers[at];
		memset(peer, 0, sizeof(*peer));
		make_pair(session, peer);
		if (at % 3 == 2 && curve->generate == CKM_EC_MONTGOMERY_KEY_PAIR_GEN)
			memset(peer->point + peer->length - 32, 0, 32); /* of small order */
		else if (at % 3 == 2)
			peer->point[peer->length - 1] ^= 1; /* off the curve */
		peer->rv = derive(session, peer, kdf_of(at), peer->secret);
		CHECK(peer->rv == (at % 3 == 2 ? CKR_MECHANISM_PARAM_INVALID : CKR_OK));
	}
}

static void *agree(void *number)
{
	CK_SESSION_HANDLE session = open_session();
	int first = (int)(intptr_t)number;
	CK_BYTE secret[LONGEST];
	pthread_barrier_wait(&barrier);
	for (int round = 0; round < ROUNDS; round++) {
		int at = (first + round) % PEERS;
		memset(secret, 0, sizeof(secret));
		EXPECT(derive(session, &peers[at], kdf_of(at), secret), peers[at].rv);
		CHECK(memcmp(secret, peers[at].secret, sizeof(secret)) == 0);
	}
	OK(p11->C_CloseSession(session));
	return NULL;
}

#define MESSAGE 20000

static CK_OBJECT_HANDLE mac_key;
static CK_MECHANISM *mac_mechanism;
static CK_BYTE message[MESSAGE + THREADS], macs[THREADS][64];
static CK_ULONG mac_length;

static void mac(CK_SESSION_HANDLE session, int at, CK_BYTE *out)
{
	CK_ULONG length = 64;
	OK(p11->C_SignInit(session, mac_mechanism, mac_key));
	OK(p11->C_Sign(session, message + at, MESSAGE, out, &length));
	CHECK(length == mac_length);
}

static CK_RV check(CK_SESSION_HANDLE session, int at, CK_BYTE *given, CK_ULONG length)
{
	OK(p11->C_VerifyInit(session, mac_mechanism, mac_key));
	return p11->C_Verify(session, message + at, MESSAGE, given, length);
}

/* Every third thread checks a changed MAC, every third one that is cut. */
static void *authenticate(void *number)
{
	CK_SESSION_HANDLE session = open_session();
	int at = (int)(intptr_t)number;
	CK_BYTE own[64];
	pthread_barrier_wait(&barrier);
	for (int round = 0; round < ROUNDS; round++) {
		mac(session, at, own);
		CHECK(memcmp(own, macs[at], mac_length) == 0);
		own[round] ^= at % 3 == 1;
		EXPECT(check(session, at, own, mac_length - (at % 3 == 2)),
		       at % 3 == 0   ? CKR_OK
		       : at % 3 == 1 ? CKR_SIGNATURE_INVALID
				     : CKR_SIGNATURE_LEN_RANGE);
	}
	OK(p11->C_CloseSession(session));
	return NULL;
}

static void run(void *(*work)(void *))
{
	pthread_t threads[THREADS];
	for (intptr_t at = 0; at < THREADS; at++)
		CHECK(pthread_create(&threads[at], NULL, work, (void *)at) == 0);
	for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
}

static void authenticate_all(CK_SESSION_HANDLE session)
{
	CK_ULONG short_length = 20;
	CK_MECHANISM mechanisms[] = {{CKM_MD5_HMAC, NULL, 0},
				     {CKM_SHA512_HMAC, NULL, 0},
				     {CKM_SHA512_HMAC_GENERAL, &short_length, sizeof(short_length)},
				     {CKM_SHA3_256_HMAC, NULL, 0}};
	CK_ULONG lengths[] = {16, 64, 20, 32};
	CK_BYTE value[200];
	memset(value, 7, sizeof(value));
	mac_key = import_key(session, CKK_GENERIC_SECRET, value, sizeof(value));
	for (size_t at = 0; at < sizeof(message); at++) message[at] = (CK_BYTE)(at * at >> 3);
	for (size_t which = 0; which < sizeof(lengths) / sizeof(lengths[0]); which++) {
		mac_mechanism = &mechanisms[which];
		mac_length = lengths[which];
		for (int at = 0; at < THREADS; at++) mac(session, at, macs[at]);
		run(authenticate);
		printf("0x%lx: %d threads authenticate\n", mac_mechanism->mechanism, THREADS);
	}
}

int main(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE keeper = open_session();
	OK(pthread_barrier_init(&barrier, NULL, THREADS));
	for (size_t which = 0; which < sizeof(curves) / sizeof(curves[0]); which++) {
		struct peer unused;
		curve = &curves[which];
		own = make_pair(keeper, &unused);
		make_peers(keeper);
		run(agree);
		printf("%s: %d threads agree\n", curve->name, THREADS);
	}
	authenticate_all(keeper);
	OK(p11->C_Finalize(NULL));
	return 0;
}
